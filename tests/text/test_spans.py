"""WordSpans with offsets, and the spans of values among them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.text.spans import WordSpans, overlaps

texts = st.text(alphabet="ab1 _.,'\"@-\n(=é", max_size=40)


@given(texts)
def test_every_word_stands_in_the_text_at_its_offsets(text: str) -> None:
    words = WordSpans.of(text)
    assert [text[s:e] for s, e in zip(words.starts, words.ends, strict=True)] == list(words.words)
    assert list(words.starts) == sorted(words.starts)


@given(texts)
def test_words_and_white_space_are_the_whole_text(text: str) -> None:
    words = WordSpans.of(text)
    assert "".join(words.words).replace("\n", "") == "".join(text.split())


@given(texts)
def test_values_do_not_overlap_and_are_in_order(text: str) -> None:
    spans = list(WordSpans.of(text).values())
    assert spans == sorted(spans)
    assert not any(overlaps(a, b) for i, a in enumerate(spans) for b in spans[i + 1 :])


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("name = 'Dunder Mifflin' and n = 3", ["Dunder Mifflin", "3"]),
        ("mail carol@newco.org on 2024-07-03", ["carol@newco.org", "2024-07-03"]),
        ('CITYalias0.NAME = "new york"', ["new york"]),
        ("don't stop", []),
        ("an open ' quote", []),
        ("costs 1,000.50 at 10:30", ["1,000.50", "10:30"]),
    ],
)
def test_values_are_quoted_strings_numbers_and_addresses(text: str, values: list[str]) -> None:
    words = WordSpans.of(text)
    assert [words.slice(span) for span in words.values()] == values
