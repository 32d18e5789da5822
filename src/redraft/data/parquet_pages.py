"""Estimate the memory needed to read a Parquet file from its page headers.

Column sizes in the footer are not sufficient: with dictionary or prefix encoding a few kilobytes
can unpack to gigabytes. Reads no values.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import SEEK_END
from typing import IO, Any

from redraft.data.thrift import Thrift, ThriftError, TooShortError

MAX_PAGE_BYTES = 1 << 27
"""Maximum unpacked size of a page. Writers make pages of about 1 MB, or of 1,024 values."""

BATCH_BYTES = 1 << 26
"""Maximum decoded size of a batch of rows."""

MAX_BYTES = 3 << 27
"""Maximum memory for a single row with its pages; files that need more are rejected."""

MOST_ROWS = 4096
"""Maximum number of rows per batch."""

_VALUE_BYTES = 16
"""Overhead of a value besides its text: offset, levels and validity bit."""

_MAX_HEADER = 1 << 24
_FOOTER = {4: [{1: [{3: dict.fromkeys((5, 7, 9, 11))}], 3: None}]}
"""Row groups; of these the columns with their metadata, and the number of rows."""
_PAGE = {1: None, 2: None, 3: None, 5: {1: None, 2: None}, 8: {1: None, 4: None}}
"""Type and sizes of a page; numbers of values and encodings of data pages of versions 1 and 2."""
_DICTIONARY_PAGE = 2
_DICTIONARY_ENCODINGS = (2, 8)
_DELTA_BYTE_ARRAY = 7


class PageError(ThriftError):
    """A damaged page or footer."""


class OversizedError(PageError):
    """Pages that need too much memory."""


@dataclass(frozen=True)
class Page:
    """A page: its unpacked size, its number of values, and the largest size of a value."""

    unpacked: int
    values: int
    largest: int

    @property
    def held(self) -> int:
        """Memory for reading the page: its dictionary, unpacked and decoded."""
        return self.unpacked + 2 * self.largest

    def bytes_of(self, values: int) -> int:
        """Return an upper bound on the decoded size of `values` values of this page."""
        return values * _VALUE_BYTES + max(self.unpacked, min(values, self.values) * self.largest)


@dataclass(frozen=True)
class Chunk:
    """A column of a row group: the number of its values, and the position of its pages."""

    values: int
    start: int
    length: int


@dataclass(frozen=True)
class RowGroup:
    """The number of rows of a row group, and its columns in the order of the schema."""

    rows: int
    chunks: tuple[Chunk, ...]


def read_footer(stream: IO[bytes]) -> list[RowGroup]:
    """Return the row groups of a file.

    pyarrow's column metadata is not used: it crashes on invalid statistics in a damaged footer.
    """
    end = stream.seek(-8, SEEK_END)
    length = int.from_bytes(stream.read(4), "little")
    if length > end:
        raise PageError("the footer is longer than the file")
    stream.seek(end - length)
    groups = Thrift(stream.read(length)).struct(_FOOTER).get(4, [])
    try:
        return [
            RowGroup(_size(group, 3, 0), tuple(_chunk(column.get(3, {})) for column in group[1]))
            for group in groups
        ]
    except (AttributeError, KeyError, TypeError):  # fields of other types
        raise PageError("the footer is damaged") from None


def _chunk(metadata: dict[int, Any]) -> Chunk:
    data, dictionary = _size(metadata, 9, 0), metadata.get(11, 0)
    start = dictionary if 0 < dictionary < data else data
    return Chunk(_size(metadata, 5, 0), start, _size(metadata, 7, 0))


def _size(fields: dict[int, Any], number: int, default: int = -1) -> int:
    """Return a size or offset; raise `PageError` if the field has none."""
    value = fields.get(number, default)
    if not isinstance(value, int) or value < 0:
        raise PageError(f"field {number} of a header is not a size")
    return value


def read_pages(stream: IO[bytes], chunk: Chunk) -> Iterator[Page]:
    """Yield the data pages of a column of a row group.

    Raises `OversizedError` at a page of more than `MAX_PAGE_BYTES`, `PageError` at a damaged one.
    """
    offset = chunk.start
    # some old writers omit the first header from the length; Arrow allows for 100 bytes
    end = offset + chunk.length + 100
    remaining, dictionary = chunk.values, 0
    while remaining > 0 and offset < end:
        header, offset = _read_header(stream, offset, end)
        unpacked = _size(header, 2)
        if unpacked > MAX_PAGE_BYTES:
            raise OversizedError(
                f"a page unpacks to {unpacked:,} bytes, more than {MAX_PAGE_BYTES:,}"
            )
        offset += _size(header, 3)
        data = header.get(5, header.get(8))
        if header.get(1) == _DICTIONARY_PAGE:
            dictionary = unpacked
        elif isinstance(data, dict):
            values = _size(data, 1)
            remaining -= values
            encoding = data.get(2 if 5 in header else 4)
            largest = unpacked if encoding == _DELTA_BYTE_ARRAY else 0
            largest = dictionary if encoding in _DICTIONARY_ENCODINGS else largest
            yield Page(unpacked, values, largest)


def _read_header(stream: IO[bytes], offset: int, end: int) -> tuple[dict[int, Any], int]:
    """Read the page header at `offset`; return its fields and the offset of the page."""
    size = 256
    while True:
        stream.seek(offset)
        header = Thrift(stream.read(min(size, end - offset)))
        try:
            return header.struct(_PAGE), offset + header.offset
        except TooShortError:
            if size >= min(end - offset, _MAX_HEADER):
                raise
            size *= 16


def batch_rows(columns: Sequence[Sequence[Page]]) -> int:
    """Return the number of rows per batch for the pages of the flat columns of a row group.

    Raises `OversizedError` if even a single row can need too much memory.
    """
    pages_held = sum(max((page.held for page in pages), default=0) for pages in columns)
    rows = MOST_ROWS
    while (decoded := sum(_window(pages, rows) for pages in columns)) > BATCH_BYTES and rows > 1:
        rows //= 2
    needed = pages_held + 2 * decoded  # two batches: one is in use while the next is decoded
    if needed > MAX_BYTES:
        raise OversizedError(
            f"its columns unpack to {needed:,} bytes at once, more than {MAX_BYTES:,}"
        )
    return rows


def _window(pages: Sequence[Page], rows: int) -> int:
    """Return an upper bound on the decoded size of any `rows` consecutive values."""
    most = total = first = between = 0
    for last, page in enumerate(pages):
        total += page.bytes_of(rows)
        # a window of `rows` spans pages first to last if fewer values lie between them
        while first < last and between >= rows - 1:
            total -= pages[first].bytes_of(rows)
            first += 1
            between -= pages[first].values if first < last else 0
        most = max(most, total)
        between += page.values if first < last else 0
    return most
