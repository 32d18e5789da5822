"""Edit examples to numbers and back: known words, words met only here, and words hidden."""

import json
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from redraft.data.edit_numbers import (
    LONGEST_FIELD,
    LONGEST_OUTPUT,
    EditNumbering,
    EditNumberingConfig,
    Tokens,
)
from redraft.data.example import Example
from redraft.data.tokenizer import detokenize
from redraft.data.vocabulary import END, SPECIAL, START, UNKNOWN
from redraft.errors import ConfigError

UNKNOWN_NUMBER, START_NUMBER, END_NUMBER = (SPECIAL.index(token) for token in (UNKNOWN, START, END))
EVERY = EditNumberingConfig(min_count=1, reads_prototype_input=True)

CARDS = [
    Example({"name": "draw card", "body": "draw a card"}, "draw(card)"),
    Example({"name": "draw minion", "body": "draw a minion"}, "draw(minion)"),
    Example({"name": "deal damage", "body": "deal to a minion"}, "deal(minion)"),
    Example({"name": "deal card", "body": "deal a card"}, "deal(card)"),
]
LEARNED = EditNumbering.learn(CARDS, EditNumberingConfig(reads_prototype_input=True))
SIZE = len(LEARNED.vocabulary)

texts = st.text() | st.text("abC_1 =(.,\n", max_size=40)


def prototype(name: str, body: str, y: str, numbering: EditNumbering = LEARNED) -> Tokens:
    return numbering.tokenize(Example({"name": name, "body": body}, y))


def test_a_word_the_vocabulary_lacks_gets_the_same_number_wherever_it_stands() -> None:
    x = [["draw", "zork"], ["zork", "quux"]]
    found = Tokens([["quux", "a"], ["frob"]], ["frob", "(", "zork", ")"])
    edit = LEARNED.number(x, [[found]], ["frob", "zork", "quux"])[0]
    zork, quux, frob = range(SIZE, SIZE + 3)  # in the order in which they are met
    number = LEARNED.vocabulary.number
    assert edit.sources == [
        [number("draw"), zork, END_NUMBER],
        [zork, quux, END_NUMBER],
        [quux, number("a"), END_NUMBER],
        [frob, END_NUMBER],
        [frob, number("("), zork, number(")"), END_NUMBER],
    ]
    assert edit.target == [START_NUMBER, frob, zork, quux, END_NUMBER]
    assert edit.unknown == ["zork", "quux", "frob"]


def test_all_prototypes_of_an_input_name_unknown_words_alike() -> None:
    found = [prototype("a", "b", "zork frob"), prototype("a", "b", "frob quux")]
    groups = [*([each] for each in found), []]
    edits = LEARNED.number([["x1"], ["x2"]], groups, ["quux", "frob", "zork"])
    assert len({tuple(edit.target) for edit in edits}) == 1
    assert len({tuple(edit.unknown) for edit in edits}) == 1
    names = [LEARNED.words(edit.sources[-1][:-1], edit.unknown) for edit in edits]
    assert names == [["zork", "frob"], ["frob", "quux"], []]
    assert edits[0].sources[-1][1] == edits[1].sources[-1][0]
    assert LEARNED.words(edits[0].target[1:-1], edits[0].unknown) == ["quux", "frob", "zork"]


def test_a_word_of_the_output_that_was_not_read_gets_a_number_after_those_read() -> None:
    output = ["draw", "zork", "quux", "zork"]
    edit = LEARNED.number([["quux"], []], [[]], output)[0]
    assert edit.unknown == ["quux", "zork"]
    assert edit.target[2:5] == [SIZE + 1, SIZE, SIZE + 1]
    assert LEARNED.words(edit.target, edit.unknown) == [START, *output, END]


def test_without_a_prototype_its_sequences_are_only_their_ends() -> None:
    edit = LEARNED.number([["draw"], ["a"]], [[]])[0]
    assert edit.sources[2:] == [[END_NUMBER]] * 3
    assert edit.target == [START_NUMBER, END_NUMBER]


