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

    from redraft.metrics.evaluation import Baseline
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


def shown_fact(name: str, value: Any) -> str:
    """Return a fact about a model as people read it: lists joined, bytes as MB."""
    if name == "bytes":
        return f"{value / 1e6:,.1f} MB" if value >= 50_000 else f"{value / 1e3:,.1f} kB"
    return ", ".join(value) if isinstance(value, list) else str(value)


def print_scores(
    system: str, scores: "Scores", *, title: str, retrieval: "Baseline | None" = None
) -> None:
    """Print how many outputs are right, then every metric with its 95 % interval."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from redraft.metrics.calibration import Share
    from redraft.metrics.scores import LABELS

    console = stdout()
    low, high = Share(scores.right or 0, scores.n).interval
    interval = f"95 % interval {100 * low:.0f}–{100 * high:.0f} %"
    line = f"{scores.right:,} of {scores.n:,} right ({interval})"
    if retrieval is not None:
        line += f"; retrieval alone: {retrieval.right:,} of {scores.n:,}"
    console.print(line, style="bold", soft_wrap=True)
    console.print(f"{system} on {title}; equal as {scores.notes['language']}", soft_wrap=True)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("in per cent")
    for label in ("score", "95 % interval", *(["retrieval alone"] if retrieval else [])):
        table.add_column(label, justify="right", no_wrap=True)
    for name, label in LABELS.items():
        value = scores.metrics.get(name)
        if value is None or (name == "parses" and value == 100):
            continue
        low, high = scores.interval[name]
        cells = [label, f"{value:.1f}", f"{low:.1f}–{high:.1f}"]
        if retrieval is not None:
            alone = retrieval.metrics.get(name)
            cells.append("" if alone is None else f"{alone:.1f}")
        table.add_row(*cells)
    console.print(table)
