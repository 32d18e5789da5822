"""A system's completions in a setting, as a row with its intervals and the figures behind it."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from redraft.data.example import Example
from redraft.data.tokenizer import Tokenizer, spell
from redraft.data.vocabulary import END
from redraft.editing.completion import align_each
from redraft.editing.editor import Editor, VerbatimEditor
from redraft.editing.neural_editor import NeuralEditor
from redraft.evaluation.bleu import bleu_yin
from redraft.evaluation.bootstrap import mean_interval
from redraft.evaluation.completion import (
    LIST_SIZES,
    Ranks,
    completion_metrics,
    completion_metrics_paper,
)
from redraft.evaluation.keys_saved import FirstChoices, Typing, keys_saved_metrics, replay
from redraft.evaluation.next_tokens import NEVER, Foresight, foresee
from redraft.retrieval.prototype import Prototype
from redraft.studies.functions import Found, Setting
from redraft.studies.results import DECIMALS, Row

METRICS = {
    "avg_1": "avg 1",
    "avg_5": "avg 5",
    "avg_10": "avg 10",
    "longest_1": "longest 1",
    "longest_10": "longest 10",
    "bleu_yin": "BLEU",
    "keys_saved": "keys saved %",
}

DISTANCE = "distance"

PerFunction = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Measured:
    """A row, and the figures of every function that it is the mean of."""

    row: Row
    values: PerFunction
    packages: Sequence[str]


def measure_editor(
    system: str, setting: Setting, found: Found, editor: NeuralEditor, *, decoded: int
) -> Measured:
    """The completions of an editor, the keys that they save, and so many whole bodies."""
    started = time.monotonic()
    foreseen = foresee(editor, setting.asked, found)
    values = _completion_values([each.ranks for each in foreseen]) | _distances(found)
    typed = [_typed(editor, each, own) for each, own in zip(setting.asked, foreseen, strict=True)]
    values |= keys_saved_metrics(typed)
    values |= _bleu(setting, found, editor, decoded)
    return _measured(system, setting, values, time.monotonic() - started)


def measure_retriever(system: str, setting: Setting, found: Found) -> Measured:
    """The completions of prototypes: each foresees the token where it meets what was typed."""
    started = time.monotonic()
    tokens = Tokenizer()
    ranks = [
        _aligned_ranks(tokens, example, ranked[: max(LIST_SIZES)])
        for example, ranked in zip(setting.asked, found, strict=True)
    ]
    values = _completion_values(ranks) | _distances(found)
    values |= _bleu(setting, found, VerbatimEditor(), len(setting.asked))
    return _measured(system, setting, values, time.monotonic() - started)


def _distances(found: Found) -> dict[str, Sequence[float]]:
    """How far the nearest prototype of each function is; 1 is as far as can be."""
    return {DISTANCE: [ranked[0].distance if ranked else 1.0 for ranked in found]}


def _completion_values(ranks: Sequence[Ranks]) -> dict[str, Sequence[float]]:
    return {**completion_metrics(ranks), **completion_metrics_paper(ranks)}


def _typed(editor: NeuralEditor, example: Example, foreseen: Foresight) -> Typing:
    texts = spell(editor.numbering.tokenize_output(example.y)[: len(foreseen.ranks) - 1])
    return replay(texts, FirstChoices(foreseen.ranks == 0, foreseen.first, foreseen.ends))


def _aligned_ranks(tokenizer: Tokenizer, example: Example, ranked: Sequence[Prototype]) -> Ranks:
    """The first prototype that foresees each token, by `align`, repeated guesses not counted."""
    body = tokenizer.tokenize(example.y)
    outputs = [tokenizer.tokenize(each.example.y) for each in ranked]
    closed = [[*output, END] for output in outputs]
    ranks = []
    for truth, places in zip([*body, END], align_each(body, outputs), strict=True):
        found = (output[place] for output, place in zip(closed, places, strict=True))
        guesses = list(dict.fromkeys(found))
        ranks.append(guesses.index(truth) if truth in guesses else NEVER)
    return np.array(ranks, np.int64)


def _bleu(
    setting: Setting, found: Found, editor: Editor, decoded: int
) -> dict[str, Sequence[float]]:
    """The BLEU of whole bodies, written from x alone; of the others it is not known."""
    if not decoded:
        return {}
    rows = np.linspace(0, len(setting.asked) - 1, min(decoded, len(setting.asked))).round()
    asked = sorted({int(row) for row in rows})
    answers = editor.edit([setting.asked[row].x for row in asked], [found[row] for row in asked])
    scores = [float("nan")] * len(setting.asked)
    for row, candidates in zip(asked, answers, strict=True):
        output = candidates[0].output if candidates else None
        scores[row] = 100 * bleu_yin(setting.asked[row].y, output)
    return {"bleu_yin": scores}


def _measured(system: str, setting: Setting, values: PerFunction, seconds: float) -> Measured:
    packages = setting.packages
    metrics, intervals = {}, {}
    for name, each in values.items():
        known = [row for row, value in enumerate(each) if not np.isnan(value)]
        own = [each[row] for row in known]
        low, high = mean_interval(own, clusters=[packages[row] for row in known])
        metrics[name] = round(float(np.mean(own)), DECIMALS)
        intervals[name] = (round(low, DECIMALS), round(high, DECIMALS))
    row = Row(
        system,
        setting.name,
        setting.split,
        0,
        len(setting.asked),
        metrics,
        intervals,
        predict_seconds=round(seconds, 1),
    )
    return Measured(row, values, packages)
