"""A system's completions in a setting, as a row with its intervals and the figures behind it."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from experiments.autocomplete.keystroke_savings import (
    FirstChoices,
    Typing,
    keys_saved_metrics,
    replay,
)
from experiments.autocomplete.settings import Found, Setting
from experiments.completion.typing import next_token_ranks
from experiments.lib.intervals import mean_interval
from experiments.lib.next_token import NEVER, TokenRanks, predict
from experiments.lib.paired import DEFAULT
from experiments.lib.results import DECIMALS, DISTANCE, SIMILARITY, Measured, Row
from redraft.completion.engine import CompletionEngine
from redraft.completion.project_session import ProjectSession
from redraft.editing.base import Editor, VerbatimEditor
from redraft.editing.neural import NeuralEditor
from redraft.metrics.bleu import bleu_yin
from redraft.metrics.completion import (
    LIST_SIZES,
    Ranks,
    completion_metrics,
    completion_metrics_paper,
)
from redraft.model import RetrieveAndEdit
from redraft.text.tokenizer import Tokenizer, spell
from redraft.text.vocabulary import END
from redraft.training.fit import FitOptions
from redraft.types import Example, Prototype

COMPLETIONS = {
    "avg_1": "avg 1",
    "avg_5": "avg 5",
    "avg_10": "avg 10",
    "longest_1": "longest 1",
    "longest_10": "longest 10",
    "bleu_yin": "BLEU",
}
TYPING = {"keys_saved": "keys saved %", "tokens_saved": "tokens saved %", "suggestion_ms": "ms"}
METRICS = COMPLETIONS | TYPING

TIMED, TYPED = 6, 20
"""Functions whose suggestions are timed, and tokens of each that are typed meanwhile."""

PerFunction = Mapping[str, Sequence[float]]

_TOKENIZER = Tokenizer()


def measure_editor(
    system: str, setting: Setting, found: Found, editor: NeuralEditor, *, decoded: int
) -> Measured:
    """The completions of an editor, the keys that they save, and so many whole bodies."""
    started = time.monotonic()
    predicted = predict(editor, setting.asked, found)
    values = _completion_values([each.ranks for each in predicted]) | _prototypes(setting, found)
    typed = [_typed(editor, each, own) for each, own in zip(setting.asked, predicted, strict=True)]
    values |= keys_saved_metrics(typed)
    values |= _latencies(setting, found, editor)
    values |= _bleu(setting, found, editor, decoded)
    return _measured(system, setting, values, time.monotonic() - started)


def measure_retriever(system: str, setting: Setting, found: Found) -> Measured:
    """The completions of prototypes: each foresees the token where it meets what was typed."""
    started = time.monotonic()
    editor = VerbatimEditor()
    predicted = [
        _aligned(example, ranked[: max(LIST_SIZES)])
        for example, ranked in zip(setting.asked, found, strict=True)
    ]
    values = _completion_values([each.ranks for each in predicted]) | _prototypes(setting, found)
    typed = [
        _replayed(_TOKENIZER.tokenize(example.y), own)
        for example, own in zip(setting.asked, predicted, strict=True)
    ]
    values |= keys_saved_metrics(typed)
    values |= _latencies(setting, found, editor)
    values |= _bleu(setting, found, editor, len(setting.asked))
    return _measured(system, setting, values, time.monotonic() - started)


def measure_default(setting: Setting, options: FitOptions) -> Measured:
    """Return the completions and answers of the default without a network, fitted on what is known.

    Completions are copied from the known functions as in an editor with an empty buffer; bodies are
    the first answers of the default editor.
    """
    started = time.monotonic()
    model = RetrieveAndEdit.fit(setting.known[""], options=replace(options, train=False))
    engine = CompletionEngine(model)
    ranks = []
    for example in setting.asked:
        session = engine.session(example.x)
        assert isinstance(session, ProjectSession)
        ranks.append(next_token_ranks(session, example.y))
    answers = model.predict([example.x for example in setting.asked], 1)
    bleu = [
        100 * bleu_yin(example.y, candidates[0].output if candidates else None)
        for example, candidates in zip(setting.asked, answers, strict=True)
    ]
    values = {**_completion_values(ranks), "bleu_yin": bleu}
    return _measured(DEFAULT, setting, values, time.monotonic() - started)


def _prototypes(setting: Setting, found: Found) -> dict[str, Sequence[float]]:
    """How far the nearest prototype of each function is, 1 at most, and how near its body: BLEU."""
    bodies = [ranked[0].example.y if ranked else None for ranked in found]
    pairs = zip(setting.asked, bodies, strict=True)
    return {
        DISTANCE: [ranked[0].distance if ranked else 1.0 for ranked in found],
        SIMILARITY: [100 * bleu_yin(example.y, body) for example, body in pairs],
    }


def _completion_values(ranks: Sequence[Ranks]) -> dict[str, Sequence[float]]:
    return {**completion_metrics(ranks), **completion_metrics_paper(ranks)}


def _typed(editor: NeuralEditor, example: Example, predicted: TokenRanks) -> Typing:
    return _replayed(editor.encoding.tokenize_output(example.y), predicted)


def _replayed(tokens: Sequence[str], predicted: TokenRanks) -> Typing:
    texts = spell(tokens[: len(predicted.ranks) - 1])
    return replay(texts, FirstChoices(predicted.ranks == 0, predicted.first, predicted.ends))


def _latencies(setting: Setting, found: Found, editor: Editor) -> dict[str, Sequence[float]]:
    """Milliseconds of a core from a typed token to the suggestion, the median of a function's."""
    latencies = [float("nan")] * len(setting.asked)
    for row in _spread(len(setting.asked), TIMED):
        texts = spell(_TOKENIZER.tokenize(setting.asked[row].y))[:TYPED]
        draft, taken = editor.start_session(setting.asked[row].x, found[row][: editor.wants(1)]), []
        for end in range(len(texts)):
            started = time.process_time()
            draft.complete("".join(texts[:end]), 1)
            taken.append(1000 * (time.process_time() - started))
        latencies[row] = float(np.median(taken)) if taken else float("nan")
    return {"suggestion_ms": latencies}


