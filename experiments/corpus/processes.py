"""Mine many archives in parallel processes; an interruption loses only archives in progress.

Knows processes; the mining itself is in `mined_files`.
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

from experiments.corpus.archives import ArchiveError
from experiments.corpus.mined_files import keep_mined
from redraft.errors import PairsError


@dataclass(frozen=True)
class ArchiveTask:
    """An archive, its package, and the path of its mined file."""

    archive: Path
    package: str
    path: Path


@dataclass(frozen=True)
class Refused:
    """An archive that was rejected, with the reason."""

    archive: str
    reason: str


def mine_all(tasks: Sequence[ArchiveTask], *, jobs: int) -> Iterator[Path | Refused]:
    """Mine the archives with `jobs` processes; yield each mined file or `Refused`, in order."""
    if jobs == 1 or len(tasks) < 2:
        yield from map(_mine, tasks)
        return
    workers = min(jobs, len(tasks))
    pool = ProcessPoolExecutor(workers, get_context("spawn"), initializer=_start_worker)
    try:
        with _block_interrupts():
            outcomes = pool.map(_mine, tasks)
        yield from outcomes
    except BrokenProcessPool as error:
        raise PairsError(
            "a mining process was killed, perhaps out of memory; "
            "run the same command with --jobs 1 to resume"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _block_interrupts() -> Iterator[None]:
    """Block SIGINT in this block; processes started in it inherit the mask."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _mine(task: ArchiveTask) -> Path | Refused:
    try:
        return keep_mined(task.archive, task.package, task.path)
    except ArchiveError as error:
        return Refused(task.archive.name, str(error))


def _start_worker() -> None:
    """Ignore Ctrl-C, which the parent handles, and exit when the parent is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow_parent, daemon=True).start()


def _follow_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
