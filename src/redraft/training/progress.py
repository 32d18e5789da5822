"""Reports on the progress of a training run, as logged and as passed to callbacks."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from redraft.training.run_folder import LOG


@dataclass(frozen=True)
class Report:
    """Progress of a run after a step, as passed to callbacks and logged."""

    step: int
    steps: int
    shown: dict[str, float]  # metrics
    tokens_per_second: float
    padding: float  # share of padding among all tokens
    seconds: float
    # CPU time of the main worker over all cores, which other load on the machine hardly affects
    core_seconds: float

    @property
    def seconds_left(self) -> float:
        """The expected time until the last step."""
        return self.seconds / self.step * (self.steps - self.step)


OnStep = Callable[[Report], None]


TIMED_STEPS = 5
"""Steps that are timed before the expected time is logged."""


def announced(line: str, *, log: Callable[[str], None], on_step: OnStep | None) -> OnStep:
    """Return a callback that logs `line` with the expected time once, and passes reports on."""
    is_logged = False

    def listen(report: Report) -> None:
        nonlocal is_logged
        if not is_logged and (report.step >= TIMED_STEPS or report.step == report.steps):
            is_logged = True
            log(f"{line}, about {duration(report.seconds + report.seconds_left)}")
        if on_step is not None:
            on_step(report)

    return listen


def duration(seconds: float) -> str:
    """Return a time in the unit that people would say it in."""
    for size, unit in ((3600, "hour"), (60, "minute")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {unit}s"
    count = max(1, round(seconds))
    return f"{count} second{'s' if count > 1 else ''}"


def last_report(folder: Path) -> Report:
    """Return the last logged report of the run in `folder`; times include resumed parts."""
    last = (folder / LOG).read_text(encoding="utf-8").splitlines()[-1]
    return Report(**json.loads(last))
