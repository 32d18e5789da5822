"""Texts to numbers: known words whole, others in parts, the end always there."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.data.numbering import Numbering, NumberingConfig, tokens_of
from redraft.data.pieces import CONTINUED
from redraft.data.vocabulary import END, SPECIAL, START, UNKNOWN, Vocabulary

TEXTS = ["draw a card", "draw a minion", "maxCard = draw(card)", "deal 2 damage\n  to a minion"]
LEARNED = Numbering.learn(TEXTS, NumberingConfig(min_count=1, pieces=200))
UNKNOWN_NUMBER, START_NUMBER, END_NUMBER = (SPECIAL.index(token) for token in (UNKNOWN, START, END))


def read(text: str, numbering: Numbering = LEARNED, *, longest: int = 99) -> list[str]:
    return numbering.vocabulary.decode(numbering.numbers(text, longest=longest))


def written(text: str, numbering: Numbering = LEARNED, *, longest: int = 99) -> list[str]:
    return numbering.vocabulary.decode(numbering.target(text, longest=longest))


def knowing(*tokens: str) -> Numbering:
    return Numbering(Vocabulary.of(dict.fromkeys(tokens, 1)))


def test_a_known_word_is_read_whole() -> None:
    assert read("draw a card") == ["draw", "a", "card", END]
    assert read("maxCard") == ["maxCard", END]


def test_an_unknown_identifier_is_read_in_its_parts() -> None:
    numbering = knowing("draw", "Card", "_", "2")
    assert read("drawCard_2", numbering) == ["draw", "Card", "_", "2", END]


def test_an_unknown_part_of_an_identifier_is_read_in_pieces() -> None:
    numbering = knowing("draw", "_", "c", "##a", "##rds")
    assert read("draw_cards", numbering) == ["draw", "_", "c", "##a", "##rds", END]


def test_an_unknown_word_is_read_in_pieces() -> None:
    pieces = read("cardinal")[:-1]
    assert pieces[0] == "card"
    assert all(piece.startswith(CONTINUED) for piece in pieces[1:])
    assert "".join(piece.removeprefix(CONTINUED) for piece in pieces) == "cardinal"


def test_a_word_with_a_character_never_seen_is_unknown() -> None:
    assert read("draw Ωmega") == ["draw", UNKNOWN, END]
    assert read("draw_Ω") == ["draw", UNKNOWN, UNKNOWN, END]  # "_" was not seen either
    assert read("€ 2") == [UNKNOWN, "2", END]


def test_without_pieces_an_unknown_word_is_one_unknown_token() -> None:
    numbering = Numbering.learn(TEXTS, NumberingConfig(min_count=1, pieces=0))
    assert read("draw cardinal", numbering) == ["draw", UNKNOWN, END]


def test_spaces_and_joins_are_not_read_but_lines_and_indentations_are() -> None:
    assert read("a card( card") == ["a", "card", "(", "card", END]
    assert list(tokens_of("a\n  b")) == ["a", "\n", "  ", "b"]


@given(st.text(), st.integers(0, 6))
def test_a_text_is_cut_at_the_longest_and_always_ends(text: str, longest: int) -> None:
    whole = LEARNED.numbers(text, longest=10_000)
    cut = LEARNED.numbers(text, longest=longest)
    assert cut == [*whole[:-1][:longest], END_NUMBER]
    assert END_NUMBER not in cut[:-1]


@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_field_has_length_one(text: str) -> None:
    assert LEARNED.numbers(text, longest=5) == [END_NUMBER]


@given(st.text(), st.integers(0, 6))
def test_a_target_is_whole_words_between_start_and_end(text: str, longest: int) -> None:
    words = list(tokens_of(text))[:longest]
    expected = [word if word in LEARNED.vocabulary else UNKNOWN for word in words]
    assert written(text, longest=longest) == [START, *expected, END]


def test_a_target_does_not_spell() -> None:
    assert written("draw cardinal drawMinion") == [START, "draw", UNKNOWN, UNKNOWN, END]
    assert LEARNED.target("", longest=5) == [START_NUMBER, END_NUMBER]


@given(st.text())
def test_a_text_holds_no_padding_and_no_start(text: str) -> None:
    assert not {0, START_NUMBER} & set(LEARNED.numbers(text, longest=50))


@given(st.lists(st.text("abc _=.", max_size=12), max_size=6))
def test_every_text_learned_from_is_read_without_unknowns(texts: list[str]) -> None:
    numbering = Numbering.learn(texts, NumberingConfig(min_count=99, pieces=1_000))
    for text in texts:
        assert UNKNOWN_NUMBER not in numbering.numbers(text, longest=1_000)


def test_rare_words_and_words_past_the_maximum_are_left_out() -> None:
    texts = ["a a a b b c"]
    frequent = Numbering.learn(texts, NumberingConfig(min_count=2, pieces=0))
    assert frequent.vocabulary.tokens == (*SPECIAL, "a", "b")
    few = Numbering.learn(texts, NumberingConfig(min_count=1, max_words=1, pieces=0))
    assert few.vocabulary.tokens == (*SPECIAL, "a")


def test_the_parts_of_identifiers_are_learned_too() -> None:
    assert {"maxCard", "max", "Card"} <= set(LEARNED.vocabulary.tokens)


@given(st.lists(st.text(max_size=20), max_size=6))
def test_no_token_is_known_twice(texts: list[str]) -> None:
    tokens = Numbering.learn(texts, NumberingConfig(min_count=1, pieces=100)).vocabulary.tokens
    assert len(set(tokens)) == len(tokens)


@pytest.mark.parametrize("numbering", [LEARNED, knowing("\u2028", "\n", "##é", "\t")])
def test_a_saved_numbering_numbers_alike(numbering: Numbering, tmp_path: Path) -> None:
    numbering.save(tmp_path / "vocabulary.txt")
    loaded = Numbering.load(tmp_path / "vocabulary.txt")
    assert loaded == numbering
    for text in (*TEXTS, "cardinal Ω\n\té\u2028"):
        assert loaded.numbers(text, longest=50) == numbering.numbers(text, longest=50)
