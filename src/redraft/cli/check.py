"""`redraft check`: report bad rows, duplicates and leaks."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer

from redraft.cli import _options as options
from redraft.cli._console import Format, emit, print_note, progress, stdout
from redraft.cli._options import FormatOption, PairsArgument, XColumns, YColumn


def command(
    pairs: PairsArgument,
    against: Annotated[
        Path | None,
        typer.Option(help="Other pairs, such as the test set: report examples found in both."),
    ] = None,
    x_columns: XColumns = "",
    y_column: YColumn = "y",
    form: FormatOption = Format.JSON,
) -> None:
    """List every bad row, duplicate and leak in a file of pairs.

    Prints one line per finding, then a summary. Exit code 0: no findings; 1: duplicates or
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
            print_note(
                f"{against.name}: near leaks are checked against the first {leaks.compared:,} of "
                f"{leaks.count:,} rows, exact leaks against all"
            )
    tally = Tally()
    outcomes = progress(scan_numbered(pairs, columns), f"checking {pairs.name}")
    show = emit if form is Format.JSON else _print
    for finding in check(outcomes, tally, against=leaks):
        if isinstance(finding, BadRow):
            show({"kind": "bad row", **finding.to_json()})
        else:
            show(dataclasses.asdict(finding))
    show({"kind": "summary", **tally.to_json()})
    if tally.bad:
        print_note(
            f"error: {pairs}: {tally.bad:,} bad rows of {tally.rows:,}; fix them, or leave "
            "them out with --skip-bad FILE"
        )
        raise typer.Exit(2)
    raise typer.Exit(1 if tally.findings else 0)


def _print(row: dict[str, Any]) -> None:
    """Print a finding or the summary as one line."""
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
