"""Run a bulk job: process every input shard once and write its output shard atomically.

The set of written shards is the only state of a job, so it can be killed at any point and resumed
by the same or another executor.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from redraft.bulk.addresses import (
    PARTIAL,
    absolute,
    joined,
    names_in,
    read_whole,
    remove_partial,
)
from redraft.bulk.addresses import write_whole as write
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
class BulkTask:
    """Shards to process, the serialised job spec and the output folder, as sent to a worker."""

    work: str
    ending: str
    folder: str
    shards: tuple[Shard, ...]

    def address(self, shard: Shard) -> str:
        """Return the address of the output of `shard`."""
        return joined(self.folder, name_of(shard.number, self.ending))


Executor = Callable[[BulkTask], Iterator[Outcome]]
"""Processes the shards of a task, in any order and on any machine; yields each written shard."""


def name_of(number: int, ending: str) -> str:
    """Return the name of an output shard; names sort in input order."""
    return f"{number:06d}{ending}"


def write_shard(task: BulkTask, shard: Shard) -> Outcome:
    """Process a shard and write its output."""
    result = worker_of(task.work).work(list(read_rows(shard)))
    write(task.address(shard), result.content)
    return Outcome(shard.number, result.rows, result.skipped)


def in_this_process(task: BulkTask) -> Iterator[Outcome]:
    """Process the shards one by one in this process."""
    return (write_shard(task, shard) for shard in task.shards)


@dataclass(frozen=True)
class Job:
    """A job over `total` shards, and the task of processing the remaining ones."""

    task: BulkTask
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
            write(joined(folder, JOB), (json.dumps(wanted, indent=2) + "\n").encode())
        missing = tuple(s for s in inputs.shards if name_of(s.number, work.ending) not in existing)
        task = BulkTask(to_text(work), work.ending, folder, missing)
        return cls(task, len(inputs.shards))

    def run(self, execute: Executor) -> Iterator[Outcome]:
        """Process the remaining shards with `execute` and yield each one when it is written."""
        if self.task.shards:
            yield from execute(self.task)
        existing = names_in(self.task.folder)
        lost = [s for s in self.task.shards if name_of(s.number, self.task.ending) not in existing]
        if lost:
            raise BulkError(
                f"{self.task.address(lost[0])}: missing although a worker wrote it; the folder "
                "must be shared by all machines, or in an object store"
            )
        remove_partial(self.task.folder)


def _check_same_job(folder: str, wanted: dict[str, Any]) -> None:
    """Raise `BulkError` if the job in `folder` is damaged or differs from `wanted`."""
    try:
        stored = json.loads(read_whole(joined(folder, JOB)) or b"")
        if not isinstance(stored, dict):
            raise ValueError("not an object")
    except (ValueError, RecursionError) as error:
        raise BulkError(f"{joined(folder, JOB)}: damaged; name another folder") from error
    if stored == wanted:
        return
    names: Sequence[str] = [name for name in wanted if stored.get(name) != wanted[name]]
    differs = ", ".join(names) or "additional keys"
    raise BulkError(
        f"{folder}: holds the shards of another job (it differs in: {differs}); name another folder"
    )
