"""Run a bulk job: process every input shard once and write its output shard atomically.

The set of written shards is the only state of a job, so it can be killed at any point and resumed
by the same or another executor.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from redraft.bulk.addresses import (
    PARTIAL,
    absolute,
    joined,
    names_in,
    read_whole,
    remove_partial,
    write_whole,
)
from redraft.bulk.shards import Inputs, Shard, read_inputs, read_rows
from redraft.bulk.work import JobSpec, to_text, worker_of
from redraft.errors import BulkError

JOB = "job.json"
FORMAT = 1


@dataclass(frozen=True)
class Outcome:
    """A written shard: its number, its output rows and the skipped inputs."""

    number: int
    rows: int
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True)
class Job:
    """A serialised job spec, its output folder, and the remaining of its `total` shards."""

    work: str
    ending: str
    folder: str
    remaining: tuple[Shard, ...]
    total: int

    @classmethod
    def begin(cls, work: JobSpec, inputs: Inputs, folder: str) -> "Job":
        """Start or resume the job in `folder`; raise `BulkError` if it holds another job.

        The rows of a new job are checked before anything is written. Otherwise a bad row would
        leave a folder that rejects the fixed input as a different job.
        """
        folder = absolute(folder)
        wanted = {
            "format": FORMAT,
            "work": work.name,
            **work.identity(),
            "inputs": inputs.digest,
            "rows": inputs.rows,
            "shards": len(inputs.shards),
        }
        existing = {name for name in names_in(folder) if not name.endswith(PARTIAL)}
        if JOB in existing:
            _check_same_job(folder, wanted)
        elif existing:
            raise BulkError(f"{folder}: is not empty and holds no {JOB}; name another folder")
        else:
            check = worker_of(to_text(work)).check
            for row in read_inputs(inputs):
                check(row)
            write_whole(joined(folder, JOB), (json.dumps(wanted, indent=2) + "\n").encode())
        remaining = tuple(s for s in inputs.shards if _name(s, work.ending) not in existing)
        return cls(to_text(work), work.ending, folder, remaining, len(inputs.shards))

    def run(self, execute: "Executor") -> Iterator[Outcome]:
        """Process the remaining shards with `execute` and yield each one when it is written."""
        if self.remaining:
            yield from execute(self)
        existing = names_in(self.folder)
        for name in (_name(shard, self.ending) for shard in self.remaining):
            if name not in existing:
                raise BulkError(
                    f"{joined(self.folder, name)}: missing although a worker wrote it; the folder "
                    "must be shared by all machines, or in an object store"
                )
        remove_partial(self.folder)


Executor = Callable[[Job], Iterator[Outcome]]
"""Processes the remaining shards, in any order and on any machine; yields each written shard."""


def in_this_process(job: Job) -> Iterator[Outcome]:
    """Process the remaining shards one by one in this process."""
    return (write_shard(shard, job.work, job.ending, job.folder) for shard in job.remaining)


def write_shard(shard: Shard, work: str, ending: str, folder: str) -> Outcome:
    """Process a shard by the serialised spec `work` and write its output to `folder`."""
    result = worker_of(work).work(list(read_rows(shard)))
    write_whole(joined(folder, _name(shard, ending)), result.content)
    return Outcome(shard.number, result.rows, result.skipped)


def _name(shard: Shard, ending: str) -> str:
    """Return the name of an output shard; names sort in input order."""
    return f"{shard.number:06d}{ending}"


def _check_same_job(folder: str, wanted: dict[str, Any]) -> None:
    """Raise `BulkError` if the job in `folder` is damaged or differs from `wanted`."""
    try:
        stored = json.loads(read_whole(joined(folder, JOB)) or b"")
        if not isinstance(stored, dict):
            raise ValueError("not an object")
    except (ValueError, RecursionError) as error:
        raise BulkError(f"{joined(folder, JOB)}: damaged; name another folder") from error
    if stored != wanted:
        names = [name for name in wanted if stored.get(name) != wanted[name]]
        differs = ", ".join(names) or "additional keys"
        raise BulkError(
            f"{folder}: holds the shards of another job (it differs in: {differs}); "
            "name another folder"
        )
