"""What verbs that work on shards share: their options, and a job as it goes."""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from redraft.cli.console import emit, progress, working

if TYPE_CHECKING:
    from collections.abc import Callable

    from redraft.bulk.job import Executor
    from redraft.bulk.shards import Inputs
    from redraft.bulk.work import Work

ROWS = 1_000

RowsOption = Annotated[
    int,
    typer.Option(
        min=1,
        metavar="N",
        help="Rows of a shard: what is worked through, and can be lost, at a time.",
    ),
]
RayOption = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="[ADDRESS]",
        help="Work on the Ray cluster at HOST:PORT; without an address on the one that runs here, "
        "or else on all cores of this machine. Needs the extra [ray] on all machines, and files "
        "that all of them reach by the same address.",
        show_default=False,
    ),
]


class BulkCommand(TyperCommand):
    """A verb whose `--ray` may stand without an address."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give a bare `--ray` the address that stands for none."""
        from redraft.bulk.cluster import ANY

        given: list[str] = []
        for at, argument in enumerate(args):
            given.append(argument)
            following = args[at + 1] if at + 1 < len(args) else ""
            if argument == "--ray" and not _is_meant_for_ray(following):
                given.append(ANY)
        return super().parse_args(ctx, given)


_NO_INPUT = re.compile(r"ray://.*|https?://[^/]*/?|[^-/*?\[][^/:*?\[]*")
"""What can only be meant as an address, though it is none: of a client, of a dashboard, a host."""


def _is_meant_for_ray(text: str) -> bool:
    """Whether what follows `--ray` is its address, perhaps a wrong one, and not an input."""
    from redraft.bulk.cluster import ADDRESS
    from redraft.bulk.shards import LINES, PARQUET

    if ADDRESS.fullmatch(text):
        return True
    is_input = text.endswith((*LINES, *PARQUET)) or Path(text).exists()
    return not is_input and _NO_INPUT.fullmatch(text) is not None


def is_folder(out: str) -> bool:
    """Whether a name is that of a folder of shards, and not of one file."""
    from redraft.bulk.addresses import is_remote

    if is_remote(out) or out.endswith("/") or Path(out).is_dir():
        return True
    return not Path(out).suffix


def run_job(
    work: "Work", find_inputs: "Callable[[], Inputs]", out: str, *, ray: str | None
) -> list[str]:
    """Do what is left of the job and tell what there is; returns what was passed over."""
    from redraft.bulk.job import Job
    from redraft.bulk.work import to_text, worker_of

    execute = _executor(ray)
    with working("loading the model"):
        # one that cannot do the work is told before anything is read, and takes no folder
        worker_of(to_text(work))
    with working("cutting the input into shards"):
        inputs = find_inputs()
    job = Job.begin(work, inputs, out)
    left = len(job.task.shards)
    rows, skipped = 0, list[str]()
    for outcome in progress(job.run(execute), f"{work.name}, shards", total=left):
        rows += outcome.rows
        skipped += outcome.skipped
    there = job.total - left
    emit({"folder": out, "shards": job.total, "found": there, "written": left, "rows": rows})
    return skipped


def _executor(ray: str | None) -> "Executor":
    from redraft.bulk.cluster import RayCluster
    from redraft.bulk.job import in_this_process

    if ray is None:
        return in_this_process
    cluster = RayCluster.at(ray, os.environ)
    cluster.check()
    return cluster
