"""Texts to ids: vocabulary words whole, OOV words as subwords, then the end token."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.text.subwords import CONTINUATION
from redraft.text.token_encoder import TokenEncoder, TokenEncoderConfig, tokens_of
from redraft.text.vocabulary import END, SPECIAL, START, UNKNOWN, Vocabulary

TEXTS = ["draw a card", "draw a minion", "maxCard = draw(card)", "deal 2 damage\n  to a minion"]
LEARNED = TokenEncoder.learn(TEXTS, TokenEncoderConfig(min_count=1, pieces=200))
UNK_ID, BOS_ID, EOS_ID = (SPECIAL.index(token) for token in (UNKNOWN, START, END))


def read(text: str, encoding: TokenEncoder = LEARNED, *, longest: int = 99) -> list[str]:
    return [encoding.vocabulary.tokens[i] for i in encoding.encode(text, longest=longest)]


def written(text: str, encoding: TokenEncoder = LEARNED, *, longest: int = 99) -> list[str]:
    return [encoding.vocabulary.tokens[i] for i in encoding.target(text, longest=longest)]


def knowing(*tokens: str) -> TokenEncoder:
    return TokenEncoder(Vocabulary.of(dict.fromkeys(tokens, 1)))


def test_a_vocabulary_word_stays_whole() -> None:
    assert read("draw a card") == ["draw", "a", "card", END]
    assert read("maxCard") == ["maxCard", END]


def test_an_oov_identifier_is_split_into_its_parts() -> None:
    encoding = knowing("draw", "Card", "_", "2")
    assert read("drawCard_2", encoding) == ["draw", "Card", "_", "2", END]


def test_an_oov_part_of_an_identifier_is_split_into_subwords() -> None:
    encoding = knowing("draw", "_", "c", "##a", "##rds")
    assert read("draw_cards", encoding) == ["draw", "_", "c", "##a", "##rds", END]


def test_an_oov_word_is_split_into_subwords() -> None:
    pieces = read("cardinal")[:-1]
    assert pieces[0] == "card"
    assert all(piece.startswith(CONTINUATION) for piece in pieces[1:])
    assert "".join(piece.removeprefix(CONTINUATION) for piece in pieces) == "cardinal"


def test_a_word_with_a_character_never_seen_is_unknown() -> None:
    assert read("draw Ωmega") == ["draw", UNKNOWN, END]
    assert read("draw_Ω") == ["draw", UNKNOWN, UNKNOWN, END]  # "_" was not seen either
    assert read("€ 2") == [UNKNOWN, "2", END]


def test_without_subwords_an_oov_word_is_one_unknown_token() -> None:
    encoding = TokenEncoder.learn(TEXTS, TokenEncoderConfig(min_count=1, pieces=0))
    assert read("draw cardinal", encoding) == ["draw", UNKNOWN, END]


def test_spaces_and_joins_are_not_read_but_lines_and_indentations_are() -> None:
    assert read("a card( card") == ["a", "card", "(", "card", END]
    assert list(tokens_of("a\n  b")) == ["a", "\n", "  ", "b"]


@given(st.text(), st.integers(0, 6))
def test_a_text_is_cut_at_the_longest_and_always_ends(text: str, longest: int) -> None:
    whole = LEARNED.encode(text, longest=10_000)
    cut = LEARNED.encode(text, longest=longest)
    assert cut == [*whole[:-1][:longest], EOS_ID]
    assert EOS_ID not in cut[:-1]


@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_field_has_length_one(text: str) -> None:
    assert LEARNED.encode(text, longest=5) == [EOS_ID]


@given(st.text(), st.integers(0, 6))
def test_a_target_is_whole_words_between_start_and_end(text: str, longest: int) -> None:
    words = list(tokens_of(text))[:longest]
    expected = [word if word in LEARNED.vocabulary else UNKNOWN for word in words]
    assert written(text, longest=longest) == [START, *expected, END]


def test_a_target_does_not_spell() -> None:
    assert written("draw cardinal drawMinion") == [START, "draw", UNKNOWN, UNKNOWN, END]
    assert LEARNED.target("", longest=5) == [BOS_ID, EOS_ID]


@given(st.text())
def test_a_text_holds_no_padding_and_no_start(text: str) -> None:
    assert not {0, BOS_ID} & set(LEARNED.encode(text, longest=50))


@given(st.lists(st.text("abc _=.", max_size=12), max_size=6))
def test_training_texts_are_encoded_without_unknown_tokens(texts: list[str]) -> None:
    encoding = TokenEncoder.learn(texts, TokenEncoderConfig(min_count=99, pieces=1_000))
    for text in texts:
        assert UNK_ID not in encoding.encode(text, longest=1_000)


def test_rare_words_and_words_past_the_maximum_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = ["a a a b b c"]
    frequent = TokenEncoder.learn(texts, TokenEncoderConfig(min_count=2, pieces=0))
    assert frequent.vocabulary.tokens == (*SPECIAL, "a", "b")
    monkeypatch.setattr("redraft.text.token_encoder.MAX_WORDS", 1)
    few = TokenEncoder.learn(texts, TokenEncoderConfig(min_count=1, pieces=0))
    assert few.vocabulary.tokens == (*SPECIAL, "a")


def test_the_parts_of_identifiers_are_learned_too() -> None:
    assert {"maxCard", "max", "Card"} <= set(LEARNED.vocabulary.tokens)


@given(st.lists(st.text(max_size=20), max_size=6))
def test_tokens_are_unique(texts: list[str]) -> None:
    tokens = TokenEncoder.learn(
        texts, TokenEncoderConfig(min_count=1, pieces=100)
    ).vocabulary.tokens
    assert len(set(tokens)) == len(tokens)


@pytest.mark.parametrize("encoding", [LEARNED, knowing("\u2028", "\n", "##é", "\t")])
def test_a_saved_encoder_encodes_alike(encoding: TokenEncoder, tmp_path: Path) -> None:
    encoding.save(tmp_path / "vocabulary.txt")
    loaded = TokenEncoder.load(tmp_path / "vocabulary.txt")
    assert loaded == encoding
    for text in (*TEXTS, "cardinal Ω\n\té\u2028"):
        assert loaded.encode(text, longest=50) == encoding.encode(text, longest=50)