def test_a_word_that_one_example_has_however_often_is_not_known() -> None:
    own = Example({"name": "zork zork", "body": "zork"}, "zork(zork)")
    numbering = EditNumbering.learn([*CARDS, own], EditNumberingConfig())
    assert "zork" not in numbering.vocabulary
    assert "draw" in numbering.vocabulary


def test_a_word_of_one_input_and_another_output_is_not_known() -> None:
    examples = [Example({"t": "zork"}, "a"), Example({"t": "b"}, "zork"), Example({"t": "c"}, "d")]
    numbering = EditNumbering.learn(examples, EditNumberingConfig())
    assert numbering.vocabulary.tokens == SPECIAL
    assert numbering.written == len(SPECIAL)


def test_counts_are_of_examples_and_not_of_places() -> None:
    examples = [Example({"t": "a a a"}, "b b b"), Example({"t": "a"}, "b c")]
    numbering = EditNumbering.learn(examples, EVERY)
    counts = dict(zip(numbering.vocabulary.tokens, numbering.vocabulary.counts, strict=True))
    assert (counts["a"], counts["b"], counts["c"]) == (2, 2, 1)


def test_words_that_can_be_written_come_first() -> None:
    tokens = LEARNED.vocabulary.tokens
    assert set(tokens[len(SPECIAL) : LEARNED.written]) == {
        *("draw", "deal", "(", ")", "card", "minion")
    }
    # by how many examples have them, ties by spelling
    assert tokens[len(SPECIAL) : len(SPECIAL) + 2] == ("(", ")")
    assert set(tokens[LEARNED.written :]) == {"a"}


@given(st.lists(st.tuples(st.text("ab c", max_size=8), st.text("bc d", max_size=8)), min_size=1))
def test_every_word_is_known_once_and_written_ones_are_those_of_outputs(
    pairs: list[tuple[str, str]],
) -> None:
    numbering = EditNumbering.learn([Example({"t": x}, y) for x, y in pairs], EVERY)
    tokens = numbering.vocabulary.tokens
    assert len(set(tokens)) == len(tokens)
    outputs = {token for _, y in pairs for token in numbering.tokenize_output(y)}
    inputs = {token for x, _ in pairs for token in numbering.tokenize_input({"t": x})[0]}
    assert set(tokens[: numbering.written]) == {*SPECIAL, *outputs}
    assert set(tokens[numbering.written :]) == inputs - outputs


def test_the_least_frequent_words_are_left_out_when_there_are_too_many() -> None:
    config = EditNumberingConfig(min_count=1, max_written=2, max_read=3)
    numbering = EditNumbering.learn(CARDS, config)
    assert numbering.vocabulary.tokens == (*SPECIAL, "(", ")", "a", "card", "deal")
    assert numbering.written == len(SPECIAL) + 2


@settings(deadline=None)
@given(texts, texts)
def test_an_output_whose_tokens_are_known_is_spelled_again_from_its_numbers(x: str, y: str) -> None:
    numbering = EditNumbering.learn([Example({"t": x}, y)], EVERY)
    edit = numbering.number(numbering.tokenize_input({"t": x}), [[]], numbering.tokenize_output(y))
    assert edit[0].unknown == []
    assert detokenize(numbering.words(edit[0].target[1:-1], [])) == y


@settings(deadline=None)
@given(texts, texts)
def test_an_output_whose_tokens_were_read_is_spelled_again_from_its_numbers(x: str, y: str) -> None:
    nothing = EditNumbering.learn([Example({"t": ""}, "")], EVERY)
    found = nothing.tokenize(Example({"t": x}, y))
    edit = nothing.number([[]], [[found]], found.output)[0]
    assert UNKNOWN_NUMBER not in edit.target
    assert set(edit.target[1:-1]) <= set(edit.sources[-1])
    assert detokenize(nothing.words(edit.target[1:-1], edit.unknown)) == y


