"""Files of pairs to examples: every row is either a good example or reported with its reason.

Knows what a good example is; leaves the formats to `rows`, and knows no tokens.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from redraft.data import hearthstone
from redraft.data.example import Example, as_input
from redraft.data.rows import (
    MAX_ROW_BYTES,
    BadRow,
    Columns,
    Row,
    Unreadable,
    read_json_lines,
    read_parallel,
    read_parquet,
    read_table,
)
from redraft.errors import PairsError

Reader = Callable[[Path, Columns], Iterator[Row]]

READERS: dict[str, Reader] = {
    ".jsonl": lambda path, _: read_json_lines(path),
    ".ndjson": lambda path, _: read_json_lines(path),
    ".csv": lambda path, columns: read_table(path, columns, delimiter=","),
    ".tsv": lambda path, columns: read_table(path, columns, delimiter="\t"),
    ".parquet": read_parquet,
    "_hs.in": lambda path, _: read_parallel(path, hearthstone.parse_card),
    ".in": lambda path, _: read_parallel(path),
}
"""How a file is read, by the end of its name (before any .gz). The first that fits is taken."""


def is_pairs(path: Path) -> bool:
    """Whether the end of the file's name is one that pairs have."""
    return path.name.removesuffix(".gz").endswith(tuple(READERS))


def _reader(path: Path) -> Reader:
    if path.is_dir():
        raise PairsError(f"{path}: is a folder; name one file of pairs in it")
    name = path.name.removesuffix(".gz")
    for ending, reader in READERS.items():
        if name.endswith(ending):
            return reader
    known = ", ".join(ending for ending in READERS if ending.startswith("."))
    raise PairsError(f"{path}: unknown kind of file; its name must end in one of {known} (or .gz)")


def _example_or_reason(value: Any, fields: tuple[str, ...] | None) -> Example | str:
    """The example in a JSON-like row, or why there is none; `fields` are those of the first row."""
    if not isinstance(value, dict):
        return f"expected an object with keys x and y, got {type(value).__name__}"
    missing = [key for key in ("x", "y") if key not in value]
    if missing:
        return f"expected keys x and y, got {', '.join(map(str, value)) or 'none'}"
    x, y, meta = value["x"], value["y"], value.get("meta") or {}
    if not isinstance(x, str | dict):
        return f"x must be text or an object of texts, got {type(x).__name__}"
    x = as_input(x)
    wrong = [name for name, text in x.items() if not isinstance(text, str)]
    if wrong:
        return f"field {wrong[0]!r} of x must be text, got {type(x[wrong[0]]).__name__}"
    if not isinstance(y, str):
        return f"y must be text, got {type(y).__name__}"
    if not isinstance(meta, dict):
        return f"meta must be an object, got {type(meta).__name__}"
    if not any(text.strip() for text in x.values()):
        return "x is empty"
    if not y.strip():
        return "y is empty"
    if sum(map(len, x.values())) + len(y) > MAX_ROW_BYTES:
        return f"longer than {MAX_ROW_BYTES:,} characters; shorten or split it"
    fields = fields or tuple(x)
    if {*x} != {*fields}:
        return f"fields of x differ: the first row has {', '.join(fields)}; this one {', '.join(x)}"
    return Example({name: x[name] for name in fields}, y, meta)


def scan_numbered(
    path: str | os.PathLike[str], columns: Columns | None = None
) -> Iterator[tuple[int, Example | BadRow]]:
    """Every row with its line, in order and in bounded memory: an example, or what is wrong."""
    path = Path(path)
    fields: tuple[str, ...] | None = None
    rows = _reader(path)(path, columns or Columns())
    empty = True
    for line, value in rows:
        empty = False
        outcome = (
            value.reason if isinstance(value, Unreadable) else _example_or_reason(value, fields)
        )
        if isinstance(outcome, str):
            yield line, BadRow(str(path), line, outcome)
            continue
        fields = fields or tuple(outcome.x)
        yield line, outcome
    if empty:
        raise PairsError(f"{path}: holds no pairs; a row is an input and its output")


def scan_pairs(
    path: str | os.PathLike[str], columns: Columns | None = None
) -> Iterator[Example | BadRow]:
    """Every row of the file, as `scan_numbered` gives them, without the lines."""
    return (outcome for _, outcome in scan_numbered(path, columns))


def read_numbered(
    path: str | os.PathLike[str], columns: Columns | None = None
) -> Iterator[tuple[int, Example]]:
    """The examples of the file, one by one, each with its line; the first bad row is an error."""
    for line, outcome in scan_numbered(path, columns):
        if isinstance(outcome, BadRow):
            raise PairsError(f"{outcome} (`redraft check {path}` lists every bad row)")
        yield line, outcome


def read_pairs(path: str | os.PathLike[str], columns: Columns | None = None) -> list[Example]:
    """All examples of the file; the first bad row is an error."""
    return [example for _, example in read_numbered(path, columns)]


def write_pairs(examples: Iterable[Example], path: Path) -> int:
    """Write the examples as JSON lines, whole or not at all, in a folder that is made if need be.

    Returns how many they are.
    """
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
