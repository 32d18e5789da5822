"""Read raw rows of JSON lines, tables and parallel text files, in bounded memory.

A row is a value or the reason why it is unreadable. Knows bytes, lines and columns; `pairs`
validates examples.
"""

import codecs
import csv
import gzip
import io
import json
import logging
import shlex
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice, zip_longest
from operator import attrgetter
from pathlib import Path
from typing import IO, Any, Protocol

from redraft.errors import PairsError, listed, printable

log = logging.getLogger(__name__)

MAX_ROW_BYTES = 1 << 20
"""Maximum size of a row. Longer rows are reported, and never held in memory."""

NEWLINE_MARK = "§"
"""Represents a newline in files with one text per line."""

BAD_GZIP = (gzip.BadGzipFile, EOFError, zlib.error)
"""Exceptions raised by reading a damaged gzip file."""


@dataclass(frozen=True)
class BadRow:
    """An invalid row: its file, line and the reason, as printable text of bounded length."""

    file: str
    line: int
    reason: str
    row: Any = field(default=None, repr=False, compare=False)  # as far as it could be read

    def __post_init__(self) -> None:
        # reasons quote the file, which may contain terminal control sequences
        object.__setattr__(self, "reason", printable(self.reason))

    def to_json(self) -> dict[str, Any]:
        """Return file, line and reason as a JSON object, without the row."""
        return {"file": self.file, "line": self.line, "reason": self.reason}

    def __str__(self) -> str:
        return printable(f"{self.file}:{self.line}: {self.reason}")


@dataclass(frozen=True)
class Columns:
    """Input and output columns of a table; no inputs means `x`, or `x.*`."""

    inputs: tuple[str, ...] = ()
    output: str = "y"

    @property
    def arguments(self) -> str:
        """The options that name these columns on a command line; each begins with a space."""
        given = ["--x-columns", ",".join(self.inputs)] if self.inputs else []
        given += ["--y-column", self.output] if self.output != "y" else []
        return "".join(f" {shlex.quote(argument)}" for argument in given)


Row = tuple[int, Any]
"""A line number, and the parsed value or `Unreadable`."""


@dataclass(frozen=True)
class Unreadable:
    """The reason why a row has no value, and its text as far as it could be decoded."""

    reason: str
    text: str = ""


class Lines(Protocol):
    """A stream that is read line by line."""

    def readline(self, size: int, /) -> bytes:
        """Return the next line, or its first `size` bytes; empty at the end."""
        ...


def open_bytes(path: Path) -> IO[bytes] | gzip.GzipFile:
    """Open a file for reading bytes, decompressed if its name ends in .gz."""
    try:
        return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")
    except IsADirectoryError as error:
        raise PairsError(f"{path}: is a folder; name one file of pairs in it") from error
    except FileNotFoundError as error:
        raise PairsError(f"{path}: no such file; check the path") from error
    except OSError as error:
        raise PairsError(f"{path}: cannot be read ({error.strerror}); check the path") from error


@dataclass(frozen=True)
class _Utf16Lines:
    """The lines of a UTF-16 stream, encoded as UTF-8."""

    text: io.TextIOWrapper

    def readline(self, size: int, /) -> bytes:
        return self.text.readline(size).encode()


@contextmanager
def _as_utf8(stream: Any, name: str) -> Iterator[Lines]:
    """Yield `stream`, transcoded if it begins with a byte-order mark of UTF-16, as from Excel."""
    try:
        mark = stream.peek(2)[:2]
    except BAD_GZIP as error:
        raise PairsError(f"{name}: damaged gzip file ({error}); make it again") from error
    if mark not in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        yield stream
        return
    text = io.TextIOWrapper(stream, "utf-16", newline="\n")
    try:
        yield _Utf16Lines(text)
    finally:
        text.detach()


def lines_of(
    stream: Lines, name: str, *, longest: int = MAX_ROW_BYTES
) -> Iterator[tuple[int, bytes | Unreadable]]:
    """Yield the lines of an open file from its current position, without line ends.

    Lines over `longest` bytes are skipped without holding them, and yielded as `Unreadable`.
    """
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
    except BAD_GZIP as error:
        raise PairsError(f"{name}: damaged gzip file ({error}); make it again") from error
    except UnicodeError as error:
        raise PairsError(f"{name}: damaged UTF-16 ({error}); save the file as UTF-8") from error


