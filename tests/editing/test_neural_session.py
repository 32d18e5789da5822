"""Neural completion sessions: prefixes that end within a word, and the cache of states."""

import math

import pytest
import torch
from torch import Tensor

from redraft.editing import neural_session
from redraft.editing.neural import NeuralEditor
from redraft.editing.neural_session import NeuralSession, Words
from redraft.editing.next_token import Mixture, MixtureState
from redraft.text.tokenizer import JOIN
from redraft.text.vocabulary import SPECIAL
from tests.greetings import greeter

X = {"text": "greet Zorblax"}
WHOLE = 'print("hello Zorblax")'


def start_session() -> NeuralSession:
    """Start a session for the greeting of Zorblax."""
    model = greeter()
    assert isinstance(model.editor, NeuralEditor)
    (found,) = model.retriever.retrieve([X])
    return model.editor.start_session(X, found)


@pytest.mark.parametrize("end", range(len(WHOLE)))
def test_a_prefix_may_end_anywhere(end: int) -> None:
    best = start_session().complete(WHOLE[:end])[0]
    assert WHOLE[:end] + best.text == WHOLE


def test_within_a_word_the_token_is_the_whole_word() -> None:
    best = start_session().complete('print("hello Zor')[0]
    assert (best.token, best.text) == ("Zorblax", 'blax")')


def test_the_probabilities_of_all_tokens_sum_to_one(monkeypatch: pytest.MonkeyPatch) -> None:
    # completions leave out the unknown token, which has up to 0.0004 of the probability here
    monkeypatch.setattr(neural_session, "SUPPRESSED", ())
    for prefix in ("p", "pri", 'print("h', 'print("hello Zo', 'print("hello', "print"):
        completions = start_session().complete(prefix, k=10_000)
        total = math.fsum(math.exp(completion.log_prob) for completion in completions)
        assert total == pytest.approx(1, abs=1e-5)


def test_special_tokens_do_not_complete_a_word_that_begins_like_them() -> None:
    tokens = {completion.token for completion in start_session().complete("a <", k=10_000)}
    assert "print" in tokens
    assert not tokens & {*SPECIAL, JOIN}


def test_a_partial_word_raises_the_probability_of_the_whole_word() -> None:
    session = start_session()
    before = next(each for each in session.complete('print("', k=10_000) if each.token == "hello")
    within = session.complete('print("hel', k=1)[0]
    assert within.token == "hello"
    assert within.log_prob == pytest.approx(0, abs=0.2)
    assert within.log_prob > before.log_prob


class CountingModel(Mixture):
    """A mixture that records the shape of the tokens of each step."""

    def __init__(self, next_tokens: Mixture) -> None:
        super().__init__(next_tokens.network, next_tokens.cache)
        self.read: list[tuple[int, int]] = []

    def step(self, state: MixtureState, tokens: Tensor) -> tuple[Tensor, MixtureState]:
        """Record the shape, then step."""
        self.read.append((tokens.shape[0], tokens.shape[1]))
        return super().step(state, tokens)


def test_one_more_token_costs_one_step_and_one_less_none() -> None:
    session = start_session()
    next_tokens = CountingModel(session.next_tokens)
    session.next_tokens = next_tokens
    session.complete("print(", k=1)
    assert next_tokens.read[0] == (1, 3)  # the start among them
    next_tokens.read.clear()
    session.complete('print("', k=1)
    assert [length for _, length in next_tokens.read] == [1] * len(next_tokens.read)
    next_tokens.read.clear()
    with_lines = len(session.complete("print(", k=1)[0].text)
    assert with_lines
    assert next_tokens.read[0][1] == 1  # only the line is searched, the prefix is known


def test_completions_do_not_depend_on_earlier_prefixes() -> None:
    used = start_session()
    for end in [3, 9, 5, len(WHOLE), 0, 7, 12, 8, 6, 14]:
        fresh, again = start_session().complete(WHOLE[:end]), used.complete(WHOLE[:end])
        assert [each.text for each in fresh] == [each.text for each in again]
        assert [each.log_prob for each in fresh] == pytest.approx(
            [each.log_prob for each in again], abs=1e-4
        )


def test_the_beginning_of_a_long_prefix_is_dropped() -> None:
    session = start_session()
    next_tokens = CountingModel(session.next_tokens)
    session.next_tokens = next_tokens
    long = "print()\n" * 190
    session.complete(long, k=1)
    assert next_tokens.read[0][1] <= 301
    next_tokens.read.clear()
    session.complete(long + "print", k=1)
    assert max(length for _, length in next_tokens.read) == 1


def test_longer_words_come_from_the_vocabulary_and_from_the_sources() -> None:
    session = start_session()
    words = session.words
    assert words.tokens(words.longer("Zorb")) == ["Zorblax"]
    assert "print" in words.tokens(words.longer("pri"))
    assert words.longer("Zorblax") == []
    assert isinstance(words, Words)


def test_a_partial_word_is_rarely_a_whole_word() -> None:
    best = start_session().complete("prin", k=1)[0]
    assert best.token == "print"
    assert best.log_prob == pytest.approx(0, abs=0.05)


def test_an_oov_without_longer_words_is_a_whole_word() -> None:
    found = start_session().complete("qqqq", k=3)
    assert len(found) == 3
    assert all(torch.isfinite(torch.tensor(each.log_prob)) for each in found)
