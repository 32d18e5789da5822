"""What the default is ahead by: paired, over the same examples, those of a package together.

The figures of every example are kept, so that seeds of several runs are compared as one.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from redraft.evaluation.bootstrap import paired_interval, ratio_interval
from redraft.studies.completions import DISTANCE, METRICS, SIMILARITY
from redraft.studies.functions import SETTINGS
from redraft.studies.results import ALL_SEEDS, DECIMALS, Measured, Row

DEFAULT = "retrieve+edit"
OTHER_PAIRS = (("task", "lexical"),)
"""Systems that are compared with one another besides."""

SIMILARITIES = (0, 10, 30, 60, 101)
"""Bounds between which functions are taken together, by the BLEU of their prototype's body."""

Groups = Mapping[tuple[str, str], Mapping[int | str, Measured]]
"""What was measured, by system and setting, of each seed."""


def keep(
    measured: Measured,
    folder: Path,
    *,
    metrics: Collection[str] = (*METRICS, DISTANCE, SIMILARITY),
) -> None:
    """Write the figures of every example."""
    row = measured.row
    name = "".join(each if each.isalnum() else "-" for each in f"{row.system} {row.setting}")
    path = folder / f"seed-{row.seed}" / "measured" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    values = {
        metric: [None if np.isnan(value) else round(value, 4) for value in each]
        for metric, each in measured.values.items()
        if metric in metrics
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


def difference_rows(
    measured: Sequence[Measured], metrics: Collection[str] = tuple(METRICS)
) -> Iterator[Row]:
    """The default less each other system and less itself with a part changed, in each setting.

    A system with a part changed is compared with the default that has the same part changed, if
    there is one.
    """
    groups = _grouped(measured)
    for (system, setting), others in groups.items():
        place, _, changed = setting.partition(", ")
        if system != DEFAULT and (DEFAULT, setting) in groups:
            pairs = _pairs(groups[DEFAULT, setting], others)
            yield from _difference(f"{DEFAULT} − {system}", setting, pairs, metrics)
        elif (system, changed) != (DEFAULT, ""):
            pairs = _pairs(groups.get((DEFAULT, place), {}), others)
            other = ", ".join(name for name in (system, changed) if name not in (DEFAULT, ""))
            yield from _difference(f"{DEFAULT} − {other}", place, pairs, metrics)
        for first, second in OTHER_PAIRS:
            if system == second:
                pairs = _pairs(groups.get((first, setting), {}), others)
                yield from _difference(f"{first} − {second}", setting, pairs, metrics)
    yield from similarity_rows(measured, SETTINGS, SIMILARITIES, metrics)


Pairs = Sequence[tuple[Measured, Measured]]


def _grouped(measured: Sequence[Measured]) -> Groups:
    groups: dict[tuple[str, str], dict[int | str, Measured]] = defaultdict(dict)
    for each in measured:
        groups[each.row.system, each.row.setting][each.row.seed] = each
    return groups


def _pairs(ours: Mapping[int | str, Measured], theirs: Mapping[int | str, Measured]) -> Pairs:
    """Both of each seed that both have."""
    return [(ours[seed], theirs[seed]) for seed in theirs if seed in ours]


def similarity_rows(
    measured: Sequence[Measured],
    settings: Sequence[str],
    bounds: Sequence[int],
    metrics: Collection[str],
    *,
    place: str = "",
) -> Iterator[Row]:
    """The default less Seq2Seq, the examples of all settings by how near their prototype was.

    The place is what the settings of the rows begin with.
    """
    groups = _grouped(measured)
    by_seed: dict[int | str, list[tuple[Measured, Measured]]] = defaultdict(list)
    for setting in settings:
        sides = (groups.get((system, setting), {}) for system in (DEFAULT, "seq2seq"))
        for ours, theirs in _pairs(*sides):
            if SIMILARITY in ours.values:
                by_seed[ours.row.seed].append((ours, theirs))
    most = max(map(len, by_seed.values()), default=0)  # a seed may lack settings yet
    pooled = [
        (_pooled([one for one, _ in own]), _pooled([other for _, other in own]))
        for own in by_seed.values()
        if len(own) == most
    ]
    for low, high in pairwise(bounds):
        pairs = [
            (_between(low, high, ours, ours), _between(low, high, theirs, ours))
            for ours, theirs in pooled
        ]
        name = f"{place}similarity {low} to {min(high, 100)}"
        yield from _difference(f"{DEFAULT} − seq2seq", name, pairs, metrics)


def _pooled(measured: Sequence[Measured]) -> Measured:
    """The examples of several settings as those of one."""
    shared = set.intersection(*(set(each.values) for each in measured))
    values = {name: [x for each in measured for x in each.values[name]] for name in shared}
    packages = [package for each in measured for package in each.packages]
    return Measured(measured[0].row, values, packages)


def _between(low: float, high: float, measured: Measured, by: Measured) -> Measured:
    """The examples whose similarity, as another has it, is between two bounds."""
    rows = [at for at, each in enumerate(by.values[SIMILARITY]) if low <= each < high]
    values = {name: [each[at] for at in rows] for name, each in measured.values.items()}
    packages = [measured.packages[at] for at in rows]
    return Measured(replace(measured.row, n=len(rows)), values, packages)


def _difference(name: str, setting: str, pairs: Pairs, metrics: Collection[str]) -> Iterator[Row]:
    """The differences of the means over the seeds that both have, if there are any."""
    if not pairs or not pairs[0][0].packages:
        return
    first, second = pairs[0]
    figures, intervals = {}, {}
    for metric in (name for name in metrics if name in first.values and name in second.values):
        ours, theirs = (
            np.mean([each[side].values[metric] for each in pairs], axis=0) for side in (0, 1)
        )
        known = ~(np.isnan(ours) | np.isnan(theirs))
        packages = [each for each, is_known in zip(first.packages, known, strict=True) if is_known]
        if not packages:
            continue
        for suffix, figure, interval in (
            ("", _gap, paired_interval),
            ("_ratio", _ratio, ratio_interval),
        ):
            low, high = interval(ours[known], theirs[known], clusters=packages)
            figures[metric + suffix] = round(figure(ours[known], theirs[known]), DECIMALS)
            intervals[metric + suffix] = (round(low, DECIMALS), round(high, DECIMALS))
    about = {"seeds": [one.row.seed for one, _ in pairs]}
    yield Row(
        name, setting, first.row.split, ALL_SEEDS, first.row.n, figures, intervals, config=about
    )


def _gap(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> float:
    return float(ours.mean() - theirs.mean())


def _ratio(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> float:
    return float(ours.mean() / theirs.mean()) if theirs.mean() else float("inf")