def decode(line: bytes) -> str | Unreadable:
    """Decode a line as UTF-8; return `Unreadable` if it is not."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        shown = f"byte 0x{line[error.start]:02x} at column {error.start + 1}"
        text = line.decode("utf-8", errors="replace")
        return Unreadable(f"not UTF-8 ({shown}); save the file as UTF-8", text)


def read_text_lines(path: Path) -> Iterator[tuple[int, str | Unreadable]]:
    """Yield the lines of a file as text, without a byte-order mark."""
    with open_bytes(path) as stream, _as_utf8(stream, str(path)) as lines:
        for number, line in lines_of(lines, str(path)):
            text = line if isinstance(line, Unreadable) else decode(line)
            if number == 1 and isinstance(text, str):
                text = text.removeprefix("\ufeff")
            yield number, text


def read_json_lines(path: Path) -> Iterator[Row]:
    """Yield one JSON value per line, skipping blank lines."""
    for number, line in read_text_lines(path):
        if isinstance(line, Unreadable):
            yield number, line
        elif line.strip():
            yield number, parse_json(line)


def parse_json(line: str) -> Any:
    """Parse a line of JSON; return `Unreadable` if it is invalid."""
    try:
        value = json.loads(line)
        if "\\ud" in line.lower():  # escaped lone surrogates cannot be encoded
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        return Unreadable(f"not JSON ({error.msg} at column {error.colno})", line)
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        return Unreadable(f"not Unicode (half a character, {half}); remove the escape", line)
    except RecursionError:
        return Unreadable("JSON nested too deeply")
    except ValueError as error:
        return Unreadable(f"not usable JSON ({error})")
    return value


def _table_lines(path: Path, unreadable: dict[int, str]) -> Iterator[str]:
    """Yield lines for the CSV parser; record the unreadable ones in `unreadable`."""
    for number, line in read_text_lines(path):
        if isinstance(line, Unreadable):
            unreadable[number] = line.reason
            line = line.text
        yield line + "\n"


DELIMITERS = ",;\t|"
"""Delimiters of a table; of those that cut the header into most columns, the first is used."""


def _delimiter(header: str) -> str:
    """Return the delimiter of a table, by its header: Excel writes `;` in many countries."""

    def columns(delimiter: str) -> int:
        try:
            return len(next(csv.reader([header], delimiter=delimiter), ()))
        except csv.Error:  # reported by the reader of the rows
            return 0

    return max(DELIMITERS, key=columns)


def _table_cells(
    path: Path, *, delimiter: str | None
) -> Iterator[tuple[int, list[str] | Unreadable]]:
    """Yield the cells of each row with its first line."""
    unreadable: dict[int, str] = {}
    # limits the memory that an unclosed quote can use
    csv.field_size_limit(MAX_ROW_BYTES)
    lines = _table_lines(path, unreadable)
    header = list(islice(lines, 1))
    delimiter = delimiter or _delimiter("".join(header))
    reader = csv.reader(chain(header, lines), delimiter=delimiter, strict=True)
    while True:
        first = reader.line_num + 1
        cells: list[str] | Unreadable | None
        try:
            cells = next(reader, None)
        except csv.Error as error:
            cells = Unreadable(f"not a well-formed row ({error}); check its quotes")
        if cells is None:
            return
        reasons = [unreadable.pop(n) for n in range(first, reader.line_num + 1) if n in unreadable]
        yield first, Unreadable(reasons[0]) if reasons else cells


def read_table(path: Path, columns: Columns, *, delimiter: str | None = None) -> Iterator[Row]:
    """Yield the rows of a CSV or TSV file as JSON-like pairs; the first line is the header.

    Without a `delimiter` the header decides.
    """
    rows = _table_cells(path, delimiter=delimiter)
    line, header = next(rows, (1, None))
    if header is None:
        return
    if isinstance(header, Unreadable):
        raise PairsError(f"{path}:{line}: {header.reason}")
    layout = Layout.of(header, columns, f"{path}:1")
    for line, cells in rows:
        if isinstance(cells, Unreadable):
            yield line, cells
        elif cells and len(cells) != len(header):
            yield (
                line,
                Unreadable(f"expected {len(header)} columns, got {len(cells)}", " | ".join(cells)),
            )
        elif cells:
            yield line, layout.pair(dict(zip(header, cells, strict=True)))


@dataclass(frozen=True)
class Layout:
    """The columns of x, y and meta in a table; columns of neither x nor y are meta."""

    inputs: Mapping[str, str]
    output: str
    meta: Mapping[str, str]

    @classmethod
    def of(
        cls,
        header: Sequence[str],
        columns: Columns,
        source: str,
        *,
        spell: Callable[[Columns], str] = attrgetter("arguments"),
    ) -> "Layout":
        """Return the layout of a table with this header; raise `PairsError` for missing columns.

        `spell` writes columns as the user would, for the advice of the error.
        """
        counts = Counter(header)
        if columns.inputs:
            inputs = {name: name for name in columns.inputs}
        elif "x" in counts:
            inputs = {"x": "x"}
        else:
            inputs = {name[2:]: name for name in header if name.startswith("x.")} or {"x": "x"}
        for name in (*inputs.values(), columns.output):
            if not counts[name]:
                raise PairsError(
                    f"{source}: no column {name!r}, found {listed(map(repr, header))}; "
                    f"rename it or name yours, such as with{spell(_first_two(header))}"
                )
            if counts[name] > 1:
                raise PairsError(f"{source}: two columns are named {name!r}; rename one")
        used = {*inputs.values(), columns.output}
        # a column without a name, as spreadsheets add them at the end, has no key
        others = [name for name in counts if name.strip() and name not in used]
        for name in others:
            if counts[name] > 1:
                log.warning("%s: two columns are named %r; the last one is kept", source, name)
        others += [name for name in used if name.startswith("meta.")]
        meta = {name.removeprefix("meta."): name for name in others}
        return cls(inputs, columns.output, meta)

    def pair(self, cells: Mapping[str, Any]) -> dict[str, Any]:
        """Return a table row in the form of a JSON-lines row."""
        x = {field: cells[name] for field, name in self.inputs.items()}
        return {
            "x": x["x"] if self.inputs == {"x": "x"} else x,
            "y": cells[self.output],
            "meta": {key: cells[name] for key, name in self.meta.items()},
        }


def _first_two(header: Sequence[str]) -> Columns:
    first, second = (*header, "…", "…")[:2]
    return Columns((first,), second)


def read_parallel(path: Path, parse_input: Callable[[str], Any] = str) -> Iterator[Row]:
    """Yield the lines of NAME.in paired with those of NAME.out; `§` is a newline in both."""
    packed = ".gz" if path.suffix == ".gz" else ""
    outputs_path = Path(str(path).removesuffix(packed).removesuffix(".in") + ".out" + packed)
    if path.exists() and not outputs_path.exists():
        raise PairsError(f"{outputs_path}: no such file; {path.name} needs its outputs beside it")
    inputs, outputs = read_text_lines(path), read_text_lines(outputs_path)
    ends = None, None
    for number, sides in enumerate(zip_longest(inputs, outputs, fillvalue=ends), start=1):
        x, y = (side[1] for side in sides)
        if x is None or y is None:
            shorter, longer = (path, outputs_path) if x is None else (outputs_path, path)
            yield number, Unreadable(f"{shorter.name} ends before {longer.name}; they must match")
            return
        if isinstance(x, Unreadable) or isinstance(y, Unreadable):
            yield number, x if isinstance(x, Unreadable) else y
            continue
        x, y = x.replace(NEWLINE_MARK, "\n"), y.replace(NEWLINE_MARK, "\n")
        try:
            yield number, {"x": parse_input(x), "y": y}
        except ValueError as error:
            yield number, Unreadable(str(error))
