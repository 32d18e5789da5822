"""Raw rows of a file, one format each: a value or the reason why there is none, in bounded memory.

Knows bytes, lines and columns; does not know what makes a row a good example (`pairs` does).
"""

import csv
import gzip
import json
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from redraft.errors import MissingExtraError, PairsError

MAX_ROW_BYTES = 1 << 20
"""The longest row that is read. Longer ones are reported, and never held in memory."""

NEWLINE_MARK = "§"
"""Stands for a newline in files that hold one text a line."""

_BAD_GZIP = (gzip.BadGzipFile, EOFError, zlib.error)


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be used: where it stands and why."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are the input and the output; no inputs named: `x`, or `x.*`."""

    inputs: tuple[str, ...] = ()
    output: str = "y"


Row = tuple[int, Any]
"""A line number, and the parsed value or a reason (`Unreadable`) why there is none."""


@dataclass(frozen=True)
class Unreadable:
    """Why a row has no value, and what of its text can be told."""

    reason: str
    text: str = ""


def open_bytes(path: Path) -> IO[bytes] | gzip.GzipFile:
    """The file's bytes, unpacked if its name ends in .gz."""
    try:
        return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")
    except IsADirectoryError as error:
        raise PairsError(f"{path}: is a folder; name one file of pairs in it") from error
    except FileNotFoundError as error:
        raise PairsError(f"{path}: no such file; check the path") from error
    except OSError as error:
        raise PairsError(f"{path}: cannot be read ({error.strerror}); check the path") from error


def read_lines(path: Path) -> Iterator[tuple[int, bytes | Unreadable]]:
    """The file's lines without their ends; an over-long one is skipped, not held."""
    with open_bytes(path) as stream:
        yield from lines_of(stream, str(path))


def lines_of(
    stream: IO[bytes] | gzip.GzipFile, name: str, *, longest: int = MAX_ROW_BYTES
) -> Iterator[tuple[int, bytes | Unreadable]]:
    """The same of any open file, from where it stands."""
    number = 0
    try:
        while line := stream.readline(longest + 1):
            number += 1
            if len(line) <= longest:
                yield number, line.rstrip(b"\r\n")
                continue
            while line and not line.endswith(b"\n"):
                line = stream.readline(longest)
            yield number, Unreadable(f"longer than {longest:,} bytes; shorten or split it")
    except _BAD_GZIP as error:
        raise PairsError(f"{name}: damaged gzip file ({error}); make it again") from error


def decode(line: bytes) -> str | Unreadable:
    """The text of a line, or why it has none."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        shown = f"byte 0x{line[error.start]:02x} at column {error.start + 1}"
        text = line.decode("utf-8", errors="replace")
        return Unreadable(f"not UTF-8 ({shown}); save the file as UTF-8", text)


def read_text_lines(path: Path) -> Iterator[tuple[int, str | Unreadable]]:
    """The file's lines as text, a byte-order mark removed."""
    for number, line in read_lines(path):
        text = line if isinstance(line, Unreadable) else decode(line)
        if number == 1 and isinstance(text, str):
            text = text.removeprefix("\ufeff")
        yield number, text


def read_json_lines(path: Path) -> Iterator[Row]:
    """One JSON value a line; blank lines are passed over."""
    for number, line in read_text_lines(path):
        if isinstance(line, Unreadable):
            yield number, line
        elif line.strip():
            yield number, parse_json(line)


def parse_json(line: str) -> Any:
    """The value of a line of JSON, or why it has none."""
    try:
        value = json.loads(line)
        if "\\ud" in line.lower():  # an escape can spell half a character, which no file can hold
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        return Unreadable(f"not JSON ({error.msg} at column {error.colno})")
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        return Unreadable(f"not Unicode (half a character, {half}); remove the escape")
    except RecursionError:
        return Unreadable("JSON nested too deeply")
    except ValueError as error:
        return Unreadable(f"not usable JSON ({error})")
    return value


def _table_lines(path: Path, unreadable: dict[int, str]) -> Iterator[str]:
    """Lines for the CSV parser, with their quotes; those that cannot be read are noted."""
    for number, line in read_text_lines(path):
        if isinstance(line, Unreadable):
            unreadable[number] = line.reason
            line = line.text
        yield line + "\n"


def _table_cells(path: Path, *, delimiter: str) -> Iterator[tuple[int, list[str] | Unreadable]]:
    """The cells of each row, with the line on which it begins."""
    unreadable: dict[int, str] = {}
    # the csv module's own limit; a quote that is never closed runs into it instead of into memory
    csv.field_size_limit(MAX_ROW_BYTES)
    reader = csv.reader(_table_lines(path, unreadable), delimiter=delimiter, strict=True)
    while True:
        first = reader.line_num + 1
        cells: list[str] | Unreadable | None
        try:
            cells = next(reader, None)
        except csv.Error as error:
            cells = Unreadable(f"not a well-formed row ({error}); check its quotes")
        if cells is None:
            return
        noted = [unreadable.pop(n) for n in range(first, reader.line_num + 1) if n in unreadable]
        yield first, Unreadable(noted[0]) if noted else cells


