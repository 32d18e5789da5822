"""BLEU as the papers computed it: their tokens, NLTK's and sacrebleu's counting."""

import re
import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redraft.data.rows import NEWLINE_MARK

_PUNCTUATION = re.compile(r"([^A-Za-z0-9_])")
_CAMEL = re.compile(r"([a-z])([A-Z])")
_SPACE = re.compile(r"\s+")
_QUOTES = str.maketrans({'"': "`", "'": "`"})

MAX_ORDER = 4


def bleu_tokens(text: str) -> list[str]:
    """Ling's tokens: punctuation apart, camelCase split, quotes alike, white space gone."""
    text = _CAMEL.sub(r"\1 \2", _PUNCTUATION.sub(r" \1 ", text))
    return _SPACE.sub(" ", text).translate(_QUOTES).split()


@lru_cache(maxsize=8192)
def yin_tokens(text: str) -> tuple[str, ...]:
    """The tokens of the `yin` and `corpus` scorers: newlines vanish."""
    return tuple(bleu_tokens(text.replace(NEWLINE_MARK, "\n")))


@lru_cache(maxsize=8192)
def paper_tokens(text: str) -> tuple[str, ...]:
    """The tokens of the `paper` scorer: a newline is a token."""
    return tuple(bleu_tokens(text.replace("\n", NEWLINE_MARK)))


def _nltk_bleu(
    reference: Sequence[str], output: Sequence[str], orders: int, smoothing: int
) -> float:
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    if not output or orders == 0:
        return float(list(reference) == list(output))
    smooth = getattr(SmoothingFunction(), f"method{smoothing}")
    with warnings.catch_warnings():
        # NLTK warns that an unsmoothed score without a common 4-gram is 0; it is meant to be
        warnings.simplefilter("ignore", UserWarning)
        score = sentence_bleu(
            [list(reference)],
            list(output),
            weights=[1 / orders] * orders,
            smoothing_function=smooth,
        )
    return float(score)


def bleu_yin(reference: str, output: str | None) -> float:
    """Sentence BLEU with NLTK's smoothing method 3, in 0 to 1; a missing output scores 0."""
    if output is None:
        return 0.0
    tokens = yin_tokens(reference)
    return _nltk_bleu(tokens, yin_tokens(output), min(MAX_ORDER, len(tokens)), 3)


def bleu_paper(reference: str, output: str | None) -> float:
    """Sentence BLEU without smoothing, newlines counted, in 0 to 1; a missing output scores 0."""
    if output is None:
        return 0.0
    expected, tokens = paper_tokens(reference), paper_tokens(output)
    return _nltk_bleu(expected, tokens, min(MAX_ORDER, len(expected), len(tokens)), 0)


def _corpus_metric() -> Any:
    from sacrebleu.metrics.bleu import BLEU

    # the tokens are ours, and sacrebleu would smooth by default
    return BLEU(tokenize="none", smooth_method="none", force=True)


def corpus_statistics(
    references: Sequence[str], outputs: Sequence[str | None]
) -> NDArray[np.int64]:
    """What corpus BLEU adds up, a row an example: 4 matches, 4 totals, the two lengths."""
    metric = _corpus_metric()
    rows = []
    for reference, output in zip(references, outputs, strict=True):
        texts = [" ".join(yin_tokens(text)) for text in (output or "", reference)]
        score = metric.corpus_score([texts[0]], [[texts[1]]])
        rows.append([*score.counts, *score.totals, score.sys_len, score.ref_len])
    return np.array(rows, np.int64).reshape(len(rows), 2 * MAX_ORDER + 2)


def bleu_corpus(statistics: NDArray[np.int64]) -> float:
    """Corpus BLEU from the sum of the examples' statistics, in 0 to 1."""
    from sacrebleu.metrics.bleu import BLEU

    sums = statistics.sum(axis=0).tolist()
    score = BLEU.compute_bleu(
        correct=sums[:MAX_ORDER],
        total=sums[MAX_ORDER : 2 * MAX_ORDER],
        sys_len=sums[-2],
        ref_len=sums[-1],
        smooth_method="none",
    )
    return float(score.score) / 100


def corpus_signature() -> str:
    """sacrebleu's own description of how corpus BLEU is computed here."""
    metric = _corpus_metric()
    metric.corpus_score(["a"], [["a"]])
    return str(metric.get_signature())
