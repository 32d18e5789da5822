"""How an editor uses its prototypes, and what examples are worth that it was not trained on.

The same editor is given the best prototypes, random ones or none instead of the nearest. An editor
trained on half of the pairs retrieves from all of them.
"""

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from experiments.lib.bench import SYSTEMS, Bench, system_rows
from experiments.lib.results import ALL_SEEDS, DECIMALS, Measured, Row
from redraft.config.toml import DEFAULT_RETRIEVER
from redraft.metrics.bootstrap import bootstrap
from redraft.metrics.retrieval_quality import oracle_prototypes
from redraft.types import Example, Prototype

HALF = "half of the pairs"
ADDED = "half of the pairs, the others added"
ADDED_AND_STUDIED = f"{ADDED} and studied"
STUDIED = 4
"""Steps of training on the nearest pairs before each answer."""


def given_rows(bench: Bench) -> Iterator[Measured]:
    """Retrieve+Edit with other prototypes than the nearest."""
    asked = bench.questions.asked
    editor = bench.trained("retrieve+edit", DEFAULT_RETRIEVER)
    train = bench.questions.train
    best = [[each] if each else [] for each in oracle_prototypes(train, asked)]
    given: dict[str, list[list[Prototype]]] = {
        "the best prototype": best,
        "any prototype": _any(train, len(asked), seed=bench.options.seed),
        "no prototype": [[] for _ in asked],
    }
    for what, found in given.items():
        yield bench.given("retrieve+edit", what, editor, found)


def _any(examples: Sequence[Example], count: int, *, seed: int) -> list[list[Prototype]]:
    chance = random.Random(seed)
    return [[Prototype(chance.choice(examples), 1.0)] for _ in range(count)]


def adding_rows(bench: Bench) -> Iterator[Measured]:
    """Both systems trained on every other pair; then the others are added, and also studied."""
    questions = bench.questions
    whole, half = questions.train, questions.train[::2]
    fewer = Bench(
        replace(questions, train=half, variant=HALF),
        bench.options,
        bench.folder / "half",
    )
    yield from system_rows(fewer)
    added = fewer.retriever(DEFAULT_RETRIEVER).add(whole[1::2])
    for system, retriever in SYSTEMS.items():
        editor = fewer.trained(system, retriever)
        studying = editor.with_decoding(replace(editor.decoding, ttt_steps=STUDIED))
        for what, asked in ((ADDED, editor), (ADDED_AND_STUDIED, studying)):
            yield fewer.measure(system, what, added, asked)


def gained_rows(
    measured: Sequence[Measured], setting: str, metrics: Collection[str]
) -> Iterator[Row]:
    """Yield the share of the gain of training on all pairs, not half, that adding them brings."""
    found = {
        (each.row.system, each.row.variant, each.row.seed): each
        for each in measured
        if each.row.setting == setting
    }
    for system in SYSTEMS:
        for what in (ADDED, ADDED_AND_STUDIED):
            variants = [HALF, what, ""]
            seeds = [
                seed
                for _, _, seed in found
                if all((system, variant, seed) in found for variant in variants)
            ]
            steps = [
                [found[system, variant, seed] for seed in dict.fromkeys(seeds)]
                for variant in variants
            ]
            if seeds:
                yield _gained(what, steps, metrics)


def _gained(variant: str, steps: Sequence[Sequence[Measured]], metrics: Collection[str]) -> Row:
    """Return the gain at the second of three `steps` as a share of the gain at the third."""
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
        row,
        variant=variant,
        is_share=True,
        seed=ALL_SEEDS,
        metrics=figures,
        interval=intervals,
        config=about,
    )


def _share(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    first, second, third = sums.T
    with np.errstate(divide="ignore", invalid="ignore"):  # some resamples gain nothing
        shares: NDArray[np.float64] = 100 * (second - first) / (third - first)
    return shares
