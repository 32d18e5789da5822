"""Subwords: they spell every word of known characters without loss."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.text.subwords import CONTINUATION, learn_pieces, segment

word = st.text(st.characters(exclude_characters="#", exclude_categories=["Cs"]), min_size=1)
short_word = st.text("abcé_1", min_size=1, max_size=12)
word_counts = st.dictionaries(short_word, st.integers(1, 50), min_size=1, max_size=12)

PLENTY = 10_000


def joined(pieces: list[str]) -> str:
    return pieces[0] + "".join(piece.removeprefix(CONTINUATION) for piece in pieces[1:])


def single_characters(words: list[str]) -> set[str]:
    """Return the pieces of single characters that spell these words."""
    characters = {character for word in words for character in word}
    return characters | {CONTINUATION + character for character in characters}


@given(word, st.lists(word))
def test_pieces_cover_the_word_exactly(word: str, others: list[str]) -> None:
    learned = learn_pieces(Counter(others), 50)
    pieces = segment(word, {*learned, *single_characters([word])})
    assert pieces is not None
    assert joined(pieces) == word
    assert all(piece.startswith(CONTINUATION) for piece in pieces[1:])
    assert not pieces[0].startswith(CONTINUATION)


@given(word, st.data())
def test_a_word_with_an_unknown_character_has_no_pieces(word: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(word)))
    vocabulary = single_characters([word]) - {"\0", CONTINUATION + "\0"}
    assert segment(word[:at] + "\0" + word[at:], vocabulary) is None


def test_a_character_known_only_at_the_front_does_not_continue_a_word() -> None:
    assert segment("ab", {"a", "b"}) is None
    assert segment("ab", {CONTINUATION + "a", CONTINUATION + "b"}) is None
    assert segment("ab", {"a", CONTINUATION + "b"}) == ["a", "##b"]


def test_the_longest_known_piece_is_taken_first() -> None:
    vocabulary = {"u", "un", "una", "##a", "##b", "##able", "##l", "##e"}
    assert segment("unable", vocabulary) == ["una", "##b", "##l", "##e"]
    assert segment("unable", vocabulary - {"una"}) == ["un", "##able"]


@given(word_counts)
def test_learned_pieces_spell_the_words_they_were_learned_from(counts: dict[str, int]) -> None:
    pieces = set(learn_pieces(counts, PLENTY))
    for token in counts:
        found = segment(token, pieces)
        assert found is not None
        assert joined(found) == token


@given(word_counts, st.integers(0, 60))
def test_at_most_size_pieces_are_learned(counts: dict[str, int], size: int) -> None:
    everything = learn_pieces(counts, PLENTY)
    assert learn_pieces(counts, size) == everything[:size]
    assert len(set(everything)) == len(everything)


@given(word_counts, st.randoms(use_true_random=False))
def test_the_order_of_the_words_does_not_matter(counts: dict[str, int], order: Random) -> None:
    entries = list(counts.items())
    order.shuffle(entries)
    assert learn_pieces(dict(entries), 30) == learn_pieces(counts, 30)


@given(word_counts)
def test_characters_come_before_longer_pieces(counts: dict[str, int]) -> None:
    pieces = learn_pieces(counts, PLENTY)
    is_single = [len(piece.removeprefix(CONTINUATION)) == 1 for piece in pieces]
    assert is_single == sorted(is_single, reverse=True)


def test_a_piece_is_worth_the_steps_it_saves() -> None:
    learned = learn_pieces({"abc": 3, "xy": 5}, PLENTY)
    # abc saves 2 steps 3 times, xy 1 step 5 times, ab and ##bc 1 step 3 times
    assert [piece for piece in learned if len(piece.removeprefix(CONTINUATION)) > 1] == [
        *("abc", "xy", "##bc", "ab"),
    ]


@pytest.mark.parametrize("size", [0, 10])
def test_nothing_is_learned_from_nothing(size: int) -> None:
    assert learn_pieces({}, size) == []
