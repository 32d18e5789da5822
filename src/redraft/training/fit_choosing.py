"""Fit the default editor: values, templates, re-ranker and chooser, on held-out training pairs.

Cross-fitting: each fold of the pairs is asked of an index and a table that do not have it, as new
questions will be. Needs no torch, and seconds.
"""

import math
import random
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from redraft.editing.chooser import Chooser, Question
from redraft.editing.choosing import ChoosingEditor, Ranking
from redraft.editing.combining import COMBINED_FEATURES, GENERATED, first_outputs
from redraft.editing.proposals import (
    FEATURES,
    SUBSTITUTION,
    VERBATIM,
    features_of,
    stored_candidates,
)
from redraft.editing.reranker import Reranker
from redraft.editing.templates import TemplateModel
from redraft.editing.value_table import ValueTable
from redraft.metrics.exact_match import is_same_output
from redraft.retrieval.base import Retriever
from redraft.training.fit import DEV_MIN, FitOptions
from redraft.types import Example

if TYPE_CHECKING:
    from redraft.editing.neural import NeuralEditor
    from redraft.editing.sketch_editor import SketchEditor

FOLDS = 10
MAX_QUESTIONS = 800
"""Held-out training pairs that re-ranker and chooser are fitted on, a fold of them at a time."""

HOPELESS_QUESTIONS, HOPELESS_SHARE = 200, 0.02
"""If so few of the first questions have a right proposal, more of them would teach nothing."""

RERANKER_FOLDS = 5
"""The folds of cross-fitting the re-ranker."""

UNTRAINED, NEURAL = "untrained", "neural"
"""Names of the chooser without a network, and of the network's own first output."""

BATCH = 16
"""Dev examples that the network answers at once."""

MAX_EXAMPLES = 20_000
"""Of more examples, an even sample is used to fit the chooser."""

MAX_COUNTED = 4_000
"""Examples whose n-grams are counted."""


def fit_choosing(
    examples: Sequence[Example], retriever: Retriever, options: FitOptions
) -> ChoosingEditor:
    """Fit the editor on the examples of `retriever`."""
    editor = _untrained(examples)
    sample = examples
    if len(examples) > MAX_EXAMPLES:
        sample = even_sample(examples, MAX_EXAMPLES)
        retriever = retriever.with_examples(sample)
    if len(sample) < DEV_MIN:
        options.log(f"editor: no confidence, since {len(sample)} pairs are too few to hold any out")
        return editor
    held_out = _held_out(editor, sample, retriever)
    if not held_out:
        options.log("editor: no confidence, since every input is stored several times")
        return editor
    transfers, reranker = _rerank(held_out)
    questions = [
        Question(features_of(one.ranking.proposals, transfer), one.ranking.context, one.is_right)
        for one, transfer in zip(held_out, transfers, strict=True)
    ]
    firsts = {
        name: [one.ranking.proposals.first_of(name) for one in held_out]
        for name in (VERBATIM, SUBSTITUTION)
    }
    chooser = Chooser.fit(questions, features=FEATURES, firsts=firsts)
    options.log(summary(chooser, len(questions)))
    return ChoosingEditor(editor.templates, chooser, reranker=reranker)


@dataclass(frozen=True)
class Judge:
    """Held-out pairs that judge a proposer, with an editor and a retriever fitted without them.

    An editor that was fitted on them ranks them better than new questions: it would seem to need
    no other proposer.
    """

    pairs: Sequence[Example]
    retriever: Retriever
    editor: ChoosingEditor

    def is_able(self, options: FitOptions) -> bool:
        """Return True if the pairs are enough to judge a network; log it if they are not."""
        if self.editor.chooser is not None and len(self.pairs) >= DEV_MIN:
            return True
        options.log(
            f"editor: no network is trained: {len(self.pairs)} held-out pairs are too few "
            "to judge it"
        )
        return False

    def forgotten_by(self, editor: ChoosingEditor) -> AbstractContextManager[None]:
        """Return a context in which the values of an editor lack those of the pairs."""
        if editor.templates.table is self.editor.templates.table:
            return nullcontext()
        return editor.templates.table.without(self.pairs)


def add_neural(
    editor: ChoosingEditor,
    neural: "NeuralEditor | SketchEditor",
    judge: Judge,
    options: FitOptions,
    *,
    seconds: float = math.inf,
) -> ChoosingEditor:
    """Return the editor with a neural one, or without it if held-out pairs do not need it.

    The network has not seen the pairs either. No more are asked than `seconds` allow.
    """
    count = len(judge.pairs)
    options.log(f"editor: answering {count:,} held-out pairs with and without the network")
    with judge.forgotten_by(editor):
        combined = _combined(neural, judge, deadline=time.monotonic() + seconds)
    if combined is None:
        options.log("editor: the network is not used: too few pairs are held out to judge it")
        return editor
    shares = combined.accuracy
    helps = max(shares["chooser"], shares[NEURAL]) > shares[UNTRAINED]
    verdict = "" if helps else "; the network is not used, since it does not help"
    options.log(summary(combined, len(combined.confidence.held_out)) + verdict)
    if not helps:
        return editor
    return editor.with_neural(neural, combined)


