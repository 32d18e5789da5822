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


OnStep = Callable[[Report], None]


def last_report(folder: Path) -> Report:
    """Return the last logged report of the run in `folder`; times include resumed parts."""
    last = (folder / LOG).read_text(encoding="utf-8").splitlines()[-1]
    return Report(**json.loads(last))
