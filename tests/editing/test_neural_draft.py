"""The draft that learned: prefixes that end within a word, and what is read only once."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from redraft.editing.mixture import Mixture, MixtureState
from redraft.editing.neural_draft import NeuralDraft, Words
from redraft.editing.neural_editor import NeuralEditor
from tests.greetings import greeter

X = {"text": "greet Zorblax"}
WHOLE = 'print("hello Zorblax")'


def begin() -> NeuralDraft:
    """A draft of the greeting of Zorblax."""
    model = greeter()
    assert isinstance(model.editor, NeuralEditor)
    (found,) = model.retriever.retrieve([X])
    return model.editor.begin(X, found)


@pytest.mark.parametrize("end", range(len(WHOLE)))
def test_a_prefix_may_end_anywhere(end: int) -> None:
    best = begin().complete(WHOLE[:end])[0]
    assert WHOLE[:end] + best.text == WHOLE


def test_within_a_word_the_token_is_the_whole_word() -> None:
    best = begin().complete('print("hello Zor')[0]
    assert (best.token, best.text) == ("Zorblax", 'blax")')


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(["p", "pri", 'print("h', 'print("hello Zo', 'print("hello', "print"]))
def test_all_that_may_follow_has_a_chance_of_one(prefix: str) -> None:
    found = begin().complete(prefix, k=10_000)
    assert math.fsum(math.exp(each.log_prob) for each in found) == pytest.approx(1, abs=1e-4)


def test_the_chance_of_a_longer_word_is_that_given_its_beginning() -> None:
    draft = begin()
    before = next(each for each in draft.complete('print("', k=10_000) if each.token == "hello")
    within = draft.complete('print("hel', k=1)[0]
    assert within.token == "hello"
    assert within.log_prob == pytest.approx(0, abs=0.2)
    assert within.log_prob > before.log_prob


class CountingWalk(Mixture):
    """A mixture that remembers how many tokens it read at once."""

    def __init__(self, walk: Mixture) -> None:
        super().__init__(walk.network, walk.cache, walk.state_cache)
        self.read: list[tuple[int, int]] = []

    def advance(self, state: MixtureState, tokens: Tensor) -> tuple[Tensor, MixtureState]:
        """Count and read."""
        self.read.append((tokens.shape[0], tokens.shape[1]))
        return super().advance(state, tokens)


def test_a_token_more_costs_one_step_and_a_token_less_none() -> None:
    draft = begin()
    walk = CountingWalk(draft.walk)
    draft.walk = walk
    draft.complete("print(", k=1)
    assert walk.read[0] == (1, 3)  # the start among them
    walk.read.clear()
    draft.complete('print("', k=1)
    assert [length for _, length in walk.read] == [1] * len(walk.read)
    walk.read.clear()
    with_lines = len(draft.complete("print(", k=1)[0].text)
    assert with_lines
    assert walk.read[0][1] == 1  # only the line is searched, the prefix is known


def test_completions_do_not_depend_on_what_was_asked_before() -> None:
    used = begin()
    for end in [3, 9, 5, len(WHOLE), 0, 7, 12, 8, 6, 14]:
        fresh, again = begin().complete(WHOLE[:end]), used.complete(WHOLE[:end])
        assert [each.text for each in fresh] == [each.text for each in again]
        assert [each.log_prob for each in fresh] == pytest.approx(
            [each.log_prob for each in again], abs=1e-4
        )


def test_a_long_output_is_forgotten_from_its_beginning() -> None:
    draft = begin()
    walk = CountingWalk(draft.walk)
    draft.walk = walk
    long = "print()\n" * 190
    draft.complete(long, k=1)
    assert walk.read[0][1] <= 301
    walk.read.clear()
    draft.complete(long + "print", k=1)
    assert max(length for _, length in walk.read) == 1


def test_longer_words_are_those_of_the_vocabulary_and_of_the_sources() -> None:
    draft = begin()
    words = draft.words
    assert words.tokens(words.longer("Zorb")) == ["Zorblax"]
    assert "print" in words.tokens(words.longer("pri"))
    assert words.longer("Zorblax") == []
    assert isinstance(words, Words)


def test_half_of_a_known_word_is_rarely_a_word_of_its_own() -> None:
    best = begin().complete("prin", k=1)[0]
    assert best.token == "print"
    assert best.log_prob == pytest.approx(0, abs=0.05)


def test_a_word_that_nothing_knows_is_taken_as_whole() -> None:
    found = begin().complete("qqqq", k=3)
    assert len(found) == 3
    assert all(torch.isfinite(torch.tensor(each.log_prob)) for each in found)
