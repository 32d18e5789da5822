"""Result rows, and the results.json that holds them with all that is needed to repeat them."""

import json
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from redraft.metrics.bootstrap import Interval, mean_interval

DECIMALS = 2

MEAN = "mean"
"""The seed of a row that is the mean over several seeds."""

ALL_SEEDS = "all"
"""The seed of a row that compares two systems over all the seeds that both have."""

DISTANCE, SIMILARITY = "distance", "similarity"
"""Metrics of the nearest prototype: how far it is, and the BLEU of its output."""


@dataclass(frozen=True)
class Row:
    """One system in one setting with one seed, or a paired difference to a baseline."""

    system: str
    setting: str  # the data, or where prototypes come from; "" for all settings together
    split: str
    seed: int | str  # `MEAN` in a summary, `ALL_SEEDS` in a comparison
    n: int
    metrics: Mapping[str, float]
    interval: Mapping[str, Interval] = field(default_factory=dict)
    spread: Mapping[str, float] = field(default_factory=dict)
    train_seconds: float = 0.0
    predict_seconds: float = 0.0
    parameters: int = 0
    config: Mapping[str, Any] = field(default_factory=dict)
    commit: str = ""
    variant: str = ""  # what differs from the default, such as "no cache"
    subset: str = ""  # the examples that are compared, if not all
    baseline: str = ""  # the system that is subtracted
    baseline_variant: str = ""
    is_share: bool = False  # per cent of the gain from half of the pairs to all of them

    @property
    def is_difference(self) -> bool:
        """True if the metrics are differences to a baseline."""
        return bool(self.baseline)

    @property
    def is_plain(self) -> bool:
        """True if the row is of a default system on all examples."""
        return not (self.variant or self.subset or self.baseline or self.is_share)

    @property
    def system_label(self) -> str:
        """The system as tables and results.json name it: "retrieve+edit − seq2seq"."""
        if not self.baseline:
            return self.system
        other = (
            self.baseline if self.baseline != self.system else "",
            self.baseline_variant if self.baseline_variant != self.variant else "",
        )
        return f"{self.system} − {', '.join(filter(None, other))}"

    @property
    def setting_label(self) -> str:
        """The setting as tables and results.json name it: "hearthstone, greedy"."""
        share = "% of the gain" if self.is_share else ""
        return ", ".join(filter(None, (self.setting, self.variant, self.subset, share)))

    @property
    def group(self) -> tuple[str, str, str]:
        """What the seeds of a mean have in common."""
        return self.setting_label, self.system_label, self.split

    def to_json(self) -> dict[str, Any]:
        """Return the row as results.json has it: labels, and their parts if they have any."""
        values = asdict(self)
        parts = {name: values.pop(name) for name in _PARTS}
        values |= {"system": self.system_label, "setting": self.setting_label}
        if not self.is_plain:
            parts = {name: value for name, value in parts.items() if value}
            values["parts"] = {"system": self.system, "setting": self.setting, **parts}
        return values

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Row":
        """Return the row that `to_json` made the values of."""
        own = {name: value for name, value in values.items() if name != "parts"}
        return cls(**{**own, **values.get("parts", {})})


_PARTS = ("variant", "subset", "baseline", "baseline_variant", "is_share")


@dataclass(frozen=True)
class Measured:
    """A row, and the metrics of every example that it is the mean of."""

    row: Row
    values: Mapping[str, Sequence[float]]
    packages: Sequence[str]  # examples of one are resampled together


def interval_of(per_example: Mapping[str, Sequence[float]]) -> dict[str, Interval]:
    """Return the 95 % interval of the mean of each metric, rounded."""
    intervals = {}
    for name, values in per_example.items():
        low, high = mean_interval(values)
        intervals[name] = (round(low, DECIMALS), round(high, DECIMALS))
    return intervals


def with_means(rows: Iterable[Row]) -> list[Row]:
    """Return the rows, those of a system with several seeds followed by their mean and spread."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    return [row for group in groups.values() for row in (*group, *_mean(group))]


def _mean(rows: Sequence[Row]) -> list[Row]:
    if len(rows) < 2:
        return []
    first = rows[0]
    shared = [name for name in first.metrics if all(name in row.metrics for row in rows)]
    values = {name: [row.metrics[name] for row in rows] for name in shared}
    means = {name: round(float(np.mean(each)), DECIMALS) for name, each in values.items()}
    spread = {name: round(float(np.std(each, ddof=1)), DECIMALS) for name, each in values.items()}
    return [
        replace(
            first,
            seed=MEAN,
            metrics=means,
            interval={},
            spread=spread,
            train_seconds=round(float(np.mean([row.train_seconds for row in rows])), 1),
            predict_seconds=0.0,
            parameters=0,
            config={},
            commit=rows[-1].commit,
        )
    ]


def write_results(
    path: Path,
    experiment: str,
    rows: Sequence[Row],
    *,
    published: Sequence[Mapping[str, Any]] = (),
) -> list[Row]:
    """Write results.json and return its rows; rows of earlier runs that are not in `rows` stay.

    Seeds that were measured in another run join the mean, unless their settings were others.
    """
    about = {
        "commit": current_commit(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cores": os.cpu_count(), "kind": platform.machine()},
    }
    new = [replace(row, commit=current_commit()) for row in rows]
    settings = {row.group: _without_seed(row.config) for row in new}
    measured = {(row.group, row.seed) for row in new}
    earlier = [
        row
        for row in read_results(path)
        if row.seed != MEAN
        and (row.group, row.seed) not in measured
        and settings.get(row.group, _without_seed(row.config)) == _without_seed(row.config)
    ]
    written = with_means([*earlier, *new])
    results = {
        "experiment": experiment,
        **about,
        "rows": [row.to_json() for row in written],
        "published": list(published),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    partial.replace(path)
    return written


def read_results(path: Path) -> list[Row]:
    """Return the rows of a results.json, none if there is no such file yet."""
    if not path.exists():
        return []
    return [Row.from_json(row) for row in json.loads(path.read_text(encoding="utf-8"))["rows"]]


def _without_seed(config: Any) -> Any:
    """Settings that are the same for every seed, as they are when read from a file."""
    if not isinstance(config, Mapping):
        return list(config) if isinstance(config, tuple) else config
    return {name: _without_seed(value) for name, value in config.items() if name != "seed"}


@cache
def current_commit() -> str:
    """Return the commit of the working tree at the first call, or nothing outside of one."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
