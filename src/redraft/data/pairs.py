"""Read and write files of pairs: every row is a valid example, or reported with its reason.

Validates examples; the file formats are in `rows`. Knows no tokens.
"""

import json
import os
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redraft.data import hearthstone
from redraft.data.parquet_rows import read_parquet
from redraft.data.rows import MAX_ROW_BYTES, BadRow, Row, Unreadable, read_json_lines, read_parallel
from redraft.data.tables import Columns, read_table
from redraft.errors import PairsError, listed
from redraft.types import Example, as_input, meta_problem

Reader = Callable[[Path, Columns], Iterator[Row]]

READERS: dict[str, Reader] = {
    ".jsonl": lambda path, _: read_json_lines(path),
    ".ndjson": lambda path, _: read_json_lines(path),
    ".csv": lambda path, columns: read_table(path, columns),
    ".tsv": lambda path, columns: read_table(path, columns, delimiter="\t"),
    ".parquet": read_parquet,
    "_hs.in": lambda path, _: read_parallel(path, hearthstone.parse_card),
    ".in": lambda path, _: read_parallel(path),
}
"""Readers by file ending (without .gz); the first match is used."""


def is_pairs(path: Path) -> bool:
    """Return True if the file has the ending of a supported pairs format."""
    return path.name.removesuffix(".gz").endswith(tuple(READERS))


def _reader(path: Path) -> Reader:
    if path.is_dir():
        raise PairsError(f"{path}: is a folder; name one file of pairs in it")
    name = path.name.removesuffix(".gz")
    for ending, reader in READERS.items():
        if name.endswith(ending):
            return reader
    if name.lower().endswith((".xlsx", ".xls", ".ods")):
        raise PairsError(f"{path}: is a spreadsheet; save the sheet as CSV and name that file")
    endings = ", ".join(ending for ending in READERS if ending.startswith("."))
    raise PairsError(f"{path}: unknown file format; the name must end in {endings} (or .gz)")


def example_or_reason(value: Any, fields: tuple[str, ...] | None) -> Example | str:
    """Return the example in a JSON-like `value`, or the reason why it is invalid.

    `fields` are the fields of x in the first valid row; all rows must have the same.
    """
    if not isinstance(value, dict):
        return f"expected an object with keys x and y, got {type(value).__name__}"
    missing = [key for key in ("x", "y") if key not in value]
    if missing:
        return f"expected keys x and y, got {listed(value) or 'none'}"
    x, y, meta = value["x"], value["y"], value.get("meta") or {}
    if not isinstance(x, str | dict):
        return f"x must be text or an object of texts, got {type(x).__name__}"
    x = as_input(x)
    wrong = [name for name, text in x.items() if not isinstance(text, str)]
    if wrong:
        kind = type(x[wrong[0]]).__name__
        return f"field {wrong[0][:80]!r} of x must be text, got {kind}"
    if not isinstance(y, str):
        return f"y must be text, got {type(y).__name__}"
    if not isinstance(meta, dict):
        return f"meta must be an object, got {type(meta).__name__}"
    if reason := meta_problem(meta):
        return reason
    if not any(text.strip() for text in x.values()):
        return "x is empty"
    if not y.strip():
        return "y is empty"
    if sum(map(len, x.values())) + len(y) > MAX_ROW_BYTES:
        return f"longer than {MAX_ROW_BYTES:,} characters; shorten or split it"
    fields = fields or tuple(x)
    if {*x} != {*fields}:
        return f"fields of x differ: the first row has {listed(fields)}; this one {listed(x)}"
    return Example({name: x[name] for name in fields}, y, meta)


def scan_numbered(
    path: str | os.PathLike[str], columns: Columns | None = None
) -> Iterator[tuple[int, Example | BadRow]]:
    """Yield every row with its line, in bounded memory: an example or a BadRow."""
    path = Path(path)
    fields: tuple[str, ...] | None = None
    rows = _reader(path)(path, columns or Columns())
    empty = True
    for line, value in rows:
        empty = False
        outcome = (
            value.reason if isinstance(value, Unreadable) else example_or_reason(value, fields)
        )
        if isinstance(outcome, str):
            row = value.text if isinstance(value, Unreadable) else value
            yield line, BadRow(str(path), line, outcome, row)
            continue
        fields = fields or tuple(outcome.x)
        yield line, outcome
    if empty:
        raise PairsError(f"{path}: holds no pairs; a row is an input and its output")


def read_numbered(
    path: str | os.PathLike[str], columns: Columns | None = None
) -> Iterator[tuple[int, Example]]:
    """Yield the examples of the file with their lines; raise `PairsError` at the first bad row."""
    columns = columns or Columns()
    for line, outcome in scan_numbered(path, columns):
        if isinstance(outcome, BadRow):
            command = f"redraft check {shlex.quote(str(path))}{columns.arguments}"
            raise PairsError(f"{outcome} (`{command}` lists every bad row)")
        yield line, outcome


@dataclass
class BadRowFile:
    """A file of JSON lines for bad rows that are skipped: line, reason and the row itself."""

    path: Path
    count: int = 0

    def good_rows(self, outcomes: Iterable[tuple[int, Example | BadRow]]) -> Iterator[Example]:
        """Yield the examples, and write the bad rows; without any, there is no file."""
        self.path.unlink(missing_ok=True)  # of an earlier command
        for _, outcome in outcomes:
            if isinstance(outcome, Example):
                yield outcome
                continue
            self.count += 1
            with self.path.open("a", encoding="utf-8", errors="backslashreplace") as stream:
                row = {**outcome.to_json(), "row": outcome.row}
                stream.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")


def read_pairs(path: str | os.PathLike[str], columns: Columns | None = None) -> list[Example]:
    """Return all examples of the file; raise `PairsError` at the first bad row."""
    return [example for _, example in read_numbered(path, columns)]


def write_pairs(examples: Iterable[Example], path: Path) -> int:
    """Write the examples as JSON lines atomically, creating the folder; return their number."""
    if path.suffix not in (".jsonl", ".ndjson"):
        raise PairsError(f"{path}: pairs are written as JSON lines; let the name end in .jsonl")
    count = 0
    partial = path.with_name(path.name + ".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = partial.open("wb")
    except OSError as error:
        raise PairsError(f"{path}: cannot be written ({error.strerror})") from error
    try:
        with stream:
            for count, example in enumerate(examples, start=1):  # noqa: B007
                stream.write(example.to_line())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return count
