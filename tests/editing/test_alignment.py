"""The provenance of generated outputs: what is marked as copied stands in its source."""

from hypothesis import given
from hypothesis import strategies as st

from redraft.editing.alignment import aligned
from redraft.text.spans import WordSpans
from redraft.types import Example, Prototype

TEXTS = st.text("abcXY 'é.,=*()\n\t_1", max_size=40)


@given(TEXTS, TEXTS, st.lists(TEXTS, max_size=3))
def test_copied_tokens_stand_in_the_named_source(x: str, output: str, stored: list[str]) -> None:
    prototypes = [Prototype(Example({"text": "x"}, y), 1.0) for y in stored]
    answer = aligned(WordSpans.of(x).folded, output, prototypes)
    source = answer.prototype.example.y if answer.prototype else ""
    for token in answer.provenance:
        if token.origin == "prototype":
            assert token.text.strip() in source
        elif token.origin == "input":
            assert token.text.strip().casefold() in x.casefold()
    if not any(character in output for character in "\n\t"):
        assert "".join(token.text for token in answer.provenance).split() == output.split()
