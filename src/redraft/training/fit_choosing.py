"""Fit the default editor: values, templates, and a chooser trained on held-out training pairs.

Cross-fitting: each fold of the pairs is asked of an index and a table that do not have it, as new
questions will be. Needs no torch, and seconds.
"""

import math
import random
import time
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

import numpy as np

from redraft.editing.chooser import Chooser, Question
from redraft.editing.choosing import ChoosingEditor, Ranking, stored_candidates
from redraft.editing.combining import COMBINED_FEATURES, GENERATED, first_outputs
from redraft.editing.proposals import FEATURES, SUBSTITUTION, VERBATIM
from redraft.editing.templates import TemplateModel
from redraft.editing.value_table import ValueTable
from redraft.metrics.exact_match import is_same_output
from redraft.retrieval.base import Retriever
from redraft.training.fit import DEV_MIN, FitOptions
from redraft.types import Example

if TYPE_CHECKING:
    from redraft.editing.neural import NeuralEditor

FOLDS = 10
MAX_QUESTIONS = 480
"""Held-out training pairs that the chooser is fitted on, a fold of them at a time."""

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
    asked = examples
    if len(examples) > MAX_EXAMPLES:
        asked = _even_sample(examples, MAX_EXAMPLES)
        retriever = retriever.with_examples(asked)
    if len(asked) < DEV_MIN:
        options.log(f"editor: no confidence, since {len(asked)} pairs are too few to hold any out")
        return editor
    questions, firsts = _held_out(editor, asked, retriever)
    if not questions:
        options.log("editor: no confidence, since every input is stored several times")
        return editor
    chooser = Chooser.fit(questions, features=FEATURES, firsts=firsts)
    options.log(_summary(chooser, len(questions)))
    return ChoosingEditor(editor.templates, chooser)


def is_judgeable(editor: ChoosingEditor, dev: Sequence[Example], options: FitOptions) -> bool:
    """Return True if enough examples are held out to judge a network; log it if they are not."""
    if editor.chooser is not None and len(dev) >= DEV_MIN:
        return True
    options.log(f"editor: no network is trained: {len(dev)} held-out pairs are too few to judge it")
    return False


def add_neural(
    editor: ChoosingEditor,
    neural: "NeuralEditor",
    dev: Sequence[Example],
    retriever: Retriever,
    options: FitOptions,
    *,
    is_known: bool,
    seconds: float = math.inf,
) -> ChoosingEditor:
    """Return the editor with a neural one, or without it if it answers dev as well without it.

    Neither `retriever` nor the network has seen the dev examples; `is_known` says whether their
    values are in the editor's table. No more are asked than `seconds` allow.
    """
    combined = _combined(
        editor, neural, dev, retriever, is_known=is_known, deadline=time.monotonic() + seconds
    )
    if combined is None:
        options.log("editor: the network is not used: too few pairs are held out to judge it")
        return editor
    shares = combined.accuracy
    helps = max(shares["chooser"], shares[NEURAL]) > shares[UNTRAINED]
    verdict = "" if helps else "; the network is not used, since it does not help"
    options.log(_summary(combined, len(combined.confidence.held_out)) + verdict)
    if not helps:
        return editor
    return ChoosingEditor(editor.templates, editor.chooser, neural=neural, combined=combined)


def _combined(
    editor: ChoosingEditor,
    neural: "NeuralEditor",
    dev: Sequence[Example],
    retriever: Retriever,
    *,
    is_known: bool,
    deadline: float,
) -> Chooser | None:
    """Fit the chooser over the proposals of both on dev; None if too few examples are asked."""
    if editor.chooser is None:
        return None
    both = editor.with_neural(neural)
    questions: list[Question] = []
    firsts: dict[str, list[int]] = {UNTRAINED: [], NEURAL: []}
    column = COMBINED_FEATURES.index("is_neural_first")
    with editor.templates.table.without(dev) if is_known else nullcontext():
        for start in range(0, len(dev), BATCH):
            if time.monotonic() > deadline and len(questions) >= DEV_MIN:
                break
            batch = dev[start : start + BATCH]
            inputs = [example.x for example in batch]
            prototypes = retriever.retrieve(inputs, both.wants(1), distinct=both.distinct_outputs)
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
    return ChoosingEditor(TemplateModel.learn(_even_sample(examples, MAX_COUNTED), table))


def _held_out(
    editor: ChoosingEditor, examples: Sequence[Example], retriever: Retriever
) -> tuple[list[Question], dict[str, list[int]]]:
    """Ask training pairs of an index and a table without them.

    Inputs that are stored elsewhere too are left out: they need no chooser.
    """
    rows = list(range(len(examples)))
    random.Random(0).shuffle(rows)
    rows = rows[:MAX_QUESTIONS]
    questions: list[Question] = []
    firsts: dict[str, list[int]] = {VERBATIM: [], SUBSTITUTION: []}
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
                questions.append(question_of(ranking, example.y))
                for name, firsts_of in firsts.items():
                    firsts_of.append(ranking.proposals.first_of(name))
    return questions, firsts


def question_of(ranking: Ranking, y: str) -> Question:
    """Return the features of a ranking with the verdicts on its outputs."""
    is_right = [is_same_output(item.output, y) for item in ranking.proposals.items]
    return Question(ranking.features, ranking.context, np.array(is_right))


def _even_sample(examples: Sequence[Example], count: int) -> Sequence[Example]:
    step = max(1, -(-len(examples) // count))
    return examples if step == 1 else [examples[row] for row in range(0, len(examples), step)]


def _summary(chooser: Chooser, count: int) -> str:
    shares = ", ".join(f"{name} {share:.0%}" for name, share in chooser.accuracy.items())
    line = f"editor: right on {count} held-out pairs: {shares}"
    if chooser.preferred not in (None, UNTRAINED):
        line += f"; {chooser.preferred} is used, since the chooser is behind it"
    return line
