"""One measured figure, and how to take it on a noisy machine: best of several, side by side."""

import resource
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Measurement:
    """A figure with its unit; `ratio` compares it with a yardstick of the same run."""

    name: str
    value: float
    unit: str
    ratio: float | None = None
    yardstick: str = ""


def told(measurements: Iterable[Measurement]) -> list[dict[str, Any]]:
    """The measurements as they are written, each printed when it is taken."""
    taken = []
    for each in measurements:
        ratio = f"  ({each.ratio:.2f} × {each.yardstick})" if each.ratio is not None else ""
        print(f"{each.name}: {each.value:.4g} {each.unit}{ratio}", flush=True)
        taken.append(asdict(each))
    return taken


def best_seconds(tasks: Mapping[str, Callable[[], object]], *, rounds: int = 3) -> dict[str, float]:
    """The least time of each task, the tasks taking turns."""
    best = dict.fromkeys(tasks, float("inf"))
    for _ in range(rounds):
        for name, task in tasks.items():
            start = time.perf_counter()
            task()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def peak() -> float:
    """The most memory that this process has held, in MB."""
    # a new process inherits the resource peak of the one that started it; Linux knows better
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        held = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    except OSError:
        held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(held / 1024, 1)
