"""Arguments and options shared by several commands, and the parsing of their values."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from redraft.cli._console import Format, print_note
from redraft.config.ranges import SECONDS, Range, shorten, shown
from redraft.data.rows import Unreadable, read_json_lines, read_text_lines
from redraft.data.tables import Columns, is_table, read_fields
from redraft.errors import ConfigError, PairsError

if TYPE_CHECKING:
    from redraft.metrics.exact_match import Language
    from redraft.types import Example


def argument(help: str, metavar: str | None = None) -> Any:
    """Return a positional argument."""
    return typer.Argument(help=help, metavar=metavar, show_default=False)


def ranged(limits: Range, help: str, *names: str, metavar: str | None = None) -> Any:
    """Return an option with a number within `limits`."""
    return typer.Option(*names, min=limits.low, max=limits.high, help=help, metavar=metavar)


PairsArgument = Annotated[
    Path,
    argument(
        "File of pairs: .jsonl (rows with x and y), .csv, .tsv, .parquet, or .in next to .out; may "
        "be gzipped (.gz)."
    ),
]
ModelArgument = Annotated[
    Path, argument("Model folder written by `redraft fit` or `redraft index`.")
]
XColumns = Annotated[
    str,
    typer.Option(
        help="Input columns of a table, separated by commas; all others but the output column "
        "become meta. [x, or x.*]"
    ),
]
YColumn = Annotated[str, typer.Option(help="Output column of a table.")]
SkipBad = Annotated[
    Path | None,
    typer.Option(
        "--skip-bad",
        metavar="FILE",
        help="Leave out bad rows, and write them with their reasons to this file (.jsonl).",
        show_default=False,
    ),
]
FormatOption = Annotated[
    Format, typer.Option("--format", help="json: JSON lines; table: formatted for a terminal.")
]


class Equality(StrEnum):
    """When an output is right: equal to the reference in this language."""

    AUTO = "auto"
    TEXT = "text"
    SQL = "sql"
    PYTHON = "python"
    JSON = "json"

    @property
    def language(self) -> "Language | None":
        """The language to compare in; None if it is to be detected."""
        return None if self is Equality.AUTO else cast("Language", self.value)


EqualOption = Annotated[
    Equality,
    typer.Option(
        "--equal",
        help="When an output is right. text: the same text; sql: up to case outside of quotes, "
        "white space and a final semicolon; python: the same syntax tree; json: the same value; "
        "auto: by what the references look like.",
    ),
]
WhereOption = Annotated[
    list[str] | None,
    typer.Option(help="Use only examples with this meta value: KEY=VALUE. May be repeated."),
]
StoreOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="PostgreSQL database with the examples: postgresql://USER@HOST:PORT/DATABASE. "
        "Put the password into PGPASSWORD or ~/.pgpass rather than here.",
        show_default=False,
    ),
]


def is_json_lines(path: Path) -> bool:
    """Return True if the name of the file is that of JSON lines, gzipped or not."""
    return path.name.removesuffix(".gz").endswith((".jsonl", ".ndjson"))


def read_values(path: Path, fields: Sequence[str] = ()) -> Iterator[tuple[str, Any]]:
    """Yield the place and the value of each row of JSON lines, or of each line of a text file.

    Given `fields`, a table is read too: each row is the object of these columns, as `x`.
    """
    rows: Iterable[tuple[int, Any]]
    if is_json_lines(path):
        rows = read_json_lines(path)
    elif fields and is_table(path):
        rows = read_fields(path, fields)
    else:
        rows = read_text_lines(path)
    for line, value in rows:
        if isinstance(value, Unreadable):
            raise PairsError(f"{path}:{line}: {value.reason}")
        yield f"{path}:{line}", value


def read_examples(
    pairs: Path, columns: Columns, *, skip_bad: Path | None = None, fields: Sequence[str] = ()
) -> Iterator["Example"]:
    """Yield the examples of a file; with `skip_bad` the bad rows are written to that file.

    With `fields`, those of a model, the inputs get them in their order.
    """
    from redraft.data.inputs import in_fields
    from redraft.data.pairs import BadRowFile, read_numbered, scan_numbered

    skipped = BadRowFile(skip_bad) if skip_bad else None
    rows: Iterator[Example] = (
        (example for _, example in read_numbered(pairs, columns))
        if skipped is None
        else skipped.good_rows(scan_numbered(pairs, columns))
    )
    for example in rows:
        try:
            yield replace(example, x=in_fields(example.x, fields)) if fields else example
        except PairsError as error:
            raise PairsError(f"{pairs}: {error}") from error
    if skipped is not None and skipped.count:
        noun = "bad row is" if skipped.count == 1 else "bad rows are"
        print_note(f"{pairs}: {skipped.count:,} {noun} left out and written to {skipped.path}")


def columns(x_columns: str, y_column: str) -> Columns:
    """Return the input and output columns given by `--x-columns` and `--y-column`."""
    return Columns(tuple(name for name in x_columns.split(",") if name), y_column)


def seconds(budget: str, *, none: str = "") -> float:
    """Return a `budget` such as 90s, 10m or 1h in seconds; 0 if it is `none`."""
    if budget == none:
        return 0.0
    units = {"s": 1, "m": 60, "h": 3600}
    try:
        amount = float(budget[:-1]) * units[budget[-1]]
    except (KeyError, ValueError):
        amount = 0.0
    if not 0 < amount <= SECONDS.high:
        raise ConfigError(f"--budget {shorten(budget)}: expected a time such as 90s, 10m or 1h")
    return amount


def part_settings(tables: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return `tables`, read from `path`, if they configure only the retriever and the editor."""
    for name, values in tables.items():
        if name not in ("retriever", "editor") or not isinstance(values, dict):
            allowed = "[retriever.…] and [editor.…]"
            raise ConfigError(f"{path}: unknown setting {shown(name)}; its tables are {allowed}")
    return tables


def filters(where: Sequence[str] | None) -> dict[str, str]:
    """Return the values of `--where`, KEY=VALUE each, as a filter on meta."""
    values = {}
    for text in where or ():
        key, equals, value = text.partition("=")
        if not equals:
            raise PairsError(f"--where {shorten(text)}: expected KEY=VALUE")
        values[key] = value
    return values