def read_table(path: Path, columns: Columns, *, delimiter: str) -> Iterator[Row]:
    """The rows of a CSV or TSV file as JSON-like pairs, by the names in its first line."""
    rows = _table_cells(path, delimiter=delimiter)
    line, header = next(rows, (1, None))
    if header is None:
        return
    if isinstance(header, Unreadable):
        raise PairsError(f"{path}:{line}: {header.reason}")
    layout = Layout.of(header, columns, path)
    for line, cells in rows:
        if isinstance(cells, Unreadable):
            yield line, cells
        elif cells and len(cells) != len(header):
            yield line, Unreadable(f"expected {len(header)} columns, got {len(cells)}")
        elif cells:
            yield line, layout.pair(dict(zip(header, cells, strict=True)))


@dataclass(frozen=True)
class Layout:
    """Where a table keeps x, y and meta."""

    inputs: Mapping[str, str]
    output: str
    meta: Mapping[str, str]

    @classmethod
    def of(cls, header: list[str], columns: Columns, path: Path) -> "Layout":
        """The layout of a table with this header, or an error that names the missing column."""
        if columns.inputs:
            inputs = {name: name for name in columns.inputs}
        elif "x" in header:
            inputs = {"x": "x"}
        else:
            inputs = {name[2:]: name for name in header if name.startswith("x.")} or {"x": "x"}
        missing = [name for name in (*inputs.values(), columns.output) if name not in header]
        if missing:
            raise PairsError(
                f"{path}:1: no column {missing[0]!r}, found {', '.join(map(repr, header))}; "
                "rename it or name yours with --x-columns and --y-column"
            )
        twice = [name for name in (*inputs.values(), columns.output) if header.count(name) > 1]
        if twice:
            raise PairsError(f"{path}:1: two columns are named {twice[0]!r}; rename one")
        meta = {name[5:]: name for name in header if name.startswith("meta.")}
        return cls(inputs, columns.output, meta)

    def pair(self, cells: Mapping[str, Any]) -> dict[str, Any]:
        """A table row in the shape of a JSON-lines row."""
        x = {field: cells[name] for field, name in self.inputs.items()}
        # a column `x.name` is a field even if it is the only one
        plain = len(x) == 1 and [*self.inputs] == [*self.inputs.values()]
        return {
            "x": next(iter(x.values())) if plain else x,
            "y": cells[self.output],
            "meta": {key: cells[name] for key, name in self.meta.items()},
        }


def read_parquet(path: Path, columns: Columns) -> Iterator[Row]:
    """The rows of a Parquet file as JSON-like pairs; the line is the row's number, from 1."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        purpose = f"reading {path.name}"
        raise MissingExtraError("pyarrow", extra="parquet", purpose=purpose) from error
    with open_bytes(path) as stream:
        try:
            table = parquet.ParquetFile(stream)
            layout = Layout.of(table.schema_arrow.names, columns, path)
            used = sorted({*layout.inputs.values(), layout.output, *layout.meta.values()})
            batches = table.iter_batches(batch_size=4096, columns=used)
            rows = (cells for batch in batches for cells in batch.to_pylist())
            for number, cells in enumerate(rows, start=1):
                yield number, layout.pair(cells)
        except (ArrowException, OSError, *_BAD_GZIP) as error:
            raise PairsError(f"{path}: not a Parquet file ({error}); make it again") from error


def read_parallel(path: Path, parse_input: Callable[[str], Any] = str) -> Iterator[Row]:
    """Line i of NAME.in with line i of NAME.out, `§` standing for a newline in both."""
    packed = ".gz" if path.suffix == ".gz" else ""
    outputs_path = Path(str(path).removesuffix(packed).removesuffix(".in") + ".out" + packed)
    if path.exists() and not outputs_path.exists():
        raise PairsError(f"{outputs_path}: no such file; {path.name} needs its outputs beside it")
    inputs, outputs = read_text_lines(path), read_text_lines(outputs_path)
    for number in range(1, sys.maxsize):
        x, y = next(inputs, None), next(outputs, None)
        if x is None and y is None:
            return
        if x is None or y is None:
            shorter, longer = (path, outputs_path) if x is None else (outputs_path, path)
            yield number, Unreadable(f"{shorter.name} ends before {longer.name}; they must match")
            return
        parts = [side[1] for side in (x, y)]
        bad = [part for part in parts if isinstance(part, Unreadable)]
        if bad:
            yield number, bad[0]
            continue
        texts = [str(part).replace(NEWLINE_MARK, "\n") for part in parts]
        try:
            yield number, {"x": parse_input(texts[0]), "y": texts[1]}
        except ValueError as error:
            yield number, Unreadable(str(error))
