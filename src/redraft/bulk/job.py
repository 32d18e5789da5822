"""A bulk job: every input shard worked through once, its output shard there in full or not at all.

Which shards are there is all that a job remembers, so that it can be stopped or killed anywhere
and goes on from what is written, by the same executor or by another.
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
from redraft.bulk.shards import Inputs, Shard, read_rows
from redraft.bulk.work import Work, to_text, worker_of
from redraft.errors import BulkError

JOB = "job.json"
FORMAT = 1


@dataclass(frozen=True)
class Outcome:
    """A shard that is written."""

    number: int
    rows: int
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True)
class Task:
    """Work on some shards, and the folder for what comes of them, as a worker must know it."""

    work: str
    ending: str
    folder: str
    shards: tuple[Shard, ...]

    def address(self, shard: Shard) -> str:
        """Where the output of a shard belongs."""
        return joined(self.folder, name_of(shard.number, self.ending))


Executor = Callable[[Task], Iterator[Outcome]]
"""Works through the shards of a task, in any order and anywhere; tells of each that is written."""


def name_of(number: int, ending: str) -> str:
    """The name of an output shard; in the order of the names, rows stand as in the input."""
    return f"{number:06d}{ending}"


def write_shard(task: Task, shard: Shard) -> Outcome:
    """Work through a shard and write what comes of it."""
    result = worker_of(task.work)(list(read_rows(shard)))
    write(task.address(shard), result.content)
    return Outcome(shard.number, result.rows, result.skipped)


def in_this_process(task: Task) -> Iterator[Outcome]:
    """One shard after another, here."""
    return (write_shard(task, shard) for shard in task.shards)


@dataclass(frozen=True)
class Job:
    """Work on all shards of the inputs, and what of it is left to do."""

    task: Task
    total: int

    @classmethod
    def begin(cls, work: Work, inputs: Inputs, folder: str) -> "Job":
        """The job of a folder: begun there, or taken up; a folder of anything else is refused."""
        folder = absolute(folder)
        wanted = {
            "format": FORMAT,
            "work": work.name,
            **work.identity(),
            "inputs": inputs.digest,
            "rows": inputs.rows,
            "shards": len(inputs.shards),
        }
        there = {name for name in names_in(folder) if not name.endswith(PARTIAL)}
        if JOB in there:
            _refuse_another(folder, wanted)
        elif there:
            raise BulkError(f"{folder}: is not empty and holds no {JOB}; name another folder")
        else:
            write(joined(folder, JOB), (json.dumps(wanted, indent=2) + "\n").encode())
        missing = tuple(s for s in inputs.shards if name_of(s.number, work.ending) not in there)
        task = Task(to_text(work), work.ending, folder, missing)
        return cls(task, len(inputs.shards))

    def run(self, execute: Executor) -> Iterator[Outcome]:
        """Do what is left; each shard is told when it is written."""
        if self.task.shards:
            yield from execute(self.task)
        there = names_in(self.task.folder)
        lost = [s for s in self.task.shards if name_of(s.number, self.task.ending) not in there]
        if lost:
            raise BulkError(
                f"{self.task.address(lost[0])}: is not there though a worker wrote it; the folder "
                "must be one that all machines share, or in an object store"
            )
        remove_partial(self.task.folder)


def _refuse_another(folder: str, wanted: dict[str, Any]) -> None:
    """An error that says in what the job of a folder differs from the one wanted."""
    try:
        found = json.loads(read_whole(joined(folder, JOB)) or b"")
    except ValueError as error:
        raise BulkError(f"{joined(folder, JOB)}: damaged; name another folder") from error
    if found == wanted:
        return
    names: Sequence[str] = [name for name in wanted if found.get(name) != wanted[name]]
    differs = ", ".join(names) or "more than was asked for"
    raise BulkError(
        f"{folder}: holds the shards of another job (it differs in: {differs}); name another folder"
    )
