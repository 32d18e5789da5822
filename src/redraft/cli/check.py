"""`redraft check`: bad rows, duplicates, leaks."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer

from redraft.cli import options
from redraft.cli.console import Format, emit, progress, remark, stdout
from redraft.cli.options import FormatOption, PairsArgument, XColumns, YColumn


def command(
    pairs: PairsArgument,
    against: Annotated[
        Path | None,
        typer.Option(help="Other pairs, such as the test set: report what stands in both."),
    ] = None,
    x_columns: XColumns = "",
    y_column: YColumn = "y",
    form: FormatOption = Format.JSON,
) -> None:
    """List every bad row, duplicate and leak of a file of pairs.

    Prints one line for each, then a summary. Exit code 0: nothing found; 1: duplicates or
    leaks; 2: bad rows.

    Example: `redraft check train.jsonl --against test.jsonl --format table`
    """
    from redraft.data.check import LeakFinder, Tally, check
    from redraft.data.pairs import read_numbered, scan_numbered
    from redraft.data.rows import BadRow

    columns = options.columns(x_columns, y_column)
    leaks = None
    if against is not None:
        leaks = LeakFinder(progress(read_numbered(against, columns), f"reading {against.name}"))
        if leaks.compared < leaks.count:
            told = f"the first {leaks.compared:,} of {leaks.count:,}"
            remark(f"{against.name}: near leaks are looked for among {told} rows, others among all")
    tally = Tally()
    outcomes = progress(scan_numbered(pairs, columns), f"checking {pairs.name}")
    show = emit if form is Format.JSON else _print
    for found in check(outcomes, tally, against=leaks):
        kind = {"kind": "bad row"} if isinstance(found, BadRow) else {}
        show({**kind, **dataclasses.asdict(found)})
    show({"kind": "summary", **tally.to_json()})
    if tally.bad:
        remark(f"error: {pairs}: {tally.bad:,} bad rows of {tally.rows:,}; mend or remove them")
        raise typer.Exit(2)
    raise typer.Exit(1 if tally.found else 0)


def _print(row: dict[str, Any]) -> None:
    """A finding or the summary as a line for people."""
    from rich.text import Text

    if row["kind"] == "summary":
        counts = ", ".join(f"{count:,} {name}" for name, count in row.items() if name != "kind")
        line = Text(counts, style="bold")
    elif row["kind"] == "bad row":
        line = Text.assemble(("bad row", "red"), f"  {row['file']}:{row['line']}: {row['reason']}")
    else:
        place = f"  line {row['line']}, as line {row['other']}: {row['detail']}"
        line = Text.assemble((row["kind"], "yellow"), place)
    stdout().print(line, soft_wrap=True)
