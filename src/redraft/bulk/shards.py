"""Cut files of rows into numbered shards, deterministically, and read the rows of a shard.

Shards have a fixed number of lines (JSON lines) or rows (Parquet), so their content depends only on
the files and not on the workers. Knows no model.
"""

import gzip
import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import IO, Any

import numpy as np

from redraft.bulk.addresses import absolute, find_files, joined, opened
from redraft.data.parquet_rows import ParquetTable
from redraft.data.rows import Unreadable, decode, lines_of, parse_json
from redraft.errors import BulkError, PairsError
from redraft.mining.python_functions import MAX_FILE_BYTES, Source

LINES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
PARQUET = (".parquet",)
_COLUMNS = ("x", "content", "file", "package")  # of Parquet that are read, besides x.NAME
_CHUNK = 1 << 20
_LONGEST = 4 * MAX_FILE_BYTES  # a row can hold a whole source file, JSON-escaped


@dataclass(frozen=True)
class Piece:
    """A range of a file: `lines` lines (or rows) starting at `first`, or all remaining ones."""

    file: str
    first: int = 1
    lines: int | None = None
    offset: int = 0
    name: str = ""
    package: str = ""


@dataclass(frozen=True)
class Shard:
    """The unit of work: processed, and its output written, as a whole."""

    number: int
    pieces: tuple[Piece, ...]


def shard_from_json(value: Sequence[Any]) -> Shard:
    """Return the shard that `dataclasses.astuple` turned into JSON, for a worker."""
    number, pieces = value
    return Shard(number, tuple(Piece(*piece) for piece in pieces))


@dataclass(frozen=True)
class Row:
    """A value with its file and line (in Parquet the row number, from 1)."""

    file: str
    line: int
    value: Any

    def error(self, reason: object) -> PairsError:
        """Return an error that names this row."""
        return PairsError(f"{self.file}:{self.line}: {reason}")


@dataclass(frozen=True)
class Inputs:
    """All shards, the rows per shard, and a digest that identifies the inputs."""

    shards: tuple[Shard, ...]
    rows: int
    digest: str


def cut_files(addresses: Iterable[str], rows: int, *, without: str | None = None) -> Inputs:
    """Cut JSON lines and Parquet (files, folders or glob patterns) into shards of `rows` rows.

    Files in the folder `without`, the output of the job, are skipped even if a pattern matches.
    """
    excluded = None if without is None else joined(absolute(without), "")
    digest = hashlib.blake2b(digest_size=16)
    pieces: list[Piece] = []
    for address in addresses:
        for file in find_files(address, (*LINES, *PARQUET)):
            if excluded is not None and file.startswith(excluded):
                continue
            digest.update(os.fsencode(file))
            with opened(file) as stream:
                pieces += _cut(file, stream, rows, digest)
    if not pieces:
        raise BulkError("no rows in any of the files; name files of JSON lines or Parquet")
    shards = tuple(Shard(number, (piece,)) for number, piece in enumerate(pieces))
    return Inputs(shards, rows, digest.hexdigest())


def cut_sources(sources: Sequence[Source], rows: int) -> Inputs:
    """Cut Python files into shards of `rows` files."""
    digest = hashlib.blake2b(digest_size=16)
    pieces = []
    for source in sources:
        path = source.path.absolute()
        stat = path.stat()
        digest.update(os.fsencode(f"{path}\0{stat.st_size}\0{stat.st_mtime_ns}\0"))
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
        return [Piece(file)]  # gzip cannot be read from an offset
    return [Piece(file, 1 + i * rows, rows, offset) for i, offset in enumerate(starts)]


def _starts(stream: IO[bytes], rows: int, digest: Any) -> list[int]:
    """Return the offset of every `rows`-th line; reads the file once, in bounded memory."""
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
    while chunk := stream.read(_CHUNK):  # different rows can have the same footer
        digest.update(chunk)
    stream.seek(0)
    count = ParquetTable(stream, file).row_count
    return [Piece(file, 1 + start, rows) for start in range(0, count, rows)]


def read_rows(shard: Shard) -> Iterator[Row]:
    """Yield the rows of `shard` in order; raises `PairsError` at one that cannot be read."""
    for piece in shard.pieces:
        for line, value in _read_piece(piece):
            row = Row(piece.file, line, value)
            if isinstance(value, Unreadable):
                raise row.error(value.reason)
            yield row


def read_inputs(inputs: Inputs) -> Iterator[Row]:
    """Yield all rows of all files, reading each file once; Python sources are skipped.

    Raises `PairsError` at a row that cannot be read.
    """
    pieces = (piece for shard in inputs.shards for piece in shard.pieces)
    files = dict.fromkeys(piece.file for piece in pieces if not piece.name)
    for file in files:
        yield from read_rows(Shard(0, (Piece(file),)))


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
    lines = lines_of(plain, piece.file, longest=_LONGEST)
    for i, line in islice(lines, piece.lines):
        number = piece.first + i - 1
        text = line if isinstance(line, Unreadable) else decode(line)
        if isinstance(text, Unreadable):
            yield number, text
            continue
        text = text.removeprefix("\ufeff") if number == 1 else text
        if text.strip():
            yield number, parse_json(text)


def _parquet_rows(piece: Piece, stream: IO[bytes]) -> Iterator[tuple[int, Any]]:
    table = ParquetTable(stream, piece.file)
    first = piece.first - 1
    last = None if piece.lines is None else first + piece.lines
    wanted = [n for n in table.names if n in _COLUMNS or n.startswith("x.")]
    rows = table.rows(wanted, texts=set(wanted), first=first, last=last, longest=_LONGEST)
    for number, cells in rows:
        yield number, cells if isinstance(cells, Unreadable) else _nested(cells)


def _nested(cells: dict[str, Any]) -> dict[str, Any]:
    """Return the cells with columns `x.NAME` collected as the fields of x."""
    fields = {name[2:]: value for name, value in cells.items() if name.startswith("x.")}
    plain = {name: value for name, value in cells.items() if not name.startswith("x.")}
    return plain if "x" in plain or not fields else {**plain, "x": fields}


def _name(file: str) -> str:
    """Return the file part of an fsspec URL chain such as `zip://a.jsonl::s3://…`."""
    return file.partition("::")[0]
