"""Files by their address: a path of this machine, or whatever fsspec reaches, such as s3://….

A file is written whole: here under another name that is then changed, in an object store by one
put. Knows no formats.
"""

import fnmatch
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from glob import glob, has_magic
from pathlib import Path
from typing import IO, Any

from redraft.errors import BulkError

PARTIAL = ".partial"


def is_remote(address: str) -> bool:
    """Whether it is fsspec that must be asked."""
    return "://" in address and not address.startswith("file://")


def local(address: str) -> Path:
    """The path of a file of this machine, in full: a worker stands elsewhere."""
    return Path(address.removeprefix("file://")).absolute()


def absolute(address: str) -> str:
    """The address by which every worker knows the file."""
    return address if is_remote(address) else str(local(address))


def joined(folder: str, name: str) -> str:
    """The address of a file in a folder."""
    return f"{folder.rstrip('/')}/{name}"


def find_files(address: str, endings: Sequence[str]) -> list[str]:
    """The file, those of the folder that end so, or those that a pattern names; in order."""
    with _telling(address):
        found = _find_remote(address) if is_remote(address) else _find_local(str(local(address)))
    if has_magic(address) or found != [absolute(address)]:
        found = [each for each in found if each.partition("::")[0].endswith(tuple(endings))]
    if not found:
        wanted = ", ".join(endings)
        raise BulkError(f"{address}: no such file, and none in it that ends in {wanted}")
    return sorted(found)


def _find_local(path: str) -> list[str]:
    if has_magic(path) and not Path(path).exists():
        return [each for each in glob(path) if Path(each).is_file()]  # noqa: PTH207
    if Path(path).is_dir():
        return [str(each) for each in Path(path).iterdir() if each.is_file()]
    return [path] if Path(path).exists() else []


def _find_remote(address: str) -> list[str]:
    filesystem, path = _filesystem(address)
    if has_magic(path):
        paths = filesystem.glob(path)
    elif filesystem.isdir(path):
        paths = filesystem.ls(path, detail=False)
    else:
        return [address]
    first, chained, others = address.partition("::")
    protocol = first.partition("://")[0]
    full = (each if "://" in each else f"{protocol}://{each.lstrip('/')}" for each in paths)
    return [each + chained + others for each in full]


@contextmanager
def opened(address: str) -> Iterator[IO[bytes]]:
    """The bytes of a file; it can be read from any place."""
    with _telling(address):
        if is_remote(address):
            filesystem, path = _filesystem(address)
            stream: Any = filesystem.open(path, "rb")
        else:
            stream = local(address).open("rb")
    with _telling(address, (OSError,)), stream:
        yield stream


def read_whole(address: str) -> bytes | None:
    """The bytes of a small file, if it is there."""
    with _telling(address):
        try:
            if is_remote(address):
                filesystem, path = _filesystem(address)
                return bytes(filesystem.cat_file(path))
            return local(address).read_bytes()
        except FileNotFoundError:
            return None


def names_in(folder: str) -> set[str]:
    """What a folder holds; nothing where there is none."""
    with _telling(folder):
        try:
            if is_remote(folder):
                filesystem, path = _filesystem(folder)
                filesystem.invalidate_cache()
                return {str(each).rpartition("/")[2] for each in filesystem.ls(path, detail=False)}
            return {each.name for each in local(folder).iterdir()}
        except FileNotFoundError:
            return set()


def write_whole(address: str, content: bytes) -> None:
    """Write a file that is complete or absent, whoever is killed, and whoever else writes it."""
    with _telling(address, what="cannot be written"):
        if is_remote(address):
            filesystem, path = _filesystem(address)
            filesystem.pipe_file(path, content)
            return
        file = local(address)
        file.parent.mkdir(parents=True, exist_ok=True)
        # a name of its own: what was given up for lost may still be written
        writer = f"{socket.gethostname()}-{os.getpid()}"
        partial = file.with_name(f".{file.name}.{writer}{PARTIAL}")
        try:
            partial.write_bytes(content)
            partial.replace(file)
        finally:
            partial.unlink(missing_ok=True)


def remove_partial(folder: str) -> None:
    """Remove what killed writers left."""
    if is_remote(folder):
        return
    for name in fnmatch.filter(names_in(folder), f"*{PARTIAL}"):
        (local(folder) / name).unlink(missing_ok=True)


def _filesystem(address: str) -> tuple[Any, str]:
    from fsspec.core import url_to_fs

    filesystem, path = url_to_fs(address)
    return filesystem, str(path)


@contextmanager
def _telling(
    address: str,
    kinds: tuple[type[Exception], ...] = (OSError, ImportError, ValueError),
    what: str = "cannot be read",
) -> Iterator[None]:
    """What fsspec or the system says, in one line: among it which package is missing."""
    try:
        yield
    except FileNotFoundError as error:
        raise BulkError(f"{address}: no such file; check the address") from error
    except kinds as error:
        said = getattr(error, "strerror", None) or str(error) or type(error).__name__
        told = f"{address}: {what} ({said.splitlines()[0]}); check the address"
        raise BulkError(told) from error
