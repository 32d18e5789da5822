"""The systems of the experiment, each fitted and asked through the public interface.

The default is measured untrained and trained.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from experiments.lib.results import DECIMALS, Measured, Row, interval_of
from experiments.public_pairs.sets import PairSet
from redraft.editing.choosing import ChoosingEditor
from redraft.metrics.bleu import bleu_yin
from redraft.metrics.exact_match import is_same_output
from redraft.model import RetrieveAndEdit
from redraft.training.fit import FitOptions
from redraft.types import Example, Input

UNTRAINED, TRAINED = "retrieve+edit, untrained", "retrieve+edit"
"""The default editor without and with its neural part."""

ORACLES = {UNTRAINED: "oracle, untrained", TRAINED: "oracle"}
"""The best proposal of the default editor, picked by the true output."""

METRICS = {
    "exact": "right %",
    "bleu_yin": "BLEU yin",
    "fit_seconds": "fit, s",
    "milliseconds": "answer, ms",
}
"""Right is equal up to case, white space and a final semicolon."""

COMPARED = ("exact", "bleu_yin")
"""Metrics with a paired difference."""

Figure = TypeVar("Figure")

Answerer = Callable[[Input], Sequence[str]]
"""Returns outputs for an input; the best of them, by the true output, is scored."""


@dataclass(frozen=True)
class System:
    """A retriever and an editor by their names in the registry."""

    name: str
    retriever: str
    editor: str
    is_trained: bool = False

    def fit(self, train: Sequence[Example], options: FitOptions) -> RetrieveAndEdit:
        """Fit the system on `train`; only trained systems use the budget and the seed."""
        changed: dict[str, Any] = {"train": self.is_trained}
        if not self.is_trained:
            changed["budget"] = 0.0
        return RetrieveAndEdit.fit(
            train,
            retriever=self.retriever,
            editor=self.editor,
            options=replace(options, **changed),
        )


SYSTEMS = (
    System("verbatim", "bm25", "verbatim"),
    System("substitution", "bm25", "substitution"),
    System(UNTRAINED, "bm25", "choosing"),
    System("seq2seq", "none", "neural", is_trained=True),
    System("neural", "bm25", "neural", is_trained=True),
    System(TRAINED, "bm25", "choosing", is_trained=True),
)


def systems(*, trained: bool, names: Sequence[str] | None = None) -> list[System]:
    """Return the systems to measure, those with a neural network only if `trained`."""
    return [
        system
        for system in SYSTEMS
        if (trained or not system.is_trained) and (not names or system.name in names)
    ]


def defaults(*, trained: bool) -> list[System]:
    """Return the default system untrained and, if it can be and `trained`, trained."""
    return [system for system in systems(trained=trained) if system.editor == "choosing"]


def system_rows(
    system: System, pairs: PairSet, options: FitOptions, *, config: Mapping[str, Any]
) -> Iterator[Measured]:
    """Fit a system, ask it every pair and yield its scores, and those of its oracle if it has one.

    `config` is kept with the rows of trained systems.
    """
    started = time.perf_counter()
    model = system.fit(pairs.train, options)
    seconds = time.perf_counter() - started
    answerers: dict[str, Answerer] = {system.name: lambda x: _outputs(model, x)}
    if system.name in ORACLES:
        answerers[ORACLES[system.name]] = lambda x: proposed_outputs(model, x)
    for name, answerer in answerers.items():
        measured = measure(name, pairs, answerer, seed=options.seed)
        row = replace(measured.row, config=config if system.is_trained else {})
        if name == system.name:
            figures = {**row.metrics, "fit_seconds": round(seconds, DECIMALS)}
            row = replace(row, metrics=figures, train_seconds=round(seconds, 1))
        else:  # an oracle is no system: its time says nothing
            row = replace(row, metrics=_compared(row.metrics), interval=_compared(row.interval))
        yield replace(measured, row=row)


def _compared(figures: Mapping[str, Figure]) -> dict[str, Figure]:
    return {metric: figures[metric] for metric in COMPARED}


def measure(name: str, pairs: PairSet, answer: Answerer, *, seed: int) -> Measured:
    """Ask every pair, one at a time as a user would, and return the scores of each."""
    values: dict[str, list[float]] = {"exact": [], "bleu_yin": [], "milliseconds": []}
    for example in pairs.asked:
        started = time.perf_counter()
        outputs = answer(example.x)
        values["milliseconds"].append(1000 * (time.perf_counter() - started))
        scores = [(is_same_output(y, example.y), bleu_yin(example.y, y)) for y in outputs]
        exact, bleu = np.max([(False, 0.0), *scores], axis=0)
        values["exact"].append(100.0 * exact)
        values["bleu_yin"].append(100.0 * bleu)
    row = Row(
        name,
        pairs.name,
        pairs.split,
        seed,
        len(pairs.asked),
        {metric: round(float(np.mean(own)), DECIMALS) for metric, own in values.items()},
        interval_of(values),
        predict_seconds=round(sum(values["milliseconds"]) / 1000, 2),
    )
    # every question stands for itself when they are drawn again
    return Measured(row, values, [str(i) for i in range(len(pairs.asked))])


def proposed_outputs(model: RetrieveAndEdit, x: Input) -> list[str]:
    """Return everything that the default editor proposes for `x`."""
    editor = model.editor
    if not isinstance(editor, ChoosingEditor):
        raise TypeError(f"the editor {editor.name} makes no proposals")
    prototypes = model.retriever.retrieve([x], editor.wants(1), distinct=editor.distinct_outputs)
    if not prototypes[0]:
        return []
    return [item.output for item in editor.rank(x, prototypes[0]).proposals.items]


def _outputs(model: RetrieveAndEdit, x: Input) -> list[str]:
    return [candidate.output for candidate in model.predict([x])[0]]
