"""Read and write files by address: a local path, or a URL supported by fsspec such as s3://….

Writes are atomic: a single put in an object store, write and rename elsewhere. Knows no formats.
"""

import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from glob import glob, has_magic
from pathlib import Path
from typing import IO, Any

from redraft.errors import BulkError, RedraftError

PARTIAL = ".partial"

_LOCAL_PROTOCOLS = ("file://", "local://")

_ATOMIC = {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "oss", "oci", "memory"}
"""Protocols with atomic puts; other file systems show files while they are written."""


def is_remote(address: str) -> bool:
    """Return True if `address` needs fsspec."""
    return "://" in address and not address.startswith(_LOCAL_PROTOCOLS)


def local(address: str) -> Path:
    """Return the absolute path of a local address: workers have other working directories."""
    for protocol in _LOCAL_PROTOCOLS:
        address = address.removeprefix(protocol)
    return Path(address).absolute()


def absolute(address: str) -> str:
    """Return `address` in the form that is valid for every worker."""
    return address if is_remote(address) else str(local(address))


def joined(folder: str, name: str) -> str:
    """Return the address of the file `name` in `folder`."""
    return f"{folder.rstrip('/')}/{name}"


def find_files(address: str, endings: Sequence[str]) -> list[str]:
    """Return the files at `address`, sorted: a file, a folder or a glob pattern.

    Files of a folder or pattern must have one of the `endings`.
    """
    with _one_line_errors(address):
        files = _find_remote(address) if is_remote(address) else _find_local(str(local(address)))
    if has_magic(address) or files != [absolute(address)]:
        files = [file for file in files if file.partition("::")[0].endswith(tuple(endings))]
    if not files:
        wanted = ", ".join(endings)
        raise BulkError(f"{address}: no such file, and none in it that ends in {wanted}")
    return sorted(files)


def _find_local(path: str) -> list[str]:
    if has_magic(path) and not Path(path).exists():
        return [file for file in glob(path) if Path(file).is_file()]  # noqa: PTH207
    if Path(path).is_dir():
        return [str(file) for file in Path(path).iterdir() if file.is_file()]
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
    # the part before the path is protocol and host: sftp://host, hdfs://host:8020
    head = first.removesuffix(path.rstrip("/"))
    if head == first:
        head, paths = f"{first.partition('://')[0]}://", [path.lstrip("/") for path in paths]
    full = (path if "://" in path else head + path for path in paths)
    return [path + chained + others for path in full]


@contextmanager
def opened(address: str) -> Iterator[IO[bytes]]:
    """Open a file as a seekable binary stream."""
    with _one_line_errors(address):
        filesystem, path = _filesystem(address)
        with filesystem.open(path, "rb") as stream:
            yield stream


def read_whole(address: str) -> bytes | None:
    """Return the bytes of a small file, or None if it does not exist."""
    with _one_line_errors(address):
        filesystem, path = _filesystem(address)
        try:
            return bytes(filesystem.cat_file(path))
        except FileNotFoundError:
            return None


def names_in(folder: str) -> set[str]:
    """Return the names of the entries of a folder; empty if it does not exist."""
    with _one_line_errors(folder):
        try:
            if is_remote(folder):
                filesystem, path = _filesystem(folder)
                filesystem.invalidate_cache()
                paths = filesystem.ls(path, detail=False)
                return {str(entry).rpartition("/")[2] for entry in paths}
            return {entry.name for entry in local(folder).iterdir()}
        except FileNotFoundError:
            return set()


def write_whole(address: str, content: bytes) -> None:
    """Write a file atomically; concurrent writers of the same content are safe."""
    with _one_line_errors(address, what="cannot be written"):
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
                os.fsync(stream.fileno())  # after a crash the name must not refer to an empty file
            partial.replace(file)
        except FileNotFoundError:
            # another process finished the same job and removed this partial file as stale
            if not file.exists():
                raise
        finally:
            partial.unlink(missing_ok=True)


def _write_remote(filesystem: Any, path: str, content: bytes) -> None:
    if _has_atomic_puts(filesystem):
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
        # some file systems do not overwrite on rename, and another process did the same job
        if not filesystem.exists(path):
            raise


def _has_atomic_puts(filesystem: Any) -> bool:
    protocol = filesystem.protocol
    return not _ATOMIC.isdisjoint([protocol] if isinstance(protocol, str) else protocol)


def _partial(name: str) -> str:
    """Return a unique temporary name: a worker given up as dead may still be writing."""
    return f".{name}.{uuid.uuid4().hex}{PARTIAL}"


def remove_partial(folder: str) -> None:
    """Remove the partial files of killed writers."""
    for name in names_in(folder):
        if name.endswith(PARTIAL):
            with _one_line_errors(folder, what="cannot be cleaned up"), suppress(FileNotFoundError):
                filesystem, path = _filesystem(joined(folder, name))
                filesystem.rm_file(path)


def _filesystem(address: str) -> tuple[Any, str]:
    """Return the file system of an address, and the path of the address in it."""
    if not is_remote(address):  # may contain `::`, which separates the parts of a URL chain
        from fsspec.implementations.local import LocalFileSystem

        return LocalFileSystem(), str(local(address))
    from fsspec.core import url_to_fs

    filesystem, path = url_to_fs(address)
    return filesystem, str(path)


@contextmanager
def _one_line_errors(address: str, what: str = "cannot be read") -> Iterator[None]:
    """Convert errors of fsspec and the system, such as a missing package, to `BulkError`."""
    try:
        yield
    except RedraftError:
        raise
    except FileNotFoundError as error:
        raise BulkError(f"{address}: no such file; check the address") from error
    except Exception as error:
        if isinstance(error, OSError | ImportError | ValueError):
            message = getattr(error, "strerror", None) or str(error)
        elif is_remote(address):
            # file systems raise their own exception types, for example for missing credentials
            message = f"{type(error).__name__}: {error}"
        else:
            raise
        reason = next(iter(message.splitlines()), "") or "no reason given"
        raise BulkError(f"{address}: {what} ({reason}); check the address") from error