def _combined(
    neural: "NeuralEditor | SketchEditor", judge: Judge, *, deadline: float
) -> Chooser | None:
    """Fit the chooser over the proposals of both; None if too few pairs are asked."""
    if judge.editor.chooser is None:
        return None
    both = judge.editor.with_neural(neural)
    questions: list[Question] = []
    firsts: dict[str, list[int]] = {UNTRAINED: [], NEURAL: []}
    column = COMBINED_FEATURES.index("is_neural_first")
    pairs = list(judge.pairs)
    random.Random(0).shuffle(pairs)  # neighbours in a file are often alike, and time may end
    for start in range(0, len(pairs), BATCH):
        if time.monotonic() > deadline and len(questions) >= DEV_MIN:
            break
        batch = pairs[start : start + BATCH]
        inputs = [example.x for example in batch]
        prototypes = judge.retriever.retrieve(inputs, both.wants(1), distinct=both.distinct_outputs)
        generated = neural.edit(inputs, list(map(first_outputs, prototypes)), GENERATED)
        for example, near, candidates in zip(batch, prototypes, generated, strict=True):
            if not near or stored_candidates(example.x, near):
                continue
            ranking = both.rank(example.x, near)
            pool = both.pool(example.x, ranking, candidates)
            is_right = [is_same_output(output, example.y) for output in pool.outputs]
            questions.append(Question(pool.features, ranking.context, np.array(is_right)))
            firsts[UNTRAINED].append(0)
            firsts[NEURAL].append(int(pool.features[:, column].argmax()) if candidates else -1)
    if len(questions) < DEV_MIN:
        return None
    return Chooser.fit(questions, features=COMBINED_FEATURES, firsts=firsts)


def _untrained(examples: Sequence[Example]) -> ChoosingEditor:
    table = ValueTable.learn(examples)
    return ChoosingEditor(TemplateModel.learn(even_sample(examples, MAX_COUNTED), table))


@dataclass(frozen=True)
class _HeldOut:
    """The proposals for a held-out training pair, and which of them are right."""

    ranking: Ranking
    is_right: NDArray[np.bool_]

    @property
    def is_transferable(self) -> NDArray[np.bool_]:
        """Of each prototype whether an edit of it is right."""
        proposals = self.ranking.proposals
        is_transferable = np.zeros(len(proposals.prototypes), np.bool_)
        for item, is_right in zip(proposals.items, self.is_right, strict=True):
            if is_right:
                is_transferable[[source.row for source in item.sources]] = True
        return is_transferable


def _held_out(
    editor: ChoosingEditor, examples: Sequence[Example], retriever: Retriever
) -> list[_HeldOut]:
    """Ask training pairs of an index and a table without them.

    Inputs that are stored elsewhere too are left out: they need no chooser.
    """
    rows = list(range(len(examples)))
    random.Random(0).shuffle(rows)
    rows = rows[:MAX_QUESTIONS]
    held_out: list[_HeldOut] = []
    for fold in range(FOLDS):
        asked = [examples[row] for row in rows[fold::FOLDS]]
        without = retriever.remove(sorted(rows[fold::FOLDS]))
        prototypes = without.retrieve(
            [example.x for example in asked], editor.wants(1), distinct=editor.distinct_outputs
        )
        with editor.templates.table.without(asked):
            for example, retrieved in zip(asked, prototypes, strict=True):
                if not retrieved or stored_candidates(example.x, retrieved):
                    continue
                ranking = editor.rank(example.x, retrieved)
                outputs = [item.output for item in ranking.proposals.items]
                is_right = [is_same_output(output, example.y) for output in outputs]
                held_out.append(_HeldOut(ranking, np.array(is_right)))
        solved = sum(bool(one.is_right.any()) for one in held_out)
        if len(held_out) >= HOPELESS_QUESTIONS and solved < HOPELESS_SHARE * len(held_out):
            break
    return held_out


def _rerank(held_out: Sequence[_HeldOut]) -> tuple[list[NDArray[np.float64]], Reranker]:
    """Return the scores of the prototypes of each pair, and the re-ranker fitted on all of them.

    Cross-fitted: the scores of a pair come from a re-ranker that was fitted without it.
    """
    differences = [one.ranking.proposals.differences for one in held_out]
    labels = [one.is_transferable for one in held_out]
    scores: list[NDArray[np.float64]] = [np.empty(0)] * len(held_out)
    for fold in range(min(RERANKER_FOLDS, len(held_out))):
        kept = [i for i in range(len(held_out)) if i % RERANKER_FOLDS != fold]
        reranker = Reranker.fit([differences[i] for i in kept], [labels[i] for i in kept])
        for i in range(fold, len(held_out), RERANKER_FOLDS):
            scores[i] = reranker.score(differences[i])
    return scores, Reranker.fit(differences, labels)


def even_sample(examples: Sequence[Example], count: int) -> Sequence[Example]:
    """Return at most `count` of the examples, at equal intervals."""
    step = max(1, -(-len(examples) // count))
    return examples if step == 1 else [examples[row] for row in range(0, len(examples), step)]


def summary(chooser: Chooser, count: int, *, before: str = UNTRAINED) -> str:
    """Return the shares of right answers in one line; `before` names those before a change."""
    shares = ", ".join(f"{name} {share:.0%}" for name, share in chooser.accuracy.items())
    line = f"editor: right on {count} held-out pairs: {shares}"
    if chooser.preferred not in (None, before):
        line += f"; {chooser.preferred} is used, since the chooser is behind it"
    return line