def _spread(count: int, chosen: int) -> list[int]:
    """So many rows of all, evenly spread."""
    return sorted({int(row) for row in np.linspace(0, count - 1, min(chosen, count)).round()})


def align_each(tokens: Sequence[str], outputs: Sequence[Sequence[str]]) -> NDArray[np.int64]:
    """Align every prefix of `tokens`, from the empty one, with each of K outputs: (T + 1, K)."""
    ids: dict[str, int] = {}
    lengths = np.array([len(output) for output in outputs], np.int64)
    words = np.full((len(outputs), int(lengths.max(initial=0))), -1)
    for row, output in enumerate(outputs):
        words[row, : len(output)] = [ids.setdefault(word, len(ids)) for word in output]
    ends = np.arange(words.shape[1] + 1)
    runs = np.zeros((len(outputs), len(ends)), np.int64)
    aligned = [np.zeros(len(outputs), np.int64)]
    for length, token in enumerate(tokens, start=1):
        # a run that ends here extends the run that ended one word before
        runs[:, 1:] = np.where(words == ids.get(token, -2), runs[:, :-1] + 1, 0)
        nearness = 2 * -np.abs(ends - length) + (ends > length)
        best = (runs * 4 * (len(tokens) + len(ends)) + nearness).argmax(1)
        has_run = runs[np.arange(len(outputs)), best] > 0
        aligned.append(np.where(has_run, best, np.minimum(length, lengths)))
    return np.stack(aligned)


def _aligned(example: Example, ranked: Sequence[Prototype]) -> TokenRanks:
    """The first prototype that foresees each token, by `align`, repeated guesses not counted.

    A prototype is as sure as can be: all the rest of its line is suggested.
    """
    body = _TOKENIZER.tokenize(example.y)
    outputs = [_TOKENIZER.tokenize(each.example.y) for each in ranked]
    closed = [[*output, END] for output in outputs]
    ranks, ends = [], []
    for truth, places in zip([*body, END], align_each(body, outputs), strict=True):
        found = (output[place] for output, place in zip(closed, places, strict=True))
        guesses = list(dict.fromkeys(found))
        ranks.append(guesses.index(truth) if truth in guesses else NEVER)
        ends.append(guesses[:1] in ([END], ["\n"]))
    return TokenRanks(np.array(ranks, np.int64), np.zeros(len(ranks)), np.array(ends, np.bool_))


def _bleu(
    setting: Setting, found: Found, editor: Editor, decoded: int
) -> dict[str, Sequence[float]]:
    """The BLEU of whole bodies, written from x alone; of the others it is not known."""
    if not decoded:
        return {}
    asked = _spread(len(setting.asked), decoded)
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
