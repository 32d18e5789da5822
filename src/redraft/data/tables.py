"""Read tables: CSV and TSV files, and which of their columns are x, y and meta.

Other columns than those of x and y become meta. The bytes and lines are those of `rows`.
"""

import csv
import logging
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path
from typing import Any

from redraft.data.rows import MAX_ROW_BYTES, Row, Unreadable, read_text_lines
from redraft.errors import PairsError, listed
from redraft.types import TEXT_FIELD

log = logging.getLogger(__name__)


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
    """Yield the cells of each row that is not blank, with its first line."""
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
        if reasons:
            cells = Unreadable(reasons[0])
        if isinstance(cells, Unreadable) or any(map(str.strip, cells)):
            yield first, cells


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
        elif len(cells) == len(header):
            yield line, layout.pair(dict(zip(header, cells, strict=True)))
        else:
            yield (
                line,
                Unreadable(f"expected {len(header)} columns, got {len(cells)}", " | ".join(cells)),
            )


def is_table(path: Path) -> bool:
    """Return True if the name of the file is that of a CSV or TSV file, gzipped or not."""
    return path.name.removesuffix(".gz").endswith((".csv", ".tsv"))


def read_fields(path: Path, fields: Sequence[str]) -> Iterator[Row]:
    """Yield an input for each row of a table, as `{"x": …}`: its columns of these names."""
    is_tsv = path.name.removesuffix(".gz").endswith(".tsv")
    rows = _table_cells(path, delimiter="\t" if is_tsv else None)
    line, header = next(rows, (1, []))
    if isinstance(header, Unreadable):
        raise PairsError(f"{path}:{line}: {header.reason}")
    names = {field: _column_of(field, header, f"{path}:{line}") for field in fields}
    for line, cells in rows:
        if isinstance(cells, Unreadable):
            yield line, cells
        elif len(cells) != len(header):
            yield line, Unreadable(f"expected {len(header)} columns, got {len(cells)}")
        else:
            record = dict(zip(header, cells, strict=True))
            yield line, {"x": {field: record[name] for field, name in names.items()}}


def _column_of(field: str, header: Sequence[str], source: str) -> str:
    """Return the column of a field of the input: of its name, or as files of pairs name it."""
    accepted = [field, f"x.{field}", *(["x"] if field == TEXT_FIELD else [])]
    found = [name for name in accepted if name in header]
    if not found:
        raise PairsError(
            f"{source}: no column {field!r}, found {listed(map(repr, header)) or 'none'}; "
            "the columns must have the names of the model's fields"
        )
    return found[0]


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
                    f"rename it or name yours, such as with{spell(_likely(header))}"
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


_INPUT_NAMES = ("input", "question", "prompt", "request", "description", "query", "text", "title")
_OUTPUT_NAMES = ("output", "answer", "response", "completion", "target", "sql", "code", "command")


def _likely(header: Sequence[str]) -> Columns:
    """Return the columns that are x and y by their names, or else the first two."""
    output = _named(header, _OUTPUT_NAMES)
    first = _named([name for name in header if name != output], _INPUT_NAMES)
    others = [name for name in header if name not in (first, output)]
    first = first or next(iter(others), "…")
    output = output or next((name for name in others if name != first), "…")
    return Columns((first,), output)


def _named(header: Sequence[str], words: Sequence[str]) -> str | None:
    """Return the first column with one of the words in its name; earlier words come first."""
    matches = ((word, name) for word in words for name in header)
    return next((name for word, name in matches if word in name.casefold()), None)
