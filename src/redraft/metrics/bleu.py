"""BLEU in the variants of the papers, computed with their tokenization by NLTK and sacreBLEU.

`bleu_yin` is smoothed sentence BLEU (Yin & Neubig 2017), `bleu_paper` unsmoothed sentence BLEU
(Hashimoto et al. 2018), and `bleu_corpus` corpus BLEU.
"""

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
    """Tokenize like Ling et al. (2016): split punctuation and camelCase, unify quotes."""
    text = _CAMEL.sub(r"\1 \2", _PUNCTUATION.sub(r" \1 ", text))
    return _SPACE.sub(" ", text).translate(_QUOTES).split()


@lru_cache(maxsize=8192)
def yin_tokens(text: str) -> tuple[str, ...]:
    """Return the tokens for `bleu_yin` and `bleu_corpus`: newlines are dropped."""
    return tuple(bleu_tokens(text.replace(NEWLINE_MARK, "\n")))


@lru_cache(maxsize=8192)
def paper_tokens(text: str) -> tuple[str, ...]:
    """Return the tokens for `bleu_paper`: a newline is a token."""
    return tuple(bleu_tokens(text.replace("\n", NEWLINE_MARK)))


def _nltk_bleu(
    reference: Sequence[str], output: Sequence[str], orders: int, smoothing: int
) -> float:
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    if not output or orders == 0:
        return float(list(reference) == list(output))
    smooth = getattr(SmoothingFunction(), f"method{smoothing}")
    with warnings.catch_warnings():
        # NLTK warns that an unsmoothed score without a common 4-gram is 0, which is intended
        warnings.simplefilter("ignore", UserWarning)
        score = sentence_bleu(
            [list(reference)],
            list(output),
            weights=[1 / orders] * orders,
            smoothing_function=smooth,
        )
    return float(score)


def bleu_yin(reference: str, output: str | None) -> float:
    """Return sentence BLEU with NLTK's smoothing method 3, 0 to 1; a missing output scores 0."""
    if output is None:
        return 0.0
    tokens = yin_tokens(reference)
    return _nltk_bleu(tokens, yin_tokens(output), min(MAX_ORDER, len(tokens)), 3)


def bleu_paper(reference: str, output: str | None) -> float:
    """Return unsmoothed sentence BLEU with newline tokens, 0 to 1; a missing output scores 0."""
    if output is None:
        return 0.0
    expected, tokens = paper_tokens(reference), paper_tokens(output)
    return _nltk_bleu(expected, tokens, min(MAX_ORDER, len(expected), len(tokens)), 0)


def _corpus_metric() -> Any:
    from sacrebleu.metrics.bleu import BLEU

    # texts are tokenized already, and sacreBLEU smooths by default
    return BLEU(tokenize="none", smooth_method="none", force=True)


def corpus_statistics(
    references: Sequence[str], outputs: Sequence[str | None]
) -> NDArray[np.int64]:
    """Return the counts that corpus BLEU sums, (N, 10): 4 matches, 4 totals, both lengths."""
    metric = _corpus_metric()
    rows = []
    for reference, output in zip(references, outputs, strict=True):
        texts = [" ".join(yin_tokens(text)) for text in (output or "", reference)]
        score = metric.corpus_score([texts[0]], [[texts[1]]])
        rows.append([*score.counts, *score.totals, score.sys_len, score.ref_len])
    return np.array(rows, np.int64).reshape(len(rows), 2 * MAX_ORDER + 2)


def bleu_corpus(statistics: NDArray[np.int64]) -> float:
    """Return corpus BLEU, 0 to 1, from the statistics of the examples."""
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
    """Return sacreBLEU's signature of the corpus BLEU used here."""
    metric = _corpus_metric()
    metric.corpus_score(["a"], [["a"]])
    return str(metric.get_signature())
