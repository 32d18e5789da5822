"""Arguments and options that several verbs share, and how their texts become values."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from redraft.cli.console import Format
from redraft.data.rows import Columns
from redraft.errors import ConfigError, PairsError

PAIRS_HELP = (
    "Pairs: .jsonl (rows with x and y), .csv, .tsv, .parquet, or .in with .out beside it; .gz too."
)

PairsArgument = Annotated[Path, typer.Argument(help=PAIRS_HELP, show_default=False)]
ModelArgument = Annotated[
    Path, typer.Argument(help="A folder that `redraft fit` wrote.", show_default=False)
]
XColumns = Annotated[
    str,
    typer.Option(help="Columns of a table that are the input, with commas between. [x, or x.*]"),
]
YColumn = Annotated[str, typer.Option(help="Column of a table that is the output.")]
FormatOption = Annotated[
    Format, typer.Option("--format", help="json: JSON lines for programs; table: for people.")
]
WhereOption = Annotated[
    list[str] | None,
    typer.Option(help="Only examples whose meta has this value: KEY=VALUE. May be repeated."),
]
StoreOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="The PostgreSQL database with the examples: postgresql://USER@HOST:PORT/DATABASE. "
        "Better without the password, which PGPASSWORD or ~/.pgpass can hold.",
        show_default=False,
    ),
]


def columns(x_columns: str, y_column: str) -> Columns:
    """Which columns of a table hold what."""
    return Columns(tuple(name for name in x_columns.split(",") if name), y_column)


def seconds(budget: str) -> float:
    """A time as typed, 90s, 10m or 1h, in seconds; 0 for none."""
    if not budget:
        return 0.0
    units = {"s": 1, "m": 60, "h": 3600}
    try:
        amount = float(budget[:-1]) * units[budget[-1]]
    except (KeyError, ValueError):
        amount = 0.0
    if not 0 < amount < math.inf:
        raise ConfigError(f"--budget {budget}: expected a time such as 90s, 10m or 1h")
    return amount


def part_settings(tables: dict[str, Any], path: Path) -> dict[str, Any]:
    """The tables of a settings file, which must be those of the two parts."""
    for name, values in tables.items():
        if name not in ("retriever", "editor") or not isinstance(values, dict):
            known = "[retriever.…] and [editor.…]"
            raise ConfigError(f"{path}: unknown setting {name!r}; its tables are {known}")
    return tables


def filters(where: Sequence[str] | None) -> dict[str, str]:
    """KEY=VALUE texts as a filter on meta."""
    found = {}
    for text in where or ():
        key, equals, value = text.partition("=")
        if not equals:
            raise PairsError(f"--where {text}: expected KEY=VALUE")
        found[key] = value
    return found
