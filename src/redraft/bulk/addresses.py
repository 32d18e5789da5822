"""Files by their address: a path of this machine, or whatever fsspec reaches, such as s3://….

A file is written whole: in an object store by one put, elsewhere under another name that is then
changed. Knows no formats.
"""

import fnmatch
import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from glob import glob, has_magic
from pathlib import Path
from typing import IO, Any

from redraft.errors import BulkError, RedraftError

PARTIAL = ".partial"

_HERE = ("file://", "local://")

_WHOLE = {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "oss", "oci", "memory"}
"""Where what is put is there in full or not at all; a file of other systems grows."""


def is_remote(address: str) -> bool:
    """Whether it is fsspec that must be asked."""
    return "://" in address and not address.startswith(_HERE)


def local(address: str) -> Path:
    """The path of a file of this machine, in full: a worker stands elsewhere."""
    for protocol in _HERE:
        address = address.removeprefix(protocol)
    return Path(address).absolute()


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
    first = first.rstrip("/")
    # what stands before the path names the machine: sftp://host, hdfs://host:8020
    head = first.removesuffix(path.rstrip("/"))
    if head == first:
        head, paths = f"{first.partition('://')[0]}://", [each.lstrip("/") for each in paths]
    full = (each if "://" in each else head + each for each in paths)
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
    with _telling(address), stream:
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
            _write_remote(*_filesystem(address), content)
            return
        file = local(address)
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_name(_partial(file.name))
        try:
            with partial.open("wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())  # a machine that dies must not leave the name alone
            partial.replace(file)
        except FileNotFoundError:
            # another that did the same job was done, and removed what it took for left behind
            if not file.exists():
                raise
        finally:
            partial.unlink(missing_ok=True)


def _write_remote(filesystem: Any, path: str, content: bytes) -> None:
    if _is_whole(filesystem):
        filesystem.pipe_file(path, content)
        return
    folder, slash, name = path.rpartition("/")
    partial = f"{folder}{slash}{_partial(name)}"
    if folder:
        filesystem.makedirs(folder, exist_ok=True)
    try:
        filesystem.pipe_file(partial, content)
        filesystem.mv(partial, path)
    except Exception:
        if filesystem.exists(partial):
            filesystem.rm_file(partial)
        # some change no name to one that is there; it is, where another did the same job
        if not filesystem.exists(path):
            raise


def _is_whole(filesystem: Any) -> bool:
    protocol = filesystem.protocol
    return not _WHOLE.isdisjoint([protocol] if isinstance(protocol, str) else protocol)


def _partial(name: str) -> str:
    """A name of its own: what was given up for lost may still be written."""
    return f".{name}.{uuid.uuid4().hex}{PARTIAL}"


def remove_partial(folder: str) -> None:
    """Remove what killed writers left."""
    for name in fnmatch.filter(names_in(folder), f"*{PARTIAL}"):
        with _telling(folder, what="cannot be tidied up"):
            if is_remote(folder):
                filesystem, path = _filesystem(joined(folder, name))
                filesystem.rm_file(path)
            else:
                (local(folder) / name).unlink(missing_ok=True)


def _filesystem(address: str) -> tuple[Any, str]:
    from fsspec.core import url_to_fs

    filesystem, path = url_to_fs(address)
    return filesystem, str(path)


@contextmanager
def _telling(address: str, what: str = "cannot be read") -> Iterator[None]:
    """What fsspec or the system says, in one line: among it which package is missing."""
    try:
        yield
    except RedraftError:
        raise
    except FileNotFoundError as error:
        raise BulkError(f"{address}: no such file; check the address") from error
    except (OSError, ImportError, ValueError) as error:
        raise _cannot(address, what, getattr(error, "strerror", None) or str(error)) from error
    except Exception as error:
        # each file system has errors of its own, such as for credentials that are missing
        if not is_remote(address):
            raise
        raise _cannot(address, what, f"{type(error).__name__}: {error}") from error


def _cannot(address: str, what: str, said: str) -> BulkError:
    reason = next(iter(said.splitlines()), "") or "no reason is told"
    return BulkError(f"{address}: {what} ({reason}); check the address")
