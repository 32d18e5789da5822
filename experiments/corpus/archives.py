"""Read files from package archives in memory: wheels, zips and tarballs.

Nothing is unpacked to disk, built or run. Archives are untrusted: names, counts and sizes are
limited. Knows no Python; the caller selects the files.
"""

import gzip
import re
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from redraft.data.rows import BadRow
from redraft.errors import PairsError

WHEEL = ".whl"
ENDINGS = (WHEEL, ".zip", ".tar.gz")
"""Supported archives, in order of preference."""

Wanted = Callable[[str], bool]

_BOUNDED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Compression methods that Python can decompress in bounded steps."""

_SMALL = 1 << 26
"""Below this many bytes the compression ratio is not checked."""

_ENTRY_OVERHEAD = 4096
"""Bytes of a tarball entry besides its content: headers, and padding to whole blocks."""

_LONGEST_HEADER = 1 << 16
"""Maximum size of an extended header, which holds names, times and attributes."""

_BETWEEN = 1 << 18
"""Maximum number of bytes between the content of two entries."""

_HEADERS = (
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
)
_PAX_RECORD = re.compile(rb"(\d{1,7}) [^=\n]{1,1024}=")
_MANY_DIGITS = re.compile(rb"\d{64}")
_NEWLINE = ord("\n")

_UNREADABLE = (
    *(zipfile.BadZipFile, tarfile.TarError, zlib.error, LZMAError, struct.error),
    *(EOFError, OSError, ValueError, LookupError),
    *(RuntimeError, NotImplementedError),  # password protected; unknown compression
)


class ArchiveError(PairsError):
    """A damaged or malicious archive."""


class _HeaderError(tarfile.TarError):
    """An invalid tarball header."""


@dataclass(frozen=True)
class Limits:
    """Limits on the unpacked size of an archive; larger ones are rejected."""

    file_bytes: int = 2 << 20
    archive_bytes: int = 1 << 29
    entries: int = 100_000
    ratio: int = 100


@dataclass(frozen=True)
class File:
    """A file in an archive."""

    name: str
    content: bytes


@dataclass
class _Account:
    """The sizes that an archive has declared so far, checked against its limits."""

    path: Path
    limits: Limits
    entries: int = 0
    claimed: int = 0

    def enter(self, name: str, size: int) -> None:
        """Count an entry before its content is read; raise `ArchiveError` beyond the limits."""
        self.entries += 1
        self.claimed += size
        if self.entries > self.limits.entries:
            raise self.refusal(f"holds more than {self.limits.entries:,} files")
        if size < 0 or _leads_outside(name):
            raise self.refusal(f"names a file outside of itself ({name!r})")
        if self.claimed > self.limits.archive_bytes:
            raise self.refusal(f"unpacks to more than {self.limits.archive_bytes:,} bytes")
        if self.claimed > self._most_by_ratio:
            raise self.refusal(f"unpacks to more than {self.limits.ratio} times its size")

    @property
    def _most_by_ratio(self) -> int:
        return max(self.path.stat().st_size * self.limits.ratio, _SMALL)

    @property
    def most_read(self) -> int:
        """The number of bytes of a tarball that may be read so far, with headers and padding."""
        contents = min(self.limits.archive_bytes, self._most_by_ratio)
        return contents + _ENTRY_OVERHEAD * self.entries + _BETWEEN

    def refusal(self, reason: str) -> ArchiveError:
        """Return the error for an archive that breaks a limit."""
        return ArchiveError(f"{self.path.name}: {reason}; do not trust it")


def _leads_outside(name: str) -> bool:
    parts = PurePosixPath(name.replace("\\", "/")).parts
    return bool(parts) and (parts[0] == "/" or parts[0].endswith(":") or ".." in parts)


def read_files(
    path: Path, *, wanted: Wanted, limits: Limits | None = None
) -> Iterator[File | BadRow]:
    """Yield the regular files whose name is `wanted`, in archive order; BadRow if unreadable."""
    account = _Account(path, limits or Limits())
    read = _read_tar if path.name.endswith(".tar.gz") else _read_zip
    try:
        yield from read(account, wanted)
    except _HeaderError as error:
        raise account.refusal(f"holds {error}") from error
    except _UNREADABLE as error:
        reason = f"damaged ({error or type(error).__name__})"
        raise ArchiveError(
            f"{path.name}: {reason}; delete it and run the same command to download it again"
        ) from error


def _read_zip(account: _Account, wanted: Wanted) -> Iterator[File | BadRow]:
    with zipfile.ZipFile(account.path) as archive:
        entries = archive.infolist()
        for entry in entries:  # all entries first: nothing is read from a rejected archive
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
        return BadRow(entry.filename, 1, "compressed with a method that wheels do not use")
    try:
        with archive.open(entry) as stream:
            # without a bound, all is decompressed before the declared size is checked
            return File(entry.filename, stream.read(limits.file_bytes))
    except _UNREADABLE as error:
        return BadRow(entry.filename, 1, f"cannot be unpacked ({error or type(error).__name__})")


def _too_large(name: str, limits: Limits) -> BadRow:
    return BadRow(name, 1, f"larger than {limits.file_bytes:,} bytes")


class _Bounded:
    """A stream that raises an error if more is read than the entries of an archive declare.

    Headers are read before their entry is known, so they have their own limits: between two
    entries, and in total.
    """

    def __init__(self, stream: gzip.GzipFile, account: _Account) -> None:
        self._stream, self._account = stream, account
        self._read = 0
        self._until_next = _BETWEEN

    def enter(self, size: int) -> None:
        """Allow reading the content of the current entry and the headers of the next."""
        self._until_next = size + _BETWEEN

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes."""
        content = self._stream.read(size)
        self._read += len(content)
        self._until_next -= len(content)
        if self._until_next < 0 or self._read > self._account.most_read:
            raise self._account.refusal("unpacks to more than it claims")
        return content


