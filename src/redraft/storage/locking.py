"""Exclusive locks on directories: one writer at a time, freed by the system when a holder dies.

A lock is `flock` on the file `.redraft.lock` inside the directory. The file names its holder and
is deleted on release. On NFS and SMB, Linux turns `flock` into locks of the server, so writers on
several machines exclude each other if the server supports locks; where the file system has none, a
warning is logged and writers must be kept apart by hand. Knows nothing of the directory's contents.
"""

import contextlib
import errno
import json
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from redraft.errors import LockedError, ModelError

try:
    import fcntl
except ImportError:  # Windows: no flock
    fcntl = None  # type: ignore[assignment]

LOCK = ".redraft.lock"
TIMEOUT = 60.0
"""Seconds that a writer waits for another one."""

_LOG = logging.getLogger(__name__)
_POLL_SECONDS = 0.02
_SILENT_SECONDS = 1.0  # most writers finish before a user could read a message
_MAX_HOLDER_BYTES = 4_096
_YOUNG_SECONDS = 10.0
_UNSUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}

_held = threading.local()


@contextlib.contextmanager
def exclusive(folder: Path, *, timeout: float = TIMEOUT) -> Iterator[None]:
    """Hold the lock of `folder`, which is created if missing; reentrant within a thread.

    Waits at most `timeout` seconds for another holder, then raises a LockedError that names it.
    """
    key = folder.resolve()
    folders: set[Path] = _held.__dict__.setdefault("folders", set())
    if key in folders:
        yield
        return
    is_new = not folder.exists()
    descriptor = _acquire(folder, timeout)
    folders.add(key)
    try:
        yield
    finally:
        folders.discard(key)
        # deleted while locked: a process that has it open will see that it is gone
        with contextlib.suppress(OSError):
            (folder / LOCK).unlink()
        os.close(descriptor)
        if is_new:
            with contextlib.suppress(OSError):  # not empty: something was written
                folder.rmdir()


def _acquire(folder: Path, timeout: float) -> int:
    """Return the descriptor of the locked file."""
    started, is_announced = time.monotonic(), False
    while True:
        descriptor = _try_lock(folder)
        if descriptor is not None:
            return descriptor
        waited = time.monotonic() - started
        if waited >= timeout:
            raise LockedError(
                f"{folder}: locked by {_holder(folder)}; "
                f"try again when it has finished (waited {timeout:g} s)"
            )
        if not is_announced and waited >= _SILENT_SECONDS:
            _LOG.info("%s: waiting for %s", folder, _holder(folder))
            is_announced = True
        time.sleep(_POLL_SECONDS)


def _try_lock(folder: Path) -> int | None:
    """Return the descriptor of the lock file if the lock is free, else None."""
    path = folder / LOCK
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = _open(path)
    except OSError as error:
        if isinstance(error, FileNotFoundError | FileExistsError) and not folder.is_file():
            return None  # another writer removed the empty folder in between
        reason = error.strerror or type(error).__name__
        raise ModelError(f"{folder}: cannot be written ({reason}); check its permissions") from None
    try:
        if not _lock(descriptor, folder) or not _is_same_file(path, descriptor):
            os.close(descriptor)
            return None
        with contextlib.suppress(OSError):  # on a full disk the holder stays unnamed
            os.ftruncate(descriptor, 0)
            os.write(descriptor, json.dumps(_description()).encode())
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _open(path: Path) -> int:
    """Open the lock file, never through a symbolic link: the holder is written into it."""
    flags = os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o666)
    except PermissionError:
        if not path.exists():
            raise
        # a file of another user, whose process may have died, can be locked too
        return os.open(path, os.O_RDONLY | flags)


def _lock(descriptor: int, folder: Path) -> bool:
    """Lock the open file; return False if another process holds the lock."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            _LOG.warning(
                "%s: this file system has no locks; let no second program write there", folder
            )
            return True
        return False
    return True


def _is_same_file(path: Path, descriptor: int) -> bool:
    """Return True if `path` still names the open file: a previous holder may have deleted it."""
    try:
        return os.path.samestat(path.stat(follow_symlinks=False), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _description() -> dict[str, str | int]:
    program = Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "python"
    return {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "command": " ".join([program, *sys.argv[1:2]])[:200],
        "since": datetime.now().strftime("%Y-%m-%d %H:%M:%S"),
    }


def _holder(folder: Path) -> str:
    """Describe the holder of the lock, as far as its file says."""
    try:
        with (folder / LOCK).open("rb") as stream:
            holder = json.loads(stream.read(_MAX_HOLDER_BYTES))
        return (
            f"process {holder['pid']} on {holder['host']} "
            f"({holder['command']}, since {holder['since']})"
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return "another program"


def own_directory(folder: Path) -> int | None:
    """Lock a temporary directory; return the descriptor that holds the lock, if there are locks.

    Ownership ends when the descriptor is closed, or with the process, however it ends. On any
    machine that shares the file system, `is_abandoned` returns whether the owner has died.
    """
    if fcntl is None:
        return None
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    with contextlib.suppress(OSError):  # without locks, no directory counts as abandoned
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def is_abandoned(folder: Path) -> bool:
    """Return True if no living process owns `folder` by `own_directory`."""
    if fcntl is None:
        return False
    try:
        # a directory is created before it is locked
        if time.time() - folder.stat().st_mtime < _YOUNG_SECONDS:
            return False
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_DIRECTORY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
