"""How verbs speak: JSON lines or tables on stdout, progress and remarks on stderr."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from redraft.evaluation.scores import Scores

Item = TypeVar("Item")


class Format(str, Enum):
    """How results are printed."""

    JSON = "json"
    TABLE = "table"


def emit(row: Mapping[str, Any]) -> None:
    """One JSON line on stdout."""
    sys.stdout.write(json.dumps(row, ensure_ascii=False) + "\n")


def stdout() -> "Console":
    """The console for results that people read."""
    from rich.console import Console

    return Console(highlight=False)


def stderr() -> "Console":
    """The console for progress and remarks."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def remark(text: str) -> None:
    """One line on stderr."""
    print(text, file=sys.stderr)


def progress(items: Iterable[Item], what: str, *, total: int | None = None) -> Iterator[Item]:
    """The items, with a bar on stderr while they are worked through."""
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
    """A spinner on stderr around work that cannot be counted."""
    with stderr().status(what):
        yield


def scores_table(systems: Mapping[str, "Scores"], *, title: str) -> "Table":
    """A table of metrics, a row a system, each figure with its 95 % interval."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from redraft.evaluation.scores import LABELS

    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    table.padding = (0, 1, 0, 0)
    table.pad_edge = False
    table.add_column("system", no_wrap=True)
    table.add_column("n", justify="right", no_wrap=True)
    shown = [name for name in LABELS if _tells_something(systems, name)]
    for name in shown:
        table.add_column(LABELS[name], justify="right", no_wrap=True)
    for system, scores in systems.items():
        table.add_row(system, f"{scores.n:,}", *(_cell(scores, name) for name in shown))
    table.caption = "in per cent, with 95 % bootstrap intervals"
    table.caption_justify = "left"
    return table


def _tells_something(systems: Mapping[str, "Scores"], name: str) -> bool:
    """Whether any system has the metric, and not all parse anyway."""
    values = {scores.metrics[name] for scores in systems.values() if name in scores.metrics}
    return bool(values) and (name != "parses" or values != {100})


def _cell(scores: "Scores", name: str) -> str:
    if name not in scores.metrics:
        return "–"
    low, high = scores.interval[name]
    return f"{scores.metrics[name]:.1f}\n[dim]{low:.1f}–{high:.1f}[/dim]"
