"""Package archives to the files in them: wheels, zips and tarballs, read where they lie.

Nothing is unpacked to disk, built or run, and nothing that an archive says of itself is trusted:
names, counts and sizes have limits. Knows no Python; which files are wanted is passed in.
"""

import gzip
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import IO

from redraft.data.rows import BadRow
from redraft.errors import PairsError

WHEEL = ".whl"
ENDINGS = (WHEEL, ".zip", ".tar.gz")
"""The archives that are read, the preferred kind first."""

Wanted = Callable[[str], bool]

_BOUNDED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""The ways of packing that Python unpacks a given number of bytes at a time."""

_SMALL = 1 << 26
"""Up to so many bytes it does not matter how well an archive is packed."""

_UNREADABLE = (
    *(zipfile.BadZipFile, tarfile.TarError, zlib.error, LZMAError, struct.error),
    *(EOFError, OSError, ValueError, LookupError),
    *(RuntimeError, NotImplementedError),  # a password; a way of packing that is not known
)


class ArchiveError(PairsError):
    """An archive that is damaged, or that must not be trusted."""


@dataclass(frozen=True)
class Limits:
    """How large an archive may be, unpacked; beyond, it is refused."""

    file_bytes: int = 2 << 20
    archive_bytes: int = 1 << 29
    entries: int = 100_000
    ratio: int = 100


@dataclass(frozen=True)
class File:
    """One file of an archive."""

    name: str
    content: bytes


@dataclass
class _Account:
    """What an archive has claimed so far, against its limits."""

    path: Path
    limits: Limits
    entries: int = 0
    claimed: int = 0

    def enter(self, name: str, size: int) -> None:
        """Count an entry before anything of it is read."""
        self.entries += 1
        self.claimed += size
        if self.entries > self.limits.entries:
            raise self.refusal(f"holds more than {self.limits.entries:,} files")
        if size < 0 or _leads_outside(name):
            raise self.refusal(f"names a file outside of itself ({name!r})")
        if self.claimed > self.limits.archive_bytes:
            raise self.refusal(f"unpacks to more than {self.limits.archive_bytes:,} bytes")
        if self.claimed > max(self.path.stat().st_size * self.limits.ratio, _SMALL):
            raise self.refusal(f"unpacks to more than {self.limits.ratio} times its size")

    def refusal(self, reason: str) -> ArchiveError:
        """The error for an archive that breaks a rule."""
        return ArchiveError(f"{self.path.name}: {reason}; do not trust it")


def _leads_outside(name: str) -> bool:
    parts = PurePosixPath(name.replace("\\", "/")).parts
    return bool(parts) and (parts[0] == "/" or parts[0].endswith(":") or ".." in parts)


def read_files(
    path: Path, *, wanted: Wanted, limits: Limits | None = None
) -> Iterator[File | BadRow]:
    """The wanted regular files of an archive, in its own order, or why one cannot be read."""
    account = _Account(path, limits or Limits())
    read = _read_tar if path.name.endswith(".tar.gz") else _read_zip
    try:
        yield from read(account, wanted)
    except _UNREADABLE as error:
        reason = f"damaged ({error or type(error).__name__})"
        raise ArchiveError(
            f"{path.name}: {reason}; delete it, and the same command downloads it again"
        ) from error


def _read_zip(account: _Account, wanted: Wanted) -> Iterator[File | BadRow]:
    with zipfile.ZipFile(account.path) as archive:
        entries = archive.infolist()
        for entry in entries:  # all of them first: nothing is read of an archive that is refused
            account.enter(entry.filename, entry.file_size)
        for entry in entries:
            mode = entry.external_attr >> 16
            is_regular = not entry.is_dir() and (not stat.S_IFMT(mode) or stat.S_ISREG(mode))
            if is_regular and wanted(entry.filename):
                yield _read_zip_entry(archive, entry, account.limits)


def _read_zip_entry(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, limits: Limits
) -> File | BadRow:
    if entry.file_size > limits.file_bytes:
        return _too_large(entry.filename, limits)
    if entry.compress_type not in _BOUNDED:
        return BadRow(entry.filename, 1, "packed in another way than wheels are")
    try:
        with archive.open(entry) as stream:
            # a bound, since without one all is unpacked before the declared size is looked at
            return File(entry.filename, stream.read(limits.file_bytes))
    except _UNREADABLE as error:
        return BadRow(entry.filename, 1, f"cannot be unpacked ({error or type(error).__name__})")


def _too_large(name: str, limits: Limits) -> BadRow:
    return BadRow(name, 1, f"larger than {limits.file_bytes:,} bytes")


class _Bounded:
    """A stream that ends in an error once more was read than an archive may hold."""

    def __init__(self, stream: gzip.GzipFile, account: _Account) -> None:
        self._stream, self._account = stream, account
        # headers and padding come on top of what the files claim
        self._left = account.limits.archive_bytes + 2048 * account.limits.entries

    def read(self, size: int) -> bytes:
        """The next bytes."""
        content = self._stream.read(size)
        self._left -= len(content)
        if self._left < 0:
            raise self._account.refusal("unpacks to more than it claims")
        return content


def _read_tar(account: _Account, wanted: Wanted) -> Iterator[File | BadRow]:
    """The files of a tarball, without the folder that all of them are in."""
    with gzip.open(account.path) as unpacked:
        stream: IO[bytes] = _Bounded(unpacked, account)  # type: ignore[assignment]
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for entry in archive:
                account.enter(entry.name, entry.size)
                name = entry.name.partition("/")[2]
                if not entry.isreg() or not wanted(name):
                    continue
                if entry.size > account.limits.file_bytes:
                    yield _too_large(name, account.limits)
                elif (content := archive.extractfile(entry)) is not None:
                    yield File(name, content.read())
