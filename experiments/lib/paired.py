"""Paired differences: the default less every other system, over the same examples and seeds.

Examples of a package are resampled together. Knows no dataset: metrics and settings are arguments.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from experiments.lib.intervals import paired_interval, ratio_interval
from experiments.lib.results import ALL_SEEDS, DECIMALS, SIMILARITY, Measured, Row

DEFAULT, UNAIDED = "retrieve+edit", "seq2seq"
"""The default system, and the same network without prototypes."""

NETWORK = "retrieve+edit (network)"
"""A network that reads a prototype, where the default has none."""

PAPERS_DEFAULT, PAPERS_UNAIDED = "retrieve+edit (paper)", "seq2seq (paper)"
"""Both with the paper's LSTMs."""

OTHER_PAIRS = (
    ("task", "lexical"),
    ("reranked", "lexical"),
    (NETWORK, UNAIDED),
    (PAPERS_DEFAULT, PAPERS_UNAIDED),
)
"""Other systems that are compared with one another."""

Groups = Mapping[tuple[str, str, str], Mapping[int | str, Measured]]
"""What was measured, by system, setting and variant, of each seed."""

Pairs = Sequence[tuple[Measured, Measured]]


def difference_rows(measured: Sequence[Measured], metrics: Collection[str]) -> Iterator[Row]:
    """Yield the default less each other system and less itself with a part changed.

    A system with a part changed is compared with the default that has the same part changed, if
    there is one.
    """
    groups = _grouped(measured)
    for (system, setting, variant), others in groups.items():
        if system != DEFAULT and (DEFAULT, setting, variant) in groups:
            pairs = _pairs(groups[DEFAULT, setting, variant], others)
            yield from _difference(pairs, metrics)
        elif (system, variant) != (DEFAULT, ""):
            pairs = _pairs(groups.get((DEFAULT, setting, ""), {}), others)
            yield from _difference(pairs, metrics)
        for first, second in OTHER_PAIRS:
            if system == second:
                pairs = _pairs(groups.get((first, setting, variant), {}), others)
                yield from _difference(pairs, metrics)


def _grouped(measured: Sequence[Measured]) -> Groups:
    groups: dict[tuple[str, str, str], dict[int | str, Measured]] = defaultdict(dict)
    for one in measured:
        groups[one.row.system, one.row.setting, one.row.variant][one.row.seed] = one
    return groups


def _pairs(ours: Mapping[int | str, Measured], theirs: Mapping[int | str, Measured]) -> Pairs:
    """Return both of each seed that both have."""
    return [(ours[seed], theirs[seed]) for seed in theirs if seed in ours]


def similarity_rows(
    measured: Sequence[Measured],
    settings: Sequence[str],
    bounds: Sequence[int],
    metrics: Collection[str],
) -> Iterator[Row]:
    """Yield the default less Seq2Seq, by how near the prototype was: between each two `bounds`.

    The examples of all `settings` are taken together.
    """
    groups = _grouped(measured)
    by_seed: dict[int | str, list[tuple[Measured, Measured]]] = defaultdict(list)
    for setting in settings:
        sides = (groups.get((system, setting, ""), {}) for system in (DEFAULT, UNAIDED))
        for ours, theirs in _pairs(*sides):
            if SIMILARITY in ours.values:
                by_seed[ours.row.seed].append((ours, theirs))
    most = max(map(len, by_seed.values()), default=0)  # a seed may lack settings yet
    pooled = [
        (_pooled([one for one, _ in own]), _pooled([other for _, other in own]))
        for own in by_seed.values()
        if len(own) == most
    ]
    setting = settings[0] if len(settings) == 1 else ""
    for low, high in pairwise(bounds):
        pairs = [
            (_between(low, high, ours, ours), _between(low, high, theirs, ours))
            for ours, theirs in pooled
        ]
        for row in _difference(pairs, metrics):
            yield replace(row, setting=setting, subset=f"similarity {low} to {min(high, 100)}")


def _pooled(measured: Sequence[Measured]) -> Measured:
    """Return the examples of several settings as those of one."""
    shared = set.intersection(*(set(one.values) for one in measured))
    values = {name: [x for one in measured for x in one.values[name]] for name in shared}
    packages = [package for one in measured for package in one.packages]
    return Measured(measured[0].row, values, packages)


def _between(low: float, high: float, measured: Measured, by: Measured) -> Measured:
    """Return the examples whose similarity, as `by` has it, is between two bounds."""
    rows = [row for row, similarity in enumerate(by.values[SIMILARITY]) if low <= similarity < high]
    values = {name: [each[row] for row in rows] for name, each in measured.values.items()}
    packages = [measured.packages[row] for row in rows]
    return Measured(replace(measured.row, n=len(rows)), values, packages)


def _difference(pairs: Pairs, metrics: Collection[str]) -> Iterator[Row]:
    """Yield the differences and ratios of the means over the seeds that both have, if any."""
    if not pairs or not pairs[0][0].packages:
        return
    first, second = pairs[0]
    figures, intervals = {}, {}
    for metric in (name for name in metrics if name in first.values and name in second.values):
        ours, theirs = (
            np.mean([pair[side].values[metric] for pair in pairs], axis=0) for side in (0, 1)
        )
        known = ~(np.isnan(ours) | np.isnan(theirs))
        packages = [name for name, is_known in zip(first.packages, known, strict=True) if is_known]
        if not packages:
            continue
        for suffix, figure, interval in (
            ("", _gap, paired_interval),
            ("_ratio", _ratio, ratio_interval),
        ):
            low, high = interval(ours[known], theirs[known], clusters=packages)
            figures[metric + suffix] = round(figure(ours[known], theirs[known]), DECIMALS)
            intervals[metric + suffix] = (round(low, DECIMALS), round(high, DECIMALS))
    row = first.row
    yield Row(
        row.system,
        row.setting,
        row.split,
        ALL_SEEDS,
        row.n,
        figures,
        intervals,
        config={"seeds": [one.row.seed for one, _ in pairs]},
        variant=row.variant,
        baseline=second.row.system,
        baseline_variant=second.row.variant,
    )


def _gap(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> float:
    return float(ours.mean() - theirs.mean())


def _ratio(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> float:
    return float(ours.mean() / theirs.mean()) if theirs.mean() else float("inf")
