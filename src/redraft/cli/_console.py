"""Console output: JSON lines or tables on stdout, progress and notes on stderr."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from redraft.cli._failures import escaped
from redraft.cli._streams import naming_stdout

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from redraft.metrics.scores import Scores

Item = TypeVar("Item")


class Format(StrEnum):
    """Output format of results."""

    JSON = "json"
    TABLE = "table"


def emit(row: Mapping[str, Any]) -> None:
    """Print `row` as a JSON line on stdout, escaping characters that its encoding lacks."""
    text = json.dumps(row, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:  # stdout is not UTF-8, or there is half of a surrogate pair
        text = json.dumps(row)
    with naming_stdout():
        sys.stdout.write(text + "\n")


def stdout() -> "Console":
    """Return the console for results that people read."""
    from rich.console import Console

    class Results(Console):
        """A console that raises `BrokenPipeError`, as `emit` does, instead of exiting."""

        def print(self, *objects: Any, **options: Any) -> None:
            """Print `objects`; errors name stdout."""
            with naming_stdout():
                super().print(*objects, **options)

        def on_broken_pipe(self) -> None:
            """Raise the error that is being handled."""
            raise

    return Results(highlight=False)


def stderr() -> "Console":
    """Return the console for progress and notes."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def print_note(text: str) -> None:
    """Print a line on stderr, ignoring write errors."""
    with suppress(OSError):
        print(escaped(text), file=sys.stderr)


def progress(items: Iterable[Item], what: str, *, total: int | None = None) -> Iterator[Item]:
    """Yield `items` with a progress bar labelled `what` on stderr."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    console = stderr()
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        yield from bar.track(items, total=total, description=what)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show a spinner with the text `what` on stderr, if it is a terminal, during the block."""
    console = stderr()
    with console.status(what) if console.is_terminal else nullcontext():
        yield


def scores_table(system: str, scores: "Scores", *, title: str) -> "Table":
    """Return a table with the metrics of a system, each with its 95 % interval."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from redraft.metrics.scores import LABELS

    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    table.padding = (0, 1, 0, 0)
    table.pad_edge = False
    table.add_column("system", no_wrap=True)
    table.add_column("n", justify="right", no_wrap=True)
    cells = [system, f"{scores.n:,}"]
    for name, label in LABELS.items():
        value = scores.metrics.get(name)
        if value is None or (name == "parses" and value == 100):
            continue
        table.add_column(label, justify="right", no_wrap=True)
        low, high = scores.interval[name]
        cells.append(f"{value:.1f}\n[dim]{low:.1f}–{high:.1f}[/dim]")
    table.add_row(*cells)
    table.caption = "in per cent, with 95 % bootstrap intervals"
    table.caption_justify = "left"
    return table
