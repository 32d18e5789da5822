"""One measured figure, and how to take it on a noisy machine: best of several, side by side."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Measurement:
    """A figure with its unit; `ratio` compares it with a yardstick of the same run."""

    name: str
    value: float
    unit: str
    ratio: float | None = None
    yardstick: str = ""


def best_seconds(tasks: Mapping[str, Callable[[], object]], *, rounds: int = 3) -> dict[str, float]:
    """The least time of each task, the tasks taking turns."""
    best = dict.fromkeys(tasks, float("inf"))
    for _ in range(rounds):
        for name, task in tasks.items():
            start = time.perf_counter()
            task()
            best[name] = min(best[name], time.perf_counter() - start)
    return best