tokens = st.sampled_from(["draw", "card", "a", "(", "zork", "quux", "frob"])
token_lists = st.lists(tokens, max_size=6)


@given(token_lists, token_lists, token_lists, st.sets(tokens))
def test_words_are_the_inverse_of_numbering(
    x: list[str], y: list[str], output: list[str], hidden: set[str]
) -> None:
    edit = LEARNED.number([x, []], [[Tokens([[], []], y)]], output, hidden=hidden)[0]
    assert LEARNED.words(edit.sources[0], edit.unknown) == [*x, END]
    assert LEARNED.words(edit.sources[-1], edit.unknown) == [*y, END]
    assert LEARNED.words(edit.target, edit.unknown) == [START, *output, END]
    assert len(set(edit.unknown)) == len(edit.unknown)
    met = {*x, *y, *output}
    assert set(edit.unknown) == {t for t in met if t in hidden or t not in LEARNED.vocabulary}


def test_a_hidden_word_is_numbered_as_if_it_were_not_known() -> None:
    x, found = [["draw", "card"], []], Tokens([[], []], ["card", "draw"])
    edit = LEARNED.number(x, [[found]], ["draw", "card", "minion"], hidden={"card", "minion"})[0]
    draw = LEARNED.vocabulary.number("draw")
    assert edit.unknown == ["card", "minion"]
    assert edit.sources[0] == [draw, SIZE, END_NUMBER]
    assert edit.sources[-1] == [SIZE, draw, END_NUMBER]
    assert edit.target == [START_NUMBER, draw, SIZE, SIZE + 1, END_NUMBER]


@pytest.mark.parametrize("longer", [-1, 0, 1, 50])
def test_an_output_that_is_cut_has_no_end(longer: int) -> None:
    output = ["draw"] * (LONGEST_OUTPUT + longer)
    target = LEARNED.number([[], []], [[]], output)[0].target
    assert (target[-1] == END_NUMBER) == (longer <= 0)
    assert target.count(LEARNED.vocabulary.number("draw")) == min(len(output), LONGEST_OUTPUT)


@pytest.mark.parametrize("longer", [-1, 0, 1, 50])
def test_what_is_read_is_cut_and_always_ends(longer: int) -> None:
    output = ["draw"] * (LONGEST_OUTPUT + longer)
    edit = LEARNED.number([[], []], [[Tokens([[], []], output)]])[0]
    assert edit.sources[-1][-1] == END_NUMBER
    assert len(edit.sources[-1]) == min(len(output), LONGEST_OUTPUT) + 1
    field = LEARNED.tokenize_input({"name": "aB " * (LONGEST_FIELD + longer), "body": ""})[0]
    assert len(field) == LONGEST_FIELD


def test_an_identifier_is_followed_by_its_parts() -> None:
    read = LEARNED.tokenize_input({"name": "maxCard_2 = x", "body": "__init__"})
    assert read == [["maxCard_2", "max", "Card", "2", "=", "x"], ["__init__", "init"]]


def test_identifiers_stay_whole_where_they_are_not_split() -> None:
    numbering = EditNumbering.learn(CARDS, EditNumberingConfig(splits_inputs=False))
    read = numbering.tokenize_input({"name": "maxCard_2 = x", "body": "__init__"})
    assert read == [["maxCard_2", "=", "x"], ["__init__"]]


def test_outputs_are_never_split() -> None:
    assert LEARNED.tokenize_output("maxCard_2( x)") == ["maxCard_2", "(", " ", "x", ")"]


def test_a_field_that_an_input_lacks_is_empty_and_others_are_not_read() -> None:
    assert LEARNED.tokenize_input({"body": "a card", "cost": "3"}) == [[], ["a", "card"]]


