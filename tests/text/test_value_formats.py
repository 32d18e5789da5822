"""Forms of one value: the same value, written as another text writes it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.text.spans import WordSpans
from redraft.text.value_formats import canonical, form_of, forms, in_code, plural, rewrite, singular

nouns = st.text("bcdfglmnprtv", min_size=3, max_size=8)


@given(nouns)
def test_the_singular_of_a_plural_is_the_noun(noun: str) -> None:
    assert singular(plural(noun)) == noun


@pytest.mark.parametrize("noun", ["city", "box", "match", "card", "company", "day"])
def test_plurals_of_english(noun: str) -> None:
    assert singular(plural(noun)) == noun
    assert plural(noun) in {"cities", "boxes", "matches", "cards", "companies", "days"}


@pytest.mark.parametrize(
    ("old", "source", "new", "written"),
    [
        ("texas", "texas", "new york", "new york"),
        ("TEXAS", "texas", "ohio", "OHIO"),
        ("Texas", "texas", "ohio", "Ohio"),
        ("AcolyteOfPain", "acolyte of pain", "sea giant", "SeaGiant"),
        ("acolyte_of_pain", "acolyte of pain", "sea giant", "sea_giant"),
        ("ACOLYTE_OF_PAIN", "Acolyte of Pain", "Sea Giant", "SEA_GIANT"),
        ("acolyte-of-pain", "Acolyte of Pain", "Sea Giant", "sea-giant"),
        ("user", "users", "companies", "company"),
        ("cards", "card", "box", "boxes"),
        ("2024-07-03", "3 July 2024", "12 May 2023", "2023-05-12"),
        ("2024-07-03", "03.07.2024", "12.05.2023", "2023-05-12"),
        ("1000", "1,000", "2,345", "2345"),
        ("20", "twenty", "five", "5"),
        ("20", "twenty", "thirty", "thirty"),
    ],
)
def test_a_value_is_written_in_the_form_of_the_old_one(
    old: str, source: str, new: str, written: str
) -> None:
    assert rewrite(old, source, new) == written


@given(nouns, nouns)
def test_equal_forms_are_copied(old: str, new: str) -> None:
    assert rewrite(old, old, new) == new


@pytest.mark.parametrize(
    ("text", "word", "source"),
    [
        ("make an Acolyte of Pain", "AcolyteOfPain", "Acolyte of Pain"),
        ("all users", "user", "users"),
        ("since 3 July 2024", "2024-07-03", "3 July 2024"),
        ("since July 3, 2024", "2024-07-03", "July 3, 2024"),
        ("pay 1,000 now", "1000", "1,000"),
        ("the twenty best", "20", "twenty"),
    ],
)
def test_the_source_of_another_form_is_found(text: str, word: str, source: str) -> None:
    words = WordSpans.of(text)
    assert words.slice(forms(words)[form_of(word)]) == source


def test_only_numbers_and_dates_have_a_canonical_form() -> None:
    assert canonical("1,000") == "1000"
    assert canonical("2024/07/03") == "2024-07-03"
    assert canonical("2024-13-03") is None
    assert canonical("card") is None


@pytest.mark.parametrize(
    ("old", "text", "written"),
    [
        ("cards", "two words", "two_words"),
        ("Card", "two words", "TwoWords"),
        ("CARD", "two words", "TWO_WORDS"),
        ("2", "1,000", "1000"),
        ("one two", "three four", "three four"),
    ],
)
def test_outside_of_quotes_a_value_is_one_word(old: str, text: str, written: str) -> None:
    assert in_code(old, text) == written
