"""Options and the job runner shared by commands that process shards."""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from redraft.cli._console import emit, progress, working
from redraft.cli._failures import Verb

if TYPE_CHECKING:
    from collections.abc import Callable

    from redraft.bulk.job import Executor
    from redraft.bulk.shards import Inputs
    from redraft.bulk.work import JobSpec

ROWS = 1_000

RowsOption = Annotated[
    int,
    typer.Option(
        min=1,
        max=1_000_000,
        metavar="N",
        help="Rows per shard, the unit of work that is repeated after an interruption.",
    ),
]
RayOption = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="[ADDRESS]",
        help="Run on the Ray cluster at HOST:PORT. Without an address: on the local cluster if one "
        "is running, otherwise on all cores of this machine. Needs the extra [ray] on every "
        "machine, and files that all machines reach by the same address.",
        show_default=False,
    ),
]


class BulkCommand(Verb):
    """A command whose `--ray` option takes an optional address."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the address `ANY` after a `--ray` without one."""
        from redraft.bulk.ray_cluster import ANY

        completed: list[str] = []
        for i, argument in enumerate(args):
            completed.append(argument)
            following = args[i + 1] if i + 1 < len(args) else ""
            if argument == "--ray" and not _is_meant_for_ray(following):
                completed.append(ANY)
        return super().parse_args(ctx, completed)


_NO_INPUT = re.compile(r"ray://.*|https?://[^/]*/?|[^-/*?\[][^/:*?\[]*")
"""Texts that are no cluster address but look like one: Ray client, dashboard URL, bare host."""


def _is_meant_for_ray(text: str) -> bool:
    """Return True if the argument after `--ray` is meant as an address, not as an input."""
    from redraft.bulk.ray_cluster import ADDRESS
    from redraft.bulk.shards import LINES, PARQUET

    if ADDRESS.fullmatch(text):
        return True
    is_input = text.endswith((*LINES, *PARQUET)) or Path(text).exists()
    return not is_input and _NO_INPUT.fullmatch(text) is not None


def is_folder(out: str) -> bool:
    """Return True if `out` names a folder of shards rather than a single file."""
    from redraft.bulk.addresses import is_remote

    if is_remote(out) or out.endswith("/") or Path(out).is_dir():
        return True
    return not Path(out).suffix


def run_job(
    work: "JobSpec", find_inputs: "Callable[[], Inputs]", out: str, *, ray: str | None
) -> list[str]:
    """Process the remaining shards, print a summary and return the skipped inputs."""
    from redraft.bulk.job import Job, in_this_process
    from redraft.bulk.ray_cluster import RayCluster
    from redraft.bulk.work import to_text, worker_of

    execute: Executor = in_this_process
    if ray is not None:
        cluster = RayCluster.at(ray, os.environ)
        cluster.check()
        execute = cluster
    with working("loading the model"):
        # an unsuitable model fails here, before inputs are read and the output folder is created
        worker_of(to_text(work))
    with working("cutting the input into shards"):
        inputs = find_inputs()
    with working("checking the rows"):
        job = Job.begin(work, inputs, out)
    remaining = len(job.remaining)
    rows, skipped = 0, list[str]()
    for outcome in progress(job.run(execute), f"{work.name}, shards", total=remaining):
        rows += outcome.rows
        skipped += outcome.skipped
    emit(
        {
            "folder": out,
            "shards": job.total,
            "found": job.total - remaining,
            "written": remaining,
            "rows": rows,
        }
    )
    return skipped
