"""Many archives to mined files, by several processes; a stop loses only what is in hand.

Knows processes; what mining is stands in `mined`.
"""

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import connection, get_context, parent_process
from pathlib import Path

from redraft.data.archives import ArchiveError
from redraft.data.mined import keep_mined
from redraft.errors import PairsError


@dataclass(frozen=True)
class Task:
    """An archive, the package it is of, and where its mined file belongs."""

    archive: Path
    package: str
    path: Path


@dataclass(frozen=True)
class Refused:
    """An archive that was not mined, and why."""

    archive: str
    reason: str


def mine_all(tasks: Sequence[Task], *, jobs: int) -> Iterator[Path | Refused]:
    """The mined file of every archive, in order, or why there is none."""
    if jobs == 1 or len(tasks) < 2:
        yield from map(_mine, tasks)
        return
    workers = min(jobs, len(tasks))
    pool = ProcessPoolExecutor(workers, get_context("spawn"), initializer=_start_worker)
    try:
        with _deaf_to_interrupts():
            outcomes = pool.map(_mine, tasks)
        yield from outcomes
    except BrokenProcessPool as error:
        raise PairsError(
            "a process that mined was killed, perhaps for want of memory; "
            "the same command with --jobs 1 goes on from what is mined"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """What is started within never gets a Ctrl-C, not even while it starts; here it only waits."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _mine(task: Task) -> Path | Refused:
    try:
        return keep_mined(task.archive, task.package, task.path)
    except ArchiveError as error:
        return Refused(task.archive.name, str(error))


def _start_worker() -> None:
    """Leave Ctrl-C to the parent, and follow it when it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow_parent, daemon=True).start()


def _follow_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
