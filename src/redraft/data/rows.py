"""Read raw rows of JSON lines and parallel text files, in bounded memory.

A row is a value or the reason why it is unreadable. Knows bytes and lines; `tables` knows columns,
and `pairs` validates examples.
"""

import codecs
import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import IO, Any, Protocol

from redraft.errors import PairsError, printable

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
