"""What the default is ahead by: paired, over the same functions, whole packages resampled.

The figures of every function are kept beside the trainings, so that seeds of several runs are
compared as one.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from redraft.evaluation.bootstrap import paired_interval, ratio_interval
from redraft.studies.completions import DISTANCE, METRICS, Measured
from redraft.studies.results import ALL_SEEDS, DECIMALS, Row

DEFAULT = "retrieve+edit"


def keep(measured: Measured, folder: Path) -> None:
    """Write the figures of every function."""
    row = measured.row
    name = "".join(each if each.isalnum() else "-" for each in f"{row.system} {row.setting}")
    path = folder / f"seed-{row.seed}" / "measured" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    values = {
        metric: [None if np.isnan(value) else round(value, 4) for value in each]
        for metric, each in measured.values.items()
        if metric in METRICS or metric == DISTANCE
    }
    kept = {"row": asdict(row), "values": values, "packages": list(measured.packages)}
    path.write_text(json.dumps(kept) + "\n", encoding="utf-8")


def read_kept(folder: Path) -> list[Measured]:
    """All that was kept, of every seed."""
    found = []
    for path in sorted(folder.glob("seed-*/measured/*.json")):
        kept = json.loads(path.read_text(encoding="utf-8"))
        values = {
            metric: [float("nan") if value is None else value for value in each]
            for metric, each in kept["values"].items()
        }
        found.append(Measured(Row(**kept["row"]), values, kept["packages"]))
    return found


def difference_rows(measured: Sequence[Measured]) -> Iterator[Row]:
    """The default less each other system and less itself with a part changed, in each setting."""
    groups: dict[tuple[str, str], dict[int | str, Measured]] = defaultdict(dict)
    for each in measured:
        groups[each.row.system, each.row.setting][each.row.seed] = each
    for (system, setting), others in groups.items():
        place, _, changed = setting.partition(", ")
        own = groups.get((DEFAULT, place), {})
        seeds = [seed for seed in others if seed in own]
        if seeds and (system != DEFAULT or changed):
            name = f"{DEFAULT} − {changed or system}"
            pairs = [(own[seed], others[seed]) for seed in seeds]
            yield _difference(name, place, pairs)


def _difference(name: str, setting: str, pairs: Sequence[tuple[Measured, Measured]]) -> Row:
    """The differences of the means over the seeds that both have."""
    first, second = pairs[0]
    metrics, intervals = {}, {}
    for metric in (metric for metric in METRICS if metric in second.values):
        ours, theirs = (
            np.mean([each[side].values[metric] for each in pairs], axis=0) for side in (0, 1)
        )
        known = ~(np.isnan(ours) | np.isnan(theirs))
        packages = [each for each, is_known in zip(first.packages, known, strict=True) if is_known]
        for suffix, figure, interval in (
            ("", _gap, paired_interval),
            ("_ratio", _ratio, ratio_interval),
        ):
            low, high = interval(ours[known], theirs[known], clusters=packages)
            metrics[metric + suffix] = round(figure(ours[known], theirs[known]), DECIMALS)
            intervals[metric + suffix] = (round(low, DECIMALS), round(high, DECIMALS))
    about = {"seeds": [one.row.seed for one, _ in pairs]}
    return Row(
        name, setting, first.row.split, ALL_SEEDS, first.row.n, metrics, intervals, config=about
    )


def _gap(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> float:
    return float(ours.mean() - theirs.mean())


def _ratio(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> float:
    return float(ours.mean() / theirs.mean()) if theirs.mean() else float("inf")
