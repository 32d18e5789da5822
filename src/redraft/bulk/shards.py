"""Files of rows to numbered shards, always the same ones, and a shard to its rows.

JSON lines are cut after so many lines and Parquet after so many rows, so that what a shard holds
depends on the files alone, and not on who works through them. Knows no model.
"""

import gzip
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import IO, Any

import numpy as np

from redraft.bulk.addresses import absolute, find_files, joined, opened
from redraft.data.python_functions import MAX_FILE_BYTES, Source
from redraft.data.rows import Unreadable, decode, lines_of, parse_json
from redraft.errors import BulkError, MissingExtraError, PairsError

LINES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
PARQUET = (".parquet",)
_CHUNK = 1 << 20
_LONGEST = 4 * MAX_FILE_BYTES  # a row can hold a whole source, with escapes


@dataclass(frozen=True)
class Piece:
    """A stretch of a file: so many lines (or rows) from the first on, or all that are left."""

    file: str
    first: int = 1
    lines: int | None = None
    offset: int = 0
    name: str = ""
    package: str = ""


@dataclass(frozen=True)
class Shard:
    """What is worked through, and written, at a time."""

    number: int
    pieces: tuple[Piece, ...]

    def to_json(self) -> list[Any]:
        """The shard for a worker."""
        pieces = [
            [each.file, each.first, each.lines, each.offset, each.name, each.package]
            for each in self.pieces
        ]
        return [self.number, pieces]

    @classmethod
    def from_json(cls, value: Sequence[Any]) -> "Shard":
        """The shard that `to_json` wrote."""
        return cls(value[0], tuple(Piece(*piece) for piece in value[1]))


@dataclass(frozen=True)
class Row:
    """A value, with the file and the line (of Parquet: the row, from 1) where it stands."""

    file: str
    line: int
    value: Any

    def error(self, reason: object) -> PairsError:
        """The row as the reason why nothing more can be done."""
        return PairsError(f"{self.file}:{self.line}: {reason}")


@dataclass(frozen=True)
class Inputs:
    """All shards of so many rows, and a digest by which other inputs are told from these."""

    shards: tuple[Shard, ...]
    rows: int
    digest: str


def cut_files(addresses: Iterable[str], rows: int, *, without: str | None = None) -> Inputs:
    """The shards of JSON lines and Parquet: files, folders of them, or patterns.

    What stands in the folder `without` is left out: the output of a job is no input of it, though
    a pattern may name both.
    """
    left_out = None if without is None else joined(absolute(without), "")
    digest = hashlib.blake2b(digest_size=16)
    pieces: list[Piece] = []
    for address in addresses:
        for file in find_files(address, (*LINES, *PARQUET)):
            if left_out is not None and file.startswith(left_out):
                continue
            digest.update(file.encode())
            with opened(file) as stream:
                pieces += _cut(file, stream, rows, digest)
    if not pieces:
        raise BulkError("no rows in any of the files; name files of JSON lines or Parquet")
    shards = tuple(Shard(number, (piece,)) for number, piece in enumerate(pieces))
    return Inputs(shards, rows, digest.hexdigest())


def cut_sources(sources: Sequence[Source], rows: int) -> Inputs:
    """The shards of Python files, so many files in each."""
    digest = hashlib.blake2b(digest_size=16)
    pieces = []
    for source in sources:
        path = source.path.absolute()
        about = path.stat()
        digest.update(f"{path}\0{about.st_size}\0{about.st_mtime_ns}\0".encode())
        pieces.append(Piece(str(path), name=source.name, package=source.package))
    shards = tuple(
        Shard(number, tuple(pieces[start : start + rows]))
        for number, start in enumerate(range(0, len(pieces), rows))
    )
    return Inputs(shards, rows, digest.hexdigest())


def _cut(file: str, stream: IO[bytes], rows: int, digest: Any) -> list[Piece]:
    name = _name(file)
    if name.endswith(PARQUET):
        return _cut_parquet(file, stream, rows, digest)
    if not name.endswith(LINES):
        raise BulkError(f"{file}: shards are read from {', '.join((*LINES, *PARQUET))}")
    starts = _starts(stream, rows, digest)
    if name.endswith(".gz"):
        return [Piece(file)]  # packed lines are found from the first on only
    return [Piece(file, 1 + at * rows, rows, offset) for at, offset in enumerate(starts)]


