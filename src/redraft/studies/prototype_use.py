"""What an editor makes of its prototypes, and what examples are worth that were never trained on.

The same editor is given the best prototypes there are, any, or none, in place of the nearest. An
editor of half of the pairs is given the other half to retrieve from. Seq2Seq, which reads no
prototype, can remember those pairs as well.
"""

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redraft.config import DEFAULT_RETRIEVER
from redraft.data.example import Example
from redraft.evaluation.bootstrap import bootstrap
from redraft.evaluation.editability import oracle_prototypes
from redraft.retrieval.prototype import Prototype
from redraft.studies.answers import SYSTEMS, Bench, system_rows
from redraft.studies.results import ALL_SEEDS, DECIMALS, Measured, Row

HALF = "half of the pairs"
ADDED = "half of the pairs, the others added"
ADDED_AND_STUDIED = f"{ADDED} and studied"
GAINED = "% of the gain"
STUDIED = 4
"""Steps of training on the nearest pairs before each answer."""


def given_rows(bench: Bench) -> Iterator[Measured]:
    """Retrieve+Edit with other prototypes than the nearest."""
    setting, asked = bench.questions.setting, bench.questions.asked
    editor = bench.trained("retrieve+edit", setting, DEFAULT_RETRIEVER)
    train = bench.questions.train
    best = [[each] if each else [] for each in oracle_prototypes(train, asked)]
    given: dict[str, list[list[Prototype]]] = {
        "the best prototype": best,
        "any prototype": _any(train, len(asked), seed=bench.options.seed),
        "no prototype": [[] for _ in asked],
    }
    for what, found in given.items():
        yield bench.given("retrieve+edit", f"{setting}, {what}", editor, found)


def _any(examples: Sequence[Example], count: int, *, seed: int) -> list[list[Prototype]]:
    chance = random.Random(seed)
    return [[Prototype(chance.choice(examples), 1.0)] for _ in range(count)]


def adding_rows(bench: Bench) -> Iterator[Measured]:
    """Both systems trained on every other pair; then the others are added, and also studied."""
    questions = bench.questions
    whole, half = questions.train, questions.train[::2]
    fewer = Bench(
        replace(questions, train=half, setting=f"{questions.setting}, {HALF}"),
        bench.options,
        bench.folder / "half",
    )
    yield from system_rows(fewer)
    added = fewer.retriever(DEFAULT_RETRIEVER).add(whole[1::2])
    for system, retriever in SYSTEMS.items():
        editor = fewer.trained(system, fewer.questions.setting, retriever)
        studying = editor.with_decoding(replace(editor.decoding, studied=STUDIED))
        for what, asked in ((ADDED, editor), (ADDED_AND_STUDIED, studying)):
            yield fewer.measure(system, f"{questions.setting}, {what}", added, asked)


def gained_rows(
    measured: Sequence[Measured], setting: str, metrics: Collection[str]
) -> Iterator[Row]:
    """How far adding goes from half of the pairs to training on all of them, over all seeds."""
    found = {(each.row.system, each.row.setting, each.row.seed): each for each in measured}
    for system in SYSTEMS:
        for what in (ADDED, ADDED_AND_STUDIED):
            settings = [f"{setting}, {HALF}", f"{setting}, {what}", setting]
            seeds = [
                seed
                for _, _, seed in found
                if all((system, each, seed) in found for each in settings)
            ]
            steps = [
                [found[system, each, seed] for seed in dict.fromkeys(seeds)] for each in settings
            ]
            if seeds:
                yield _gained(f"{setting}, {what}, {GAINED}", steps, metrics)


def _gained(setting: str, steps: Sequence[Sequence[Measured]], metrics: Collection[str]) -> Row:
    """The share of the way from the first step to the last that is done at the second."""
    row, figures, intervals = steps[0][0].row, {}, {}
    for metric in metrics:
        means = [np.mean([each.values[metric] for each in step], axis=0) for step in steps]
        columns = np.stack(means, axis=1)
        if columns[:, 2].sum() > columns[:, 0].sum():  # a gain that there is none of has no share
            figures[metric] = round(float(_share(columns.sum(axis=0, keepdims=True))[0]), DECIMALS)
            low, high = bootstrap(columns, _share)
            if np.isfinite([low, high]).all():  # it has no ends where many resamples gain nothing
                intervals[metric] = (round(low, DECIMALS), round(high, DECIMALS))
    about = {"seeds": [each.row.seed for each in steps[0]]}
    return replace(
        row, setting=setting, seed=ALL_SEEDS, metrics=figures, interval=intervals, config=about
    )


def _share(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    first, second, third = sums.T
    with np.errstate(divide="ignore", invalid="ignore"):  # some resamples gain nothing
        shares: NDArray[np.float64] = 100 * (second - first) / (third - first)
    return shares


def is_gained(row: Mapping[str, Any]) -> bool:
    """Whether a row of results.json tells what share of a gain adding brings."""
    return str(row["setting"]).endswith(GAINED)
