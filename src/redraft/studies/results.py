"""What an experiment writes: rows with all that is needed to repeat them, and tables of them."""

import json
import os
import platform
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from redraft.evaluation.bootstrap import Interval, mean_interval

DECIMALS = 2

ALL_SEEDS = "all"
"""The seed of a row that compares two systems over all the seeds that both have."""


@dataclass(frozen=True)
class Row:
    """One system in one setting with one seed; `seed` is "mean" in a summary."""

    system: str
    setting: str
    split: str
    seed: int | str
    n: int
    metrics: Mapping[str, float]
    interval: Mapping[str, Interval] = field(default_factory=dict)
    spread: Mapping[str, float] = field(default_factory=dict)
    train_seconds: float = 0.0
    predict_seconds: float = 0.0
    parameters: int = 0
    config: Mapping[str, Any] = field(default_factory=dict)
    commit: str = ""

    @property
    def group(self) -> tuple[str, str, str]:
        """What the seeds of a mean have in common."""
        return self.setting, self.system, self.split


@dataclass(frozen=True)
class Measured:
    """A row, and the figures of every example that it is the mean of."""

    row: Row
    values: Mapping[str, Sequence[float]]
    packages: Sequence[str]  # examples of one are resampled together


def interval_of(per_example: Mapping[str, Sequence[float]]) -> dict[str, Interval]:
    """The 95 % interval of the mean of each metric, rounded."""
    intervals = {}
    for name, values in per_example.items():
        low, high = mean_interval(values)
        intervals[name] = (round(low, DECIMALS), round(high, DECIMALS))
    return intervals


def with_means(rows: Sequence[Row]) -> list[Row]:
    """The rows, and after those of a system with several seeds their mean and spread."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    return [each for group in groups.values() for each in (*group, *_mean(group))]


def _mean(rows: Sequence[Row]) -> list[Row]:
    if len(rows) < 2:
        return []
    first = rows[0]
    shared = [name for name in first.metrics if all(name in row.metrics for row in rows)]
    values = {name: [row.metrics[name] for row in rows] for name in shared}
    return [
        Row(
            first.system,
            first.setting,
            first.split,
            "mean",
            first.n,
            {name: round(float(np.mean(each)), DECIMALS) for name, each in values.items()},
            spread={
                name: round(float(np.std(each, ddof=1)), DECIMALS) for name, each in values.items()
            },
            train_seconds=round(float(np.mean([row.train_seconds for row in rows])), 1),
            commit=rows[-1].commit,
        )
    ]


def write_results(
    path: Path,
    experiment: str,
    rows: Sequence[Row],
    *,
    published: Sequence[Mapping[str, Any]] = (),
) -> list[dict[str, Any]]:
    """Write results.json; what was measured in an earlier run and not in this one is kept.

    Seeds that were measured in another run join the mean, unless their settings were others.
    """
    about = {
        "commit": current_commit(),
        "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "machine": {"cores": os.cpu_count(), "kind": platform.machine()},
    }
    new = [replace(row, commit=current_commit()) for row in rows]
    settings = {row.group: _without_seed(row.config) for row in new}
    measured = {(row.group, row.seed) for row in new}
    kept = [
        row
        for row in _read(path)
        if (row.group, row.seed) not in measured
        and settings.get(row.group, _without_seed(row.config)) == _without_seed(row.config)
    ]
    all_rows = [asdict(row) for row in with_means([*kept, *new])]
    results = {"experiment": experiment, **about, "rows": all_rows, "published": list(published)}
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    partial.replace(path)
    return all_rows


def _read(path: Path) -> list[Row]:
    """The rows of an earlier run, without their means."""
    if not path.exists():
        return []
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    return [Row(**row) for row in rows if row["seed"] != "mean"]


def _without_seed(config: Any) -> Any:
    """Settings that are the same for every seed, as they are when read from a file."""
    if not isinstance(config, Mapping):
        return list(config) if isinstance(config, tuple) else config
    return {name: _without_seed(value) for name, value in config.items() if name != "seed"}


@cache
def current_commit() -> str:
    """The commit of the working tree when it was first asked for, or nothing outside of one."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


@dataclass(frozen=True)
class Table:
    """A table of a page: which figures it shows, and of which rows."""

    metrics: Mapping[str, str]  # and what each is called
    has: Callable[[Mapping[str, Any]], bool] = lambda _: True
    published: Sequence[Mapping[str, Any]] = ()

    def markdown(self, rows: Sequence[Mapping[str, Any]], *, is_brief: bool = False) -> str:
        """The table of those rows that it has."""
        chosen = [row for row in rows if self.has(row)]
        return markdown_table(chosen, self.metrics, published=self.published, is_brief=is_brief)


def markdown_table(
    rows: Sequence[Mapping[str, Any]],
    metrics: Mapping[str, str],
    *,
    published: Sequence[Mapping[str, Any]] = (),
    is_brief: bool = False,
) -> str:
    """The summary of results.json as a table: a row a system, the mean where there are seeds.

    A brief one leaves out sweeps, whose settings have a comma and a value after the name.
    """
    settings = list(dict.fromkeys(row["setting"] for row in rows))
    by_system: dict[tuple[str, str, str], Mapping[str, Any]] = {}
    for row in sorted(rows, key=lambda row: settings.index(row["setting"])):
        key = (row["setting"], row["split"], row["system"])
        if is_brief and "," in row["setting"]:
            continue
        if key not in by_system or row["seed"] == "mean":
            by_system[key] = row
    lines = [
        "| setting | system | n | " + " | ".join(metrics.values()) + " |",
        "|---|---|---|" + "---|" * len(metrics),
    ]
    for (setting, split, system), row in by_system.items():
        cells = [_cell(row, name) for name in metrics]
        place = setting if split == "dev" or not published else f"{setting}, {split}"
        lines.append(f"| {place} | {system} | {row['n']} | " + " | ".join(cells) + " |")
    for row in published:
        cells = [_published_cell(row, name) for name in metrics]
        count = row.get("n", "–")
        lines.append(f"| published, test | {row['system']} | {count} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _published_cell(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    return "–" if value is None else f"{value:.1f}"


def _cell(row: Mapping[str, Any], name: str) -> str:
    if name not in row["metrics"]:
        return "–"
    value = f"{row['metrics'][name]:.1f}"
    if row["seed"] == "mean":
        return f"{value} ± {row['spread'][name]:.1f}"
    low, high = row["interval"].get(name, (None, None))
    if low is None:
        return value
    if row["seed"] == ALL_SEEDS:  # differences are small, and may be negative
        return f"{row['metrics'][name]:.2f} ({low:.2f} to {high:.2f})"
    return f"{value} ({low:.1f}–{high:.1f})"


def insert_table(page: Path, name: str, table: str) -> bool:
    """Put a table between its marks in a page of Markdown; False if the page has no such marks."""
    if not page.exists():
        return False
    text = page.read_text(encoding="utf-8")
    start, end = f"<!-- table: {name} -->\n", "<!-- end of table -->"
    before, found, rest = text.partition(start)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        return False
    page.write_text(f"{before}{start}{table}{end}{after}", encoding="utf-8")
    return True
