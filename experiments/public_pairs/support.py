"""Measure the messy support table: what a team's 300 rows answer, by what an answer needs."""

import re
from collections.abc import Callable, Iterator, Mapping
from difflib import SequenceMatcher

import numpy as np

from experiments.lib.results import DECIMALS, Measured, Row, interval_of
from experiments.messy.support_pairs import KINDS, UNANSWERABLE, held_out, stored_rows
from experiments.public_pairs.promises import best_answer
from experiments.public_pairs.systems import UNTRAINED, System
from redraft.metrics.exact_match import is_same_output
from redraft.model import RetrieveAndEdit
from redraft.training.fit import FitOptions
from redraft.types import Candidate, Example, Input, input_text

SETTING = "support"
SEEDS = (0, 1, 2)
"""Teams: each seed makes other rows and other questions."""

UNSURE = 0.5
"""An unanswerable question is recognised if it is marked, or has a lower confidence."""

ANSWERABLE = "answerable"

METRICS = {
    ANSWERABLE: "answerable, right %",
    **{kind: f"{kind}, right %" for kind in KINDS if kind != UNANSWERABLE},
    UNANSWERABLE: "unanswerable, recognised %",
}

DIFFLIB = "difflib substitution"

Answer = Callable[[Input], Candidate | None]


def replace_words(x: str, prototype_x: str, output: str) -> str:
    """Return the prototype's `output` with its words that differ between both inputs replaced.

    The baseline of fifteen lines: no values, no formats, no choice.
    """
    words, old = ([word.strip("?!.,:;\"'") for word in text.split()] for text in (x, prototype_x))
    replaced: dict[str, str] = {}
    for tag, start, end, low, high in SequenceMatcher(None, old, words, False).get_opcodes():
        if tag == "replace" and end - start == high - low:
            replaced |= zip(map(str.lower, old[start:end]), words[low:high], strict=True)
        elif tag == "replace":
            replaced[" ".join(old[start:end]).lower()] = " ".join(words[low:high])
    found = "|".join(re.escape(text) for text in sorted(filter(None, replaced), key=len)[::-1])
    pattern = rf"(?<!\w)(?:{found})(?!\w)" if found else r"(?!)"
    return re.sub(pattern, lambda match: replaced[match[0].lower()], output, flags=re.IGNORECASE)


def support_rows() -> Iterator[Measured]:
    """Yield the scores of each system for each team."""
    for seed in SEEDS:
        train, asked = stored_rows(seed), held_out(seed)
        for name, answer in _answerers(train).items():
            yield _measured(name, seed, asked, answer)


def _answerers(train: list[Example]) -> Mapping[str, Answer]:
    verbatim, default = (
        System(name, "bm25", editor).fit(train, FitOptions())
        for name, editor in (("verbatim", "verbatim"), (UNTRAINED, "choosing"))
    )
    return {
        "verbatim": lambda x: best_answer(verbatim, x),
        DIFFLIB: lambda x: _replaced(verbatim, x),
        UNTRAINED: lambda x: best_answer(default, x),
    }


def _replaced(verbatim: RetrieveAndEdit, x: Input) -> Candidate | None:
    nearest = best_answer(verbatim, x)
    if nearest is None or nearest.prototype is None:
        return nearest
    example = nearest.prototype.example
    output = replace_words(input_text(x), input_text(example.x), example.y)
    return Candidate(output, nearest.score, nearest.prototype)


def _measured(name: str, seed: int, asked: list[Example], answer: Answer) -> Measured:
    """Return the scores of each question in the column of its kind; other columns are NaN."""
    values: dict[str, list[float]] = {metric: [] for metric in METRICS}
    for example in asked:
        kind, candidate = example.meta["kind"], answer(example.x)
        if kind == UNANSWERABLE:
            score = _is_recognised(candidate)
        else:
            score = candidate is not None and is_same_output(candidate.output, example.y)
        columns = {kind} if kind == UNANSWERABLE else {kind, ANSWERABLE}
        for metric, column in values.items():
            column.append(100.0 * score if metric in columns else float("nan"))
    known = {metric: [x for x in column if not np.isnan(x)] for metric, column in values.items()}
    row = Row(
        name,
        SETTING,
        "dev",
        seed,
        len(asked),
        {metric: round(float(np.mean(column)), DECIMALS) for metric, column in known.items()},
        interval_of(known),
    )
    return Measured(row, values, [str(i) for i in range(len(asked))])


def _is_recognised(answer: Candidate | None) -> bool:
    """Return True if the answer says itself that it may be wrong."""
    if answer is None or not answer.is_familiar:
        return True
    return answer.confidence is not None and answer.confidence < UNSURE
