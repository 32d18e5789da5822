"""A training as it goes: one live line on stderr, or a line a score where there is no terminal."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from redraft.cli.console import remark, stderr, working
from redraft.errors import TrainingInterrupted

if TYPE_CHECKING:
    from redraft.training.loop import Observer, Report
    from redraft.training.workers import Workers


_OF_A_STEP = {"loss", "bound"}
"""What every step tells; other figures are there when dev was scored."""


def describe(report: "Report") -> str:
    """Loss, bound and score, speed and padding, and the time that is left."""
    figures = "  ".join(f"{name} {value:,.3f}" for name, value in report.shown.items())
    left = report.seconds / report.step * (report.steps - report.step)
    return (
        f"{figures}  {report.tokens_per_second:,.0f} tokens/s  "
        f"padding {report.padding:.0%}  {left / 60:.1f} min left"
    )


@contextmanager
def watched(what: str) -> Iterator["Observer"]:
    """An observer that shows the training while it lasts."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = stderr()
    if not console.is_terminal:
        yield lambda report: _tell(what, report)
        return
    columns = (
        TextColumn(what),
        BarColumn(20),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def show(report: "Report") -> None:
            bar.update(
                task, total=report.steps, completed=report.step, description=describe(report)
            )

        yield show


def _tell(what: str, report: "Report") -> None:
    """A line at every twentieth of the way, and whenever dev was scored."""
    is_due = report.step % max(1, report.steps // 20) == 0 or report.step == report.steps
    if is_due or set(report.shown) - _OF_A_STEP:
        remark(f"{what}: step {report.step:,} of {report.steps:,}  {describe(report)}")


@dataclass(frozen=True)
class Speaker:
    """The ways in which a verb that trains tells what it does."""

    working: Callable[[str], AbstractContextManager[None]]
    watched: Callable[[str], "AbstractContextManager[Observer | None]"]
    remark: Callable[[str], None]


@contextmanager
def speaker(workers: "Workers") -> Iterator[Speaker]:
    """The first of several workers speaks for all, also of a stop; of its own errors each does."""
    if workers.is_first:
        yield Speaker(working, watched, remark)
        return
    try:
        yield Speaker(lambda _: nullcontext(), lambda _: nullcontext(), lambda _: None)
    except TrainingInterrupted as stop:
        raise typer.Exit(130) from stop