class _Replayed:
    """A stream that first returns `content`, already read from it, and then continues."""

    def __init__(self, content: bytes, stream: Any) -> None:
        self._content, self._stream = content, stream
        self.tell, self.seek = stream.tell, stream.seek

    def read(self, size: int) -> bytes:
        """Return the buffered content on the first call, and read from the stream afterwards."""
        content, self._content = self._content, b""
        return content or cast(bytes, self._stream.read(size))


class _Entry(tarfile.TarInfo):
    """An entry whose extended headers are size-limited and validated before tarfile parses them.

    In many Python versions parsing a PAX header takes quadratic time (CVE-2024-6232), and the
    archive controls its size.
    """

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        is_header = self.type in _HEADERS
        if is_header and not 0 <= self.size <= _LONGEST_HEADER:
            raise _HeaderError(f"a header of {self.size:,} bytes")
        return super()._proc_member(archive)  # type: ignore[misc, no-any-return]

    def _proc_pax(self, archive: Any) -> tarfile.TarInfo:
        stream = archive.fileobj
        content = stream.read(self._block(self.size))  # type: ignore[attr-defined]
        _check_pax(content)
        archive.fileobj = _Replayed(content, stream)
        try:
            return super()._proc_pax(archive)  # type: ignore[misc, no-any-return]
        finally:
            archive.fileobj = stream


def _check_pax(content: bytes) -> None:
    """Raise `_HeaderError` unless a PAX header is a sequence of `LENGTH KEY=VALUE` lines."""
    start = 0
    while start < len(content) and content[start]:
        record = _PAX_RECORD.match(content, start)
        end = start + int(record[1]) if record else -1
        if record is None or not record.end() < end <= len(content) or content[end - 1] != _NEWLINE:
            raise _HeaderError("an invalid PAX header")
        start = end
    if _MANY_DIGITS.search(content):
        raise _HeaderError("a PAX header with a number that is too long")


def _read_tar(account: _Account, wanted: Wanted) -> Iterator[File | BadRow]:
    """Yield the files of a tarball, their names without the common top-level folder."""
    with gzip.open(account.path) as unpacked:
        bounded = _Bounded(unpacked, account)
        stream: IO[bytes] = bounded  # type: ignore[assignment]
        with tarfile.open(fileobj=stream, mode="r|", tarinfo=_Entry) as archive:
            for entry in archive:
                account.enter(entry.name, entry.size)
                bounded.enter(entry.size)
                name = entry.name.partition("/")[2]
                if not entry.isreg() or not wanted(name):
                    continue
                if entry.size > account.limits.file_bytes:
                    yield _too_large(name, account.limits)
                elif (content := archive.extractfile(entry)) is not None:
                    yield File(name, content.read())
