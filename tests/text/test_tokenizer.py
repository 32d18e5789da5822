"""Tokenization is lossless, and spacing marks are rare."""

import argparse
import collections
import functools
import inspect
import json.decoder
import textwrap
from types import ModuleType

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from redraft.text.tokenizer import JOIN, Tokenizer, detokenize, expects_space, spell
from redraft.text.tokenizer import split_identifier as split
from redraft.text.vocabulary import SPECIAL

WHITE = [character for character in map(chr, range(0x110000)) if character.isspace()]
FRAGMENTS = [
    *WHITE,
    *[
        "\r\n",
        "\n\n",
        "    ",
        "\t\t",
        "  \r",
        "\x00",
        "\ufeff",
        "e\u0301",
        "\u0301",
        "क्षि",
        "👩‍👩‍👧",
        "½",
        "٣",
    ],
    *[
        "**=",
        "...",
        "....",
        "->",
        "==",
        "===",
        "//",
        "&&",
        "|",
        "<",
        ">",
        "<join>",
        "<unk>",
        "</s>",
    ],
    *["_", "__", "__init__", "_a", "a_", "maxCardCount_2", "HTTPServer2", "ÄÖü", "x", "42", "a1B2"],
    *list("()[]{},:;.#'\"\\@+-*/%&^~!?$§"),
]
any_text = st.text() | st.lists(st.sampled_from(FRAGMENTS), max_size=30).map("".join)
surrogates = st.text(st.characters(), max_size=8)


@settings(max_examples=500)
@given(any_text | surrogates)
@example("def f(a, b=1):\r\n\treturn a  +b\r\n")
@example("_maxCard__Count 2_ _ _x")
def test_any_text_is_reproduced_exactly(text: str) -> None:
    assert detokenize(Tokenizer().tokenize(text)) == text


@given(any_text)
def test_each_token_is_spelled_on_its_own(text: str) -> None:
    tokens = Tokenizer().tokenize(text)
    assert len(spell(tokens)) == len(tokens)
    assert all(tokens)


@given(any_text)
def test_every_newline_is_a_token_of_its_own(text: str) -> None:
    tokens = Tokenizer().tokenize(text)
    assert tokens.count("\n") == text.count("\n")
    assert not [token for token in tokens if "\n" in token and token != "\n"]


@given(st.text(st.sampled_from(" \t"), min_size=1))
def test_an_indentation_is_one_token(indentation: str) -> None:
    tokens = Tokenizer().tokenize(f"if a:\n{indentation}return b")
    assert tokens == ["if", "a", ":", "\n", indentation, "return", "b"]


@given(any_text)
def test_no_text_can_spell_a_special_token(text: str) -> None:
    assert not {*SPECIAL} & {*Tokenizer().tokenize(text)}


@pytest.mark.parametrize("special", [JOIN, *SPECIAL])
def test_the_spelling_of_a_special_token_is_taken_apart(special: str) -> None:
    for text in (special, f"a{special}b", f" {special} "):
        tokens = Tokenizer().tokenize(text)
        assert detokenize(tokens) == text
        assert len([token for token in tokens if token in "<>/" or token.isalpha()]) >= 3
    # JOIN may stand between its own pieces as a mark; without marks to write, none is left
    assert [token for token in Tokenizer().tokenize(f"< {special[1:-1]} >") if token == JOIN] == []


def test_a_literal_join_is_not_mistaken_for_the_mark() -> None:
    tokens = Tokenizer().tokenize("a <join> b")
    assert tokens == ["a", "<", JOIN, "join", JOIN, ">", "b"]
    assert detokenize(tokens) == "a <join> b"


def test_usual_spacing_costs_no_tokens() -> None:
    text = (
        "def total(self, cards: list) -> int:\n    return sum(card.cost for card in cards)  # all"
    )
    tokens = Tokenizer().tokenize(text)
    assert [token for token in tokens if token in (" ", JOIN)] == []
    assert "    " in tokens
    assert "->" in tokens


def test_unusual_spacing_is_marked() -> None:
    assert Tokenizer().tokenize("f (a,b)") == ["f", " ", "(", "a", ",", JOIN, "b", ")"]
    assert expects_space(",", "b")
    assert not expects_space("f", "(")


def test_tokens_of_a_model_are_spelled_with_the_usual_spaces() -> None:
    assert detokenize(["return", "a", "+", "b", "[", "0", "]"]) == "return a + b[0]"
    assert detokenize([]) == ""


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("maxCardCount_2", ["max", "Card", "Count", "_", "2"]),
        ("HTTPServer", ["HTTP", "Server"]),
        ("parseHTML", ["parse", "HTML"]),
        ("__init__", ["__", "init", "__"]),
        ("snake_case", ["snake", "_", "case"]),
        ("SCREAMING_CASE", ["SCREAMING", "_", "CASE"]),
        ("sha256sum", ["sha", "256", "sum"]),
        ("größeMax", ["größe", "Max"]),
        ("x", ["x"]),
        ("_", ["_"]),
    ],
)
def test_an_identifier_is_split_where_a_reader_would(word: str, parts: list[str]) -> None:
    assert split(word) == parts


@given(st.from_regex(r"\w+", fullmatch=True))
def test_the_parts_of_an_identifier_are_all_of_it(word: str) -> None:
    assert "".join(split(word)) == word


@pytest.mark.parametrize(
    "module",
    [argparse, collections, functools, inspect, json.decoder, textwrap],
    ids=lambda module: module.__name__,
)
def test_marks_of_spacing_stay_rare_on_real_code(module: ModuleType) -> None:
    text = inspect.getsource(module)
    tokens = Tokenizer().tokenize(text)
    assert detokenize(tokens) == text
    assert sum(token in (" ", JOIN) for token in tokens) < 0.08 * len(tokens)
