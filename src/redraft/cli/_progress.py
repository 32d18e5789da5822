"""Training progress on stderr: one live line, or plain log lines if stderr is no terminal."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from redraft.cli._console import print_note, stderr, working
from redraft.errors import TrainingInterrupted

if TYPE_CHECKING:
    from redraft.training.process_group import ProcessGroup
    from redraft.training.progress import OnStep, Report


_BAR = 20
"""Width of the progress bar in columns."""

_STEP_METRICS = {"loss", "bound"}
"""Metrics of every step; others are present only after an evaluation on dev."""


def describe(report: "Report") -> str:
    """Return the remaining time, loss, bound, scores, speed and padding as text."""
    from redraft.training.progress import duration

    metrics = "  ".join(f"{name} {value:,.3f}" for name, value in report.shown.items())
    left = f"{duration(report.seconds_left)} left" if report.step < report.steps else "done"
    return (
        f"{left}  {metrics}  {report.tokens_per_second:,.0f} tokens/s  padding {report.padding:.0%}"
    )


@contextmanager
def watched(what: str) -> Iterator["OnStep"]:
    """Yield a callback that shows the progress of the training `what`."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = stderr()
    if not console.is_terminal:
        yield lambda report: _log(what, report)
        return
    columns = (
        TextColumn(what),
        BarColumn(_BAR),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def show(report: "Report") -> None:
            # bar, step and time left come first: a narrow terminal cuts off the rest
            room = console.width - len(what) - _BAR - 2 * len(f"{report.steps}") - 5
            shown = describe(report)[: max(0, room)]
            bar.update(task, total=report.steps, completed=report.step, description=shown)

        yield show


def _log(what: str, report: "Report") -> None:
    """Print a line every 5 % of the steps, and after each evaluation on dev."""
    is_due = report.step % max(1, report.steps // 20) == 0 or report.step == report.steps
    if is_due or set(report.shown) - _STEP_METRICS:
        print_note(f"{what}: step {report.step:,} of {report.steps:,}  {describe(report)}")


@dataclass(frozen=True)
class ProgressReporter:
    """Output functions of a command that trains."""

    working: Callable[[str], AbstractContextManager[None]]
    watched: Callable[[str], "AbstractContextManager[OnStep | None]"]
    print_note: Callable[[str], None]


@contextmanager
def progress_reporter(workers: "ProcessGroup") -> Iterator[ProgressReporter]:
    """Yield a reporter that prints on rank 0 and is silent on all other ranks.

    Errors are reported by the rank on which they occur.
    """
    if workers.is_main:
        yield ProgressReporter(working, watched, print_note)
        return
    try:
        yield ProgressReporter(lambda _: nullcontext(), lambda _: nullcontext(), lambda _: None)
    except TrainingInterrupted as stop:
        raise typer.Exit(130) from stop
