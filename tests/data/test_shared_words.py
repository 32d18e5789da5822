"""Words that examples share, and the spelling of those that they do not: every word comes out."""

from hypothesis import given, settings
from hypothesis import strategies as st

from redraft.data.edit_numbers import EditNumbering, EditNumberingConfig
from redraft.data.example import Example
from redraft.data.shared_words import spelling
from redraft.data.tokenizer import JOIN, Tokenizer, detokenize, is_word
from redraft.data.vocabulary import UNKNOWN_NUMBER

SPELLING = EditNumberingConfig(pieces=500)
ALPHABET = "abCD_1 =(.,\n"
outputs = st.text(ALPHABET, max_size=40)
EVERY_CHARACTER = [
    Example({"text": "x"}, f"{character}b a{character} {character}")
    for character in ALPHABET
    if not character.isspace()
]


@settings(deadline=None)
@given(st.lists(outputs, max_size=5), outputs, st.text(ALPHABET, max_size=12))
def test_every_word_of_known_characters_can_be_written(
    known: list[str], output: str, x: str
) -> None:
    examples = [*EVERY_CHARACTER, *(Example({"text": "x"}, each) for each in known)]
    numbering = EditNumbering.learn(examples, SPELLING)
    asked = numbering.tokenize(Example({"text": x}, output))
    (edit,) = numbering.number(asked.fields, [[]], asked.output)
    read = {number for source in edit.sources for number in source}
    written = edit.target[1:]
    assert UNKNOWN_NUMBER not in written
    lost = [each for each in written if each >= numbering.written and each not in read]
    # operators and white space have no parts: those that were never seen are lost
    assert not any(is_word(word) for word in numbering.words(lost, edit.unknown))
    assert detokenize(numbering.words(written[:-1], edit.unknown)) == output


def test_a_word_that_is_known_or_read_stays_whole() -> None:
    shown = Example({"text": "take DrawTwo"}, "DrawOne(drawn_cards)")
    others = [Example({"text": "x"}, "HealOne(hero)"), Example({"text": "y"}, "HealOne(DrawAll)")]
    numbering = EditNumbering.learn([*others, shown], SPELLING)

    def written(output: str) -> list[str]:
        tokens = numbering.tokenize(shown)
        (edit,) = numbering.number(tokens.fields, [[]], numbering.tokenize_output(output))
        return numbering.words(edit.target[1:-1], edit.unknown)

    assert written("HealOne(DrawTwo)") == ["HealOne", "(", "DrawTwo", ")"]
    assert written("DrawOne") == ["Draw", JOIN, "One"]
    assert len(written("drawer")) > 1
    assert "".join(written("drawer")).replace("##", "") == "drawer"


def test_words_that_came_apart_keep_the_space_between_them() -> None:
    numbering = EditNumbering.learn(EVERY_CHARACTER, SPELLING)
    (edit,) = numbering.number([["x"]], [[]], numbering.tokenize_output("1_ 1 _1 = 1_"))
    assert detokenize(numbering.words(edit.target[1:-1], edit.unknown)) == "1_ 1 _1 = 1_"


def test_without_pieces_nothing_is_spelled() -> None:
    numbering = EditNumbering.learn(EVERY_CHARACTER, EditNumberingConfig())
    (edit,) = numbering.number([["x"]], [[]], ["DrawOne"])
    assert numbering.words(edit.target[1:-1], edit.unknown) == ["DrawOne"]


@given(st.dictionaries(st.from_regex(r"[a-cA-C_]{1,8}", fullmatch=True), st.integers(1, 9)))
def test_parts_are_no_words_and_pieces_no_parts(counts: dict[str, int]) -> None:
    written = {word for word, count in counts.items() if count > 4}
    found = spelling(counts, written, 1000)
    assert not written & found.keys()
    assert len(found) == len(set(found))
    assert all(is_word(each) for each in found if each not in (JOIN, " "))


@given(st.lists(st.sampled_from(["a", "##b", "##_1", "=", " ", "\n", JOIN, "c"])))
def test_pieces_follow_without_a_space(tokens: list[str]) -> None:
    text = detokenize(tokens)
    assert "#" not in text
    letters = [token.removeprefix("##") for token in tokens if token != JOIN]
    assert text.replace(" ", "") == "".join(letters).replace(" ", "")
    assert Tokenizer().tokenize(detokenize(["x", "##b", "y"])) == ["xb", "y"]
