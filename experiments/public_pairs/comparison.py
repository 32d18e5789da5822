"""Compare systems over the same questions: per set, and the mean over sets.

The scores of a question are averaged over the seeds of a system. A mean over sets gives every set
the same weight; its interval resamples the questions of each set.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from experiments.lib.results import ALL_SEEDS, DECIMALS, Measured, Row
from experiments.public_pairs.sets import is_question_split
from experiments.public_pairs.systems import COMPARED, ORACLES, TRAINED, UNTRAINED
from redraft.metrics.bootstrap import RESAMPLES, SEED, Interval

QUESTION_MEAN, MEAN_OF_ALL = "mean of question splits", "mean of all sets"

Scores = Mapping[str, NDArray[np.float64]]
"""The values of every question, by metric."""


def comparison_rows(measured: Sequence[Measured], split: str) -> Iterator[Row]:
    """Yield the mean of each system over sets, and the default less each other system."""
    scores = _by_set(measured)
    groups = {name: [name] for name in scores}
    questions = [name for name in scores if is_question_split(name)]
    for label, names in ((QUESTION_MEAN, questions), (MEAN_OF_ALL, list(scores))):
        if len(names) > 1:
            groups[label] = names
    for label, names in groups.items():
        shared = [
            system for system in scores[names[0]] if all(system in scores[name] for name in names)
        ]
        if len(names) > 1:
            for system in shared:
                parts = [scores[name][system] for name in names]
                yield _row((system, ""), label, split, parts, names)
        for ours in (TRAINED, UNTRAINED):
            for theirs in shared:
                if ours in shared and theirs not in (ours, TRAINED, *ORACLES.values()):
                    parts = [_less(scores[name][ours], scores[name][theirs]) for name in names]
                    yield _row((ours, theirs), label, split, parts, names)


def _by_set(measured: Sequence[Measured]) -> dict[str, dict[str, Scores]]:
    """Return the scores of each system on each set, averaged over its seeds."""
    seeds: dict[str, dict[str, list[Measured]]] = defaultdict(lambda: defaultdict(list))
    for one in measured:
        seeds[one.row.setting][one.row.system].append(one)
    return {
        setting: {
            system: {
                metric: np.mean([one.values[metric] for one in own], axis=0) for metric in COMPARED
            }
            for system, own in by_system.items()
        }
        for setting, by_system in seeds.items()
    }


def _less(ours: Scores, theirs: Scores) -> Scores:
    return {metric: ours[metric] - theirs[metric] for metric in COMPARED}


def _row(
    systems: tuple[str, str], setting: str, split: str, parts: Sequence[Scores], sets: Sequence[str]
) -> Row:
    """Return the mean over the `parts`, one per set; `systems` are the system and its baseline."""
    means = {
        metric: round(float(np.mean([part[metric].mean() for part in parts])), DECIMALS)
        for metric in COMPARED
    }
    intervals = {metric: mean_of_means([part[metric] for part in parts]) for metric in COMPARED}
    return Row(
        systems[0],
        setting,
        split,
        ALL_SEEDS,
        sum(len(part["exact"]) for part in parts),
        means,
        intervals,
        config={"sets": list(sets)},
        baseline=systems[1],
    )


def mean_of_means(parts: Sequence[NDArray[np.float64]]) -> Interval:
    """Return the 95 % bootstrap interval of the mean of the means of `parts`, rounded."""
    generator = np.random.default_rng(SEED)
    means = [
        generator.multinomial(len(part), np.full(len(part), 1 / len(part)), size=RESAMPLES)
        @ part
        / len(part)
        for part in parts
    ]
    low, high = np.quantile(np.mean(means, axis=0), [0.025, 0.975])
    return round(float(low), DECIMALS), round(float(high), DECIMALS)