@pytest.mark.parametrize(
    ("reads_input", "prototypes", "copyable"),
    [
        (True, 1, [True, True, False, False, True]),
        (True, 2, [True, True, False, False, True, False, False, True]),
        (True, 0, [True, True]),
        (False, 1, [True, True, True]),
        (False, 3, [True, True, True, True, True]),
        (False, 0, [True, True]),
    ],
)
def test_what_of_how_many_prototypes_is_read_decides_the_sequences(
    *, reads_input: bool, prototypes: int, copyable: list[bool]
) -> None:
    config = EditNumberingConfig(reads_prototype_input=reads_input, prototypes=prototypes)
    numbering = EditNumbering.learn(CARDS, config)
    assert numbering.copyable == copyable
    assert numbering.roles == len(copyable)
    found = prototype("zork", "quux", "frob", numbering)
    for count in range(4):
        assert len(numbering.number([["a"], []], [[found] * count])[0].sources) == len(copyable)
    unknown = numbering.number([["a"], []], [[found]])[0].unknown
    assert unknown == (["zork", "quux"] * reads_input + ["frob"]) * (prototypes > 0)


def several(prototypes: int, *, reads_input: bool) -> EditNumbering:
    config = EditNumberingConfig(prototypes=prototypes, reads_prototype_input=reads_input)
    return EditNumbering.learn(CARDS, config)


def test_every_sequence_belongs_to_the_input_or_to_one_prototype() -> None:
    owners = {
        reads_input: [numbering.prototype_of(role) for role in range(numbering.roles)]
        for reads_input in (False, True)
        for numbering in [several(3, reads_input=reads_input)]
    }
    assert owners == {
        False: [None, None, 0, 1, 2],
        True: [None, None, 0, 0, 0, 1, 1, 1, 2, 2, 2],
    }


@pytest.mark.parametrize("reads_input", [False, True])
@given(
    outputs=st.lists(st.lists(st.sampled_from(["draw", "zork", "frob"]), max_size=3), max_size=4)
)
def test_prototypes_that_lack_are_empty_and_those_too_many_are_not_read(
    *, reads_input: bool, outputs: list[list[str]]
) -> None:
    numbering = several(2, reads_input=reads_input)
    group = [Tokens([["card"], []], output) for output in outputs]
    nothing = Tokens([[], []], [])
    exactly = [*group, nothing, nothing][:2]
    x, output = [["draw"], ["quux"]], ["frob", "new"]
    found, expected = (numbering.number(x, [each], output) for each in (group, exactly))
    assert found == expected
    read = [role for role in range(2, numbering.roles) if numbering.copyable[role]]
    names = [numbering.words(found[0].sources[role][:-1], found[0].unknown) for role in read]
    assert names == [each.output for each in exactly]


def test_the_words_of_cached_outputs_are_numbered_before_those_of_the_output() -> None:
    cached = [["zork", "draw", "frob"], ["late", "frob"]]
    found = [[Tokens([[], []], ["zork"])], []]
    edits = LEARNED.number([["quux"], []], found, ["new", "frob"], cached=cached)
    assert edits[0].unknown == ["quux", "zork", "frob", "late", "new"]
    assert edits[0].cached == edits[1].cached
    draw = LEARNED.vocabulary.number("draw")
    assert edits[0].cached == [
        [SIZE + 1, draw, SIZE + 2, END_NUMBER],
        [SIZE + 3, SIZE + 2, END_NUMBER],
    ]
    assert edits[0].target == [START_NUMBER, SIZE + 4, SIZE + 2, END_NUMBER]
    assert LEARNED.number([["quux"], []], found, ["new"])[0].cached == []


