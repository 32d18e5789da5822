"""Measure what the default promises: stored answers, added pairs, unknown inputs, invented values.

Each promise is measured on every set with a fitted model; its training is not the concern of this
module.
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from experiments.lib.intervals import ratio_interval
from experiments.lib.results import DECIMALS, Row, interval_of
from experiments.messy.nonsense import nonsense
from experiments.messy.revalued import revalue
from experiments.public_pairs.sets import PairSet
from redraft.metrics.bootstrap import Interval
from redraft.metrics.exact_match import is_same_output
from redraft.model import RetrieveAndEdit
from redraft.types import Candidate, Example, Input, normal_input

MAX_STORED = 500
"""Training inputs that are asked again."""

NONSENSE, NONSENSE_SEEDS = 200, range(3)
"""Nonsense inputs per set and seed."""

STORED, UNKNOWN = "stored and added", "unknown"
"""The variants of the rows."""

STORED_METRICS = {
    "stored": "stored, right %",
    "added": "added, right %",
    "revalued": "revalued after adding, right %",
    "revalued_fitted": "revalued after fitting, right %",
    "revalued_reached": "reached %",
}
"""Revalued: dev questions with other values, asked of a model to which dev was added, and of one
that was fitted on train and dev; reached is the ratio of both."""

UNKNOWN_METRICS = {
    "nonsense_marked": "nonsense marked %",
    "asked_marked": "questions marked %",
    "invented": "with an invented value %",
    "invented_right": "of them right, number",
    "invented_highest": "their highest confidence %",
}
"""Marked inputs are like no example."""


@dataclass(frozen=True)
class Fitted:
    """The default of one kind (`system`), fitted on the training pairs of a set."""

    system: str
    seed: int
    model: RetrieveAndEdit
    pairs: PairSet

    def with_asked(self) -> RetrieveAndEdit:
        """Return the model with the asked pairs added, without training."""
        return RetrieveAndEdit(self.model.retriever.add(self.pairs.asked), self.model.editor)

    def row(
        self, variant: str, values: Mapping[str, Sequence[float]], more: Mapping[str, float]
    ) -> Row:
        """Return a row with the means of `values`, in per cent, and `more` metrics."""
        means = {name: float(np.mean(own)) for name, own in values.items() if len(own)}
        figures = {name: round(value, DECIMALS) for name, value in {**means, **more}.items()}
        return Row(
            self.system,
            self.pairs.name,
            self.pairs.split,
            self.seed,
            len(self.pairs.asked),
            figures,
            interval_of({name: own for name, own in values.items() if len(own)}),
            config={f"n_{name}": len(own) for name, own in values.items()},
            variant=variant,
        )


def stored_row(fitted: Fitted, refitted: RetrieveAndEdit) -> Row:
    """Ask stored, added and revalued questions; `refitted` was fitted on train and asked pairs."""
    pairs = fitted.pairs
    sample = random.Random(0).sample(pairs.train, min(MAX_STORED, len(pairs.train)))
    added = fitted.with_asked()
    revalued = revalued_pairs(pairs)
    values = {
        "stored": stored_again(fitted.model, sample, pairs.train),
        "added": stored_again(added, pairs.asked, [*pairs.train, *pairs.asked]),
        "revalued": right_answers(added, revalued),
        "revalued_fitted": right_answers(refitted, revalued),
    }
    row = fitted.row(STORED, values, {})
    reached, interval = _reached(values["revalued"], values["revalued_fitted"])
    return replace(row, metrics={**row.metrics, **reached}, interval={**row.interval, **interval})


def _reached(
    ours: Sequence[float], theirs: Sequence[float]
) -> tuple[dict[str, float], dict[str, Interval]]:
    """Return the share of the right answers of `theirs` that `ours` reaches; none without any."""
    if not sum(theirs):
        return {}, {}
    low, high = ratio_interval(ours, theirs)
    bounds = (round(100 * low, DECIMALS), round(100 * high, DECIMALS))
    share = round(100 * sum(ours) / sum(theirs), DECIMALS)
    interval = {"revalued_reached": bounds} if np.isfinite(bounds).all() else {}
    return {"revalued_reached": share}, interval


def revalued_pairs(pairs: PairSet) -> list[Example]:
    """Return the asked pairs with other values, without those that share no value."""
    others = [*pairs.train, *pairs.asked]
    found = (revalue(example, others, seed=0) for example in pairs.asked)
    return [example for example in found if example is not None]


def stored_again(
    model: RetrieveAndEdit, asked: Iterable[Example], stored: Iterable[Example]
) -> list[float]:
    """Return 100 for each asked input whose answer is an output stored for it, else 0."""
    outputs: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for example in stored:
        outputs[normal_input(example.x)].add(example.y)
    return [
        100.0 * any(_is_right(best_answer(model, example.x), y) for y in known)
        for example in asked
        for known in [outputs[normal_input(example.x)]]
    ]


def right_answers(model: RetrieveAndEdit, asked: Iterable[Example]) -> list[float]:
    """Return 100 for each right answer, else 0."""
    return [100.0 * _is_right(best_answer(model, example.x), example.y) for example in asked]


def unknown_row(fitted: Fitted, answers: Sequence[Candidate | None]) -> Row:
    """Ask nonsense, and count marks and invented values among the `answers` to the asked pairs."""
    pairs = fitted.pairs
    known = [example.x for example in (*pairs.train, *pairs.asked)]
    strange = [example.x for seed in NONSENSE_SEEDS for example in nonsense(seed, NONSENSE, known)]
    invented = [
        (answer, _is_right(answer, example.y))
        for answer, example in zip(answers, pairs.asked, strict=True)
        if answer is not None and answer.invented
    ]
    values = {
        "nonsense_marked": [100.0 * _is_marked(best_answer(fitted.model, x)) for x in strange],
        "asked_marked": [100.0 * _is_marked(answer) for answer in answers],
        "invented": [100.0 * bool(answer and answer.invented) for answer in answers],
    }
    more: dict[str, float] = {"invented_right": sum(is_right for _, is_right in invented)}
    confidences = [answer.confidence for answer, _ in invented if answer.confidence is not None]
    if confidences:
        more["invented_highest"] = 100 * max(confidences)
    return fitted.row(UNKNOWN, values, more)


def best_answer(model: RetrieveAndEdit, x: Input) -> Candidate | None:
    """Return the best candidate for `x`, or None."""
    candidates = model.predict([x])[0]
    return candidates[0] if candidates else None


def _is_right(answer: Candidate | None, y: str) -> bool:
    return answer is not None and is_same_output(answer.output, y)


def _is_marked(answer: Candidate | None) -> bool:
    """Return True if the input has no answer, or is marked as like no example."""
    return answer is None or not answer.is_familiar