def _starts(stream: IO[bytes], rows: int, digest: Any) -> list[int]:
    """Where every so many lines begin; the file is read once, in bounded memory."""
    starts, offset, lines = [0], 0, 0
    while chunk := stream.read(_CHUNK):
        digest.update(chunk)
        ends = np.flatnonzero(np.frombuffer(chunk, np.uint8) == ord("\n"))
        first = rows - 1 - lines % rows
        starts += (offset + 1 + ends[first::rows]).tolist()
        lines += len(ends)
        offset += len(chunk)
    return [start for start in starts if start < offset]


def _cut_parquet(file: str, stream: IO[bytes], rows: int, digest: Any) -> list[Piece]:
    while chunk := stream.read(_CHUNK):  # the footer alone can be that of other rows
        digest.update(chunk)
    stream.seek(0)
    count = _parquet(file, stream).metadata.num_rows
    return [Piece(file, 1 + start, rows) for start in range(0, count, rows)]


def read_rows(shard: Shard) -> Iterator[Row]:
    """The rows of a shard, in order; one that cannot be read is an error."""
    for piece in shard.pieces:
        for line, value in _read_piece(piece):
            row = Row(piece.file, line, value)
            if isinstance(value, Unreadable):
                raise row.error(value.reason)
            yield row


def _read_piece(piece: Piece) -> Iterator[tuple[int, Any]]:
    name = _name(piece.file)
    with opened(piece.file) as stream:
        if name.endswith(PARQUET):
            yield from _parquet_rows(piece, stream)
        elif name.endswith(LINES):
            yield from _json_rows(piece, stream)
        else:
            content = stream.read(MAX_FILE_BYTES + 1)
            yield 1, {"content": content, "file": piece.name, "package": piece.package}


def _json_rows(piece: Piece, stream: IO[bytes]) -> Iterator[tuple[int, Any]]:
    stream.seek(piece.offset)
    plain = gzip.GzipFile(fileobj=stream) if piece.file.endswith(".gz") else stream
    for at, line in islice(lines_of(plain, piece.file, longest=_LONGEST), piece.lines):
        number = piece.first + at - 1
        text = line if isinstance(line, Unreadable) else decode(line)
        if isinstance(text, Unreadable):
            yield number, text
            continue
        text = text.removeprefix("\ufeff") if number == 1 else text
        if text.strip():
            yield number, parse_json(text)


def _parquet_rows(piece: Piece, stream: IO[bytes]) -> Iterator[tuple[int, Any]]:
    table = _parquet(piece.file, stream)
    first = piece.first - 1
    last = first + (piece.lines or 0)
    groups, start, seen = [], 0, 0
    for group in range(table.metadata.num_row_groups):
        end = seen + table.metadata.row_group(group).num_rows
        if seen < last and end > first:
            groups.append(group)
            start = seen if len(groups) == 1 else start
        seen = end
    wanted = [name for name in table.schema_arrow.names if _is_wanted(name)]
    batches = table.iter_batches(batch_size=4096, row_groups=groups, columns=wanted)
    rows = (cells for batch in batches for cells in batch.to_pylist())
    with _telling_of_parquet(piece.file):
        for at, cells in enumerate(islice(rows, first - start, last - start)):
            yield piece.first + at, _nested(cells)


def _is_wanted(name: str) -> bool:
    return name in ("x", "content", "file", "package") or name.startswith("x.")


def _nested(cells: dict[str, Any]) -> dict[str, Any]:
    """Columns `x.NAME` as the fields of x."""
    fields = {name[2:]: value for name, value in cells.items() if name.startswith("x.")}
    plain = {name: value for name, value in cells.items() if not name.startswith("x.")}
    return plain if "x" in plain or not fields else {**plain, "x": fields}


def _parquet(file: str, stream: IO[bytes]) -> Any:
    with _telling_of_parquet(file):
        from pyarrow import parquet

        return parquet.ParquetFile(stream)


@contextmanager
def _telling_of_parquet(file: str) -> Iterator[None]:
    try:
        from pyarrow import ArrowException
    except ImportError as error:
        purpose = f"reading {file}"
        raise MissingExtraError("pyarrow", extra="parquet", purpose=purpose) from error
    try:
        yield
    except (ArrowException, OSError) as error:
        said = str(error).splitlines()[0]
        raise PairsError(f"{file}: not a Parquet file ({said}); make it again") from error


def _name(file: str) -> str:
    """The name of a file, without the archive that it may be in."""
    return file.partition("::")[0]
