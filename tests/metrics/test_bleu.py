"""BLEU agrees with NLTK and sacrebleu called directly on the protocol's tokens."""

import re
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
from sacrebleu import corpus_bleu

from redraft.metrics.bleu import (
    bleu_corpus,
    bleu_paper,
    bleu_tokens,
    bleu_yin,
    corpus_signature,
    corpus_statistics,
)

CARD = 'class Ooze(MinionCard):\n    def __init__(self):\n        super().__init__("Ooze", 2)\n'
OTHER = "class Wolf(MinionCard):\n    def __init__(self):\n        super().__init__('Wolf', 3)\n"

code = st.lists(st.sampled_from([*"ab(.=\n' ", "fooBar", "Minion", "§", "self"]), max_size=25).map(
    "".join
)


def protocol_tokens(text: str) -> list[str]:
    """The protocol's five steps, one at a time."""
    text = re.sub(r"([^A-Za-z0-9_])", r" \1 ", text)
    text = re.sub(r"([a-z])([A-Z])", r"\1 \2", text)
    text = re.sub(r"\s+", " ", text)
    text = text.replace('"', "`").replace("'", "`")
    return [token for token in text.split(" ") if token]


def test_tokens_are_those_of_the_protocol() -> None:
    assert bleu_tokens("fooBar('x_1')§") == ["foo", "Bar", "(", "`", "x_1", "`", ")", "§"]


@given(code)
def test_tokens_follow_the_protocol_for_any_text(text: str) -> None:
    assert bleu_tokens(text) == protocol_tokens(text)


@given(code, code)
def test_yin_is_nltks_smoothed_bleu_over_the_orders_of_the_reference(
    reference: str, output: str
) -> None:
    expected = protocol_tokens(reference.replace("§", "\n"))
    tokens = protocol_tokens(output.replace("§", "\n"))
    if not expected or not tokens:
        assert bleu_yin(reference, output) == float(expected == tokens)
        return
    orders = min(4, len(expected))
    score = sentence_bleu(
        [expected],
        tokens,
        weights=[1 / orders] * orders,
        smoothing_function=SmoothingFunction().method3,
    )
    assert bleu_yin(reference, output) == pytest.approx(score, abs=1e-9)


@given(code, code)
def test_paper_is_nltks_bare_bleu_with_newlines_as_tokens(reference: str, output: str) -> None:
    expected = protocol_tokens(reference.replace("\n", "§"))
    tokens = protocol_tokens(output.replace("\n", "§"))
    orders = min(4, len(expected), len(tokens))
    if orders == 0:
        assert bleu_paper(reference, output) == float(expected == tokens)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        score = sentence_bleu([expected], tokens, weights=[1 / orders] * orders)
    assert bleu_paper(reference, output) == pytest.approx(score, abs=1e-9)


@given(st.lists(st.tuples(code, code), min_size=1, max_size=6))
def test_corpus_is_sacrebleus(pairs: list[tuple[str, str]]) -> None:
    references, outputs = zip(*pairs, strict=True)
    texts = [
        [" ".join(protocol_tokens(t.replace("§", "\n"))) for t in ts]
        for ts in (outputs, references)
    ]
    expected = corpus_bleu(
        texts[0], [texts[1]], tokenize="none", smooth_method="none", force=True
    ).score
    found = 100 * bleu_corpus(corpus_statistics(references, outputs))
    assert found == pytest.approx(expected, abs=1e-6)


def test_a_missing_output_scores_nothing() -> None:
    assert bleu_yin(CARD, None) == bleu_paper(CARD, None) == 0
    assert bleu_corpus(corpus_statistics([CARD], [None])) == 0


def test_newlines_count_for_paper_alone() -> None:
    one_line = CARD.replace("\n", " ")
    assert bleu_yin(CARD, one_line) == pytest.approx(1)
    assert bleu_paper(CARD, one_line) < 1


def test_the_mark_for_a_newline_is_a_newline() -> None:
    assert bleu_yin(CARD, CARD.replace("\n", "§")) == pytest.approx(1)
    assert bleu_paper(CARD, CARD.replace("\n", "§")) == pytest.approx(1)


def test_statistics_are_one_row_an_example() -> None:
    statistics = corpus_statistics([CARD, CARD], [OTHER, CARD])
    assert statistics.shape == (2, 10)
    assert np.array_equal(statistics[1, :4], statistics[1, 4:8])


def test_the_signature_says_that_nothing_is_smoothed() -> None:
    assert "smooth:none" in corpus_signature()
    assert "tok:none" in corpus_signature()
