"""Values are found as whole words, wherever the tokens are cut."""

from hypothesis import given
from hypothesis import strategies as st

from redraft.text.marks import split_at_values, value_spans
from redraft.types import TracedToken


def test_values_are_whole_words() -> None:
    assert value_spans("BR = 'BR', BRA, aBR", ["BR"]) == [(0, 2), (6, 8)]
    assert value_spans("New York or New", ["New", "New York"]) == [(0, 8), (12, 15)]
    assert value_spans("f(x)", []) == []


def test_a_value_may_be_a_part_of_a_token_or_span_several() -> None:
    tokens = [TracedToken("c = 'BR' and d = '2024", "prototype"), TracedToken("-07'", "input")]
    pieces = list(split_at_values(tokens, ["BR", "2024-07"]))
    assert [piece.text for piece, is_value in pieces if is_value] == ["BR", "2024", "-07"]
    assert [piece.origin for piece, _ in pieces][-2:] == ["input", "input"]


@given(
    st.lists(st.text("ab '.", max_size=4)),
    st.lists(st.text("ab", min_size=1, max_size=2), max_size=3),
)
def test_the_pieces_spell_the_output(texts: list[str], values: list[str]) -> None:
    tokens = [TracedToken(text, "prototype") for text in texts]
    pieces = list(split_at_values(tokens, values))
    assert "".join(piece.text for piece, _ in pieces) == "".join(texts)
    assert all(piece.text for piece, _ in pieces)