def test_places_are_the_cached_outputs_one_after_the_other_a_start_before_each() -> None:
    draw = LEARNED.vocabulary.number("draw")
    rows = [
        *LEARNED.number([[], []], [[]], cached=[["draw"], [], ["zork"]]),
        *LEARNED.number([[], []], [[]]),
        *LEARNED.number([[], []], [[]], cached=[["draw"] * (LONGEST_OUTPUT + 5)]),
    ]
    start, end = START_NUMBER, END_NUMBER
    places = LEARNED.places(rows[:2])
    assert places.ids.tolist() == [[start, draw, end, start, end, start, SIZE, end], [0] * 8]
    assert places.ranks.tolist() == [[0, 0, 0, 1, 1, 2, 2, 2], [0] * 8]
    assert LEARNED.places(rows[1:2]).ids.shape == (1, 0)
    assert LEARNED.places(rows[2:]).ids.shape == (1, LONGEST_OUTPUT + 2)


def test_fewer_prototypes_than_none_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"^prototypes is -1; make it 0 \(none read\) or more"):
        EditNumberingConfig(prototypes=-1)


def test_a_batch_is_padded_and_as_wide_as_its_highest_number() -> None:
    edits = [
        *LEARNED.number([["zork", "quux"], ["a"]], [[]], ["zork"]),
        *LEARNED.number([[], ["frob"]], [[prototype("a", "a", "draw(card)")]], ["draw", "frob"]),
    ]
    batch = LEARNED.batch(edits)
    assert batch.width == SIZE + 2
    assert [each.lengths.tolist() for each in batch.sources] == [
        *([3, 1], [2, 2], [1, 2], [1, 2], [1, 5])
    ]
    assert batch.target.ids.tolist() == [[*edits[0].target, 0], edits[1].target]
    highest = max(int(each.ids.max()) for each in batch.sources)
    assert highest == batch.width - 1
    assert torch.equal(batch.sources[0].ids[0], torch.tensor(edits[0].sources[0]))


@pytest.mark.parametrize("config", [EditNumberingConfig(), EditNumberingConfig(3, 5, 7, False, 2)])
def test_a_saved_numbering_numbers_alike(config: EditNumberingConfig, tmp_path: Path) -> None:
    numbering = EditNumbering.learn(CARDS, config)
    numbering.save(tmp_path)
    described = json.loads((tmp_path / "numbering.json").read_text())
    loaded = EditNumbering.load(tmp_path / "vocabulary.txt", described, where="numbering.json")
    assert loaded.vocabulary == numbering.vocabulary
    assert (loaded.written, loaded.fields) == (numbering.written, numbering.fields)
    assert loaded.config == config
    x = numbering.tokenize_input({"name": "drawCard zork", "body": "a"})
    assert loaded.tokenize_input({"name": "drawCard zork", "body": "a"}) == x
    assert loaded.number(x, [[]], ["zork"]) == numbering.number(x, [[]], ["zork"])


def test_settings_of_another_version_are_named(tmp_path: Path) -> None:
    LEARNED.save(tmp_path)
    described = json.loads((tmp_path / "numbering.json").read_text())
    described["config"]["colour"] = "red"
    with pytest.raises(ConfigError, match=r"^numbering\.json: unknown setting 'colour'; known"):
        EditNumbering.load(tmp_path / "vocabulary.txt", described, where="numbering.json")


def of_project(name: str, output: str) -> Example:
    return Example({"t": "do it"}, output, {"package": name})


def test_words_of_one_project_alone_are_unknown_where_there_are_several() -> None:
    examples = [
        of_project("ham", "fry ham"),
        of_project("ham", "cut ham"),
        of_project("egg", "fry"),
    ]
    numbering = EditNumbering.learn(examples, EVERY, project="package")
    words = numbering.vocabulary.tokens
    assert "fry" in words
    assert "ham" not in words
    assert "ham" in EditNumbering.learn(examples, EVERY).vocabulary.tokens
    of_one = EditNumbering.learn(examples[:2], EVERY, project="package")
    assert {"ham", "fry", "cut"} <= set(of_one.vocabulary.tokens)
