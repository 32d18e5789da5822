"""Judge a language model beside the other proposers, on held-out pairs.

Each question is a request that costs time or money: few are asked, and each is asked once.
"""

import math
import time
from collections.abc import Iterator, Sequence

import numpy as np

from redraft.editing.chooser import Chooser, Question
from redraft.editing.choosing import ChoosingEditor
from redraft.editing.combining import GENERATED, LM_FEATURES, first_outputs
from redraft.editing.lm_editor import LmEditor
from redraft.editing.proposals import merge_key, stored_candidates
from redraft.errors import LmError
from redraft.metrics.exact_match import is_same_output
from redraft.training.fit import DEV_MIN, FitOptions
from redraft.training.fit_choosing import Judge, summary
from redraft.types import Candidate, Example, Prototype

JUDGED = 60
"""Held-out pairs that a language model is asked."""

REPORTED = 10.0
"""Seconds between two lines about the progress."""

WITHOUT, ALONE = "without it", "language model"
"""Names of the answers without the language model, and of its own."""

Asked = tuple[Example, Sequence[Prototype], list[Candidate]]
"""A held-out pair, its prototypes, and the answer of the language model."""


def add_lm(
    editor: ChoosingEditor,
    lm: LmEditor,
    judge: Judge,
    options: FitOptions,
    *,
    seconds: float = math.inf,
) -> ChoosingEditor:
    """Return the editor with a language model, or without it if held-out pairs do not need it.

    The arguments are those of `add_neural`.
    """
    new = _new_pairs(judge) if judge.editor.chooser is not None else []
    if len(new) < DEV_MIN:
        options.log(
            f"editor: the language model is not used: {len(new)} held-out pairs are too few "
            "to judge it"
        )
        return editor
    without = judge.editor.with_neural(editor.neural, editor.combined)
    both = without.with_lm(lm)
    questions: list[Question] = []
    firsts: dict[str, list[int]] = {WITHOUT: [], ALONE: []}
    deadline = time.monotonic() + seconds
    with judge.forgotten_by(editor):
        for example, near, answered in _asked(lm, new, options):
            generated: list[Candidate] = []
            if editor.neural is not None:
                [generated] = editor.neural.edit([example.x], [first_outputs(near)], GENERATED)
            ranking = both.rank(example.x, near)
            pool = both.pool(example.x, ranking, generated, answered)
            rows = {merge_key(output): row for row, output in enumerate(pool.outputs)}
            is_right = [is_same_output(output, example.y) for output in pool.outputs]
            questions.append(Question(pool.features, ranking.context, np.array(is_right)))
            before = next(without.choose(example.x, near, generated))
            firsts[WITHOUT].append(rows.get(merge_key(before.output), -1))
            firsts[ALONE].append(rows[merge_key(answered[0].output)])
            if time.monotonic() > deadline and len(questions) >= DEV_MIN:
                break
    if len(questions) < DEV_MIN:
        options.log(
            f"editor: the language model is not used: it answered {len(questions)} held-out pairs, "
            f"and {DEV_MIN} are needed to judge it"
        )
        return editor
    chooser = Chooser.fit(questions, features=LM_FEATURES, firsts=firsts)
    shares = chooser.accuracy
    helps = max(shares["chooser"], shares[ALONE]) > shares[WITHOUT]
    verdict = "" if helps else "; the language model is not used, since it does not help"
    options.log(summary(chooser, len(questions), before=WITHOUT) + verdict)
    return editor.with_lm(lm, chooser) if helps else editor


def _new_pairs(judge: Judge) -> Sequence[tuple[Example, Sequence[Prototype]]]:
    """Return the held-out pairs whose input is not stored, at most `JUDGED`, and prototypes."""
    inputs, editor = [example.x for example in judge.pairs], judge.editor
    prototypes = judge.retriever.retrieve(inputs, editor.wants(1), distinct=editor.distinct_outputs)
    return [
        (example, near)
        for example, near in zip(judge.pairs, prototypes, strict=True)
        if near and not stored_candidates(example.x, near)
    ][:JUDGED]


def _asked(
    lm: LmEditor, new: Sequence[tuple[Example, Sequence[Prototype]]], options: FitOptions
) -> Iterator[Asked]:
    """Ask held-out pairs, and yield those that the language model answers; a fault ends it.

    Logs the progress and the time.
    """
    options.log(f"editor: asking the language model {lm.settings.model} {len(new)} held-out pairs")
    started = reported = time.monotonic()
    for count, (example, near) in enumerate(new, start=1):
        try:
            [answered] = lm.edit([example.x], [near])
        except LmError as error:
            options.log(f"editor: the language model stops at pair {count} of {len(new)}: {error}")
            return
        if answered:
            yield example, near, answered
        now = time.monotonic()
        if now - reported >= REPORTED and count < len(new):
            left = (now - started) / count * (len(new) - count)
            options.log(f"language model: {count} of {len(new)} pairs, {left:.0f} s left")
            reported = now
