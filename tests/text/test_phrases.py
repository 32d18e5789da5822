"""Phrases: any sequence of tokens is covered without loss, and frequent sequences are one unit."""

from hypothesis import given
from hypothesis import strategies as st

from redraft.text.phrases import MIN_COUNT, Phrases

tokens = st.lists(st.sampled_from(["a", "b", "c", "(", ")", "V"]), max_size=12)


def never(_: str) -> bool:
    return False


@given(st.lists(tokens, max_size=12), tokens)
def test_units_cover_the_tokens_exactly(sequences: list[list[str]], row: list[str]) -> None:
    phrases = Phrases.learn(sequences, is_atomic=never)
    assert [token for unit in phrases.encode(row) for token in unit] == row


@given(st.lists(tokens, max_size=12), tokens)
def test_atomic_tokens_stay_alone(sequences: list[list[str]], row: list[str]) -> None:
    phrases = Phrases.learn(sequences, is_atomic="V".__eq__)
    assert all(len(unit) == 1 for unit in phrases.encode(row) if "V" in unit)


@given(st.lists(tokens, max_size=12))
def test_every_merge_stands_in_several_sequences(sequences: list[list[str]]) -> None:
    phrases = Phrases.learn(sequences, is_atomic=never)
    distinct = {" ".join(row) for row in sequences}
    for left, right in phrases.merges:
        joined = " ".join(left + right)
        assert sum(f" {joined} " in f" {row} " for row in distinct) >= MIN_COUNT


def test_a_frequent_sequence_becomes_one_unit() -> None:
    sequences = [["FROM", "city", "WHERE", str(number)] for number in range(MIN_COUNT)]
    phrases = Phrases.learn(sequences, is_atomic=never)
    assert phrases.encode(["FROM", "city", "WHERE", "x"]) == [("FROM", "city", "WHERE"), ("x",)]
    assert phrases.encode(["FROM", "city"]) == [("FROM", "city")]


def test_equal_sequences_count_once() -> None:
    phrases = Phrases.learn([["a", "b"]] * 10, is_atomic=never)
    assert phrases.merges == ()
