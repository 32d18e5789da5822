"""Suggestions of the project and of a language model in one list."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from redraft.completion.generated_text import GeneratedEnd, generated_ends, is_enough
from redraft.completion.lm_prompt import CursorText
from redraft.completion.mixing import starter_mixture
from redraft.lm.stream import LmPiece
from redraft.types import Completion, Example, Prototype

TEXT = "def f(path):\n    "
CURSOR = CursorText.of(TEXT, len(TEXT))


def pieces(*texts: str, log_prob: float | None = -0.01) -> list[LmPiece]:
    return [LmPiece(text, log_prob) for text in texts]


def copied(text: str, probability: float) -> Completion:
    return Completion(text.split()[0], text, math.log(probability), None)


def test_a_generation_may_end_after_every_word_and_line() -> None:
    ends = generated_ends(CURSOR, pieces(" re", "turn", " open", "(", "path", ")", "\n"))
    assert [end.text for end in ends] == [
        "return",
        "return open",
        "return open(",
        "return open(path",
        "return open(path)",
    ]
    assert [end.ends_line for end in ends] == [False] * 4 + [True]
    assert np.allclose([end.log_prob for end in ends], [-0.02, -0.03, -0.04, -0.05, -0.06])


def test_a_generation_stops_where_nothing_more_would_be_shown() -> None:
    assert not is_enough(pieces(" return open"))
    assert is_enough(pieces(" return open", log_prob=-5.0))  # hardly probable
    assert not is_enough(pieces(" return open(path)", "\n"))
    assert is_enough(pieces(" return open(path)", "\n", log_prob=-1.0))
    assert is_enough(pieces(" a = 1\n    b = 2\n    c = 3\n"))


def test_agreement_raises_and_contradiction_lowers_the_probability() -> None:
    mixture = starter_mixture()
    ours = copied("return open(path)", 0.4)
    agreeing = generated_ends(CURSOR, pieces(" return", " open", "(path)", "\n"))
    differing = generated_ends(CURSOR, pieces(" with", " open", "(path)", " as file:", "\n"))

    def probability(ends: list[GeneratedEnd]) -> float:
        ranked = mixture.rank([ours], ends)
        return next((one.probability or 0 for one in ranked if one.text == ours.text), 0.0)

    assert probability(agreeing) > 0.4 > probability(differing)


def test_the_source_of_a_generated_text_is_a_shown_function_that_has_it() -> None:
    shown = [
        Prototype(Example({"name": "g"}, "pass"), 1.0),
        Prototype(Example({"name": "h"}, "data = load(path)\nreturn data"), 1.0),
    ]
    ends = generated_ends(CURSOR, pieces(" data", " = load(path)", "\n"))
    [first] = starter_mixture().rank([], ends, shown)
    assert first.is_generated
    assert first.prototype is shown[1]


def test_without_a_generation_the_suggestions_stay_as_they_are() -> None:
    ours = [copied("return open(path)", 0.4), copied("with open(path)", 0.06)]
    assert starter_mixture().rank(ours, []) == ours


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["return a", "if b:\n    c", "for x in y:"]), st.floats(0.06, 0.99)
        ),
        max_size=3,
    ),
    st.lists(
        st.tuples(st.sampled_from([" return", " a", " if", "(b)", "\n"]), st.floats(-6, 0)),
        max_size=8,
    ),
)
def test_a_list_is_sorted_distinct_and_has_probabilities(
    ours: list[tuple[str, float]], generated: list[tuple[str, float]]
) -> None:
    ends = generated_ends(CURSOR, [LmPiece(*one) for one in generated])
    ranked = starter_mixture().rank([copied(*one) for one in dict(ours).items()], ends)
    assert all(0 < (one.probability or 0) <= 1 for one in ranked)
    if ends:
        texts = [one.text for one in ranked]
        assert not any(a.startswith(b) for a in texts for b in texts if a is not b)
