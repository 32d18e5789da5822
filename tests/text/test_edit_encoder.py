"""Edit examples to ids and back: vocabulary words, OOV words and hidden words."""

import json
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from redraft.errors import ConfigError
from redraft.models.batch import CachePositions, EditBatch
from redraft.text.edit_encoder import (
    LONGEST_FIELD,
    LONGEST_OUTPUT,
    EditEncoder,
    EditEncoderConfig,
    Tokens,
)
from redraft.text.tokenizer import detokenize
from redraft.text.vocabulary import END, SPECIAL, START, UNKNOWN
from redraft.types import Example

UNK_ID, BOS_ID, EOS_ID = (SPECIAL.index(token) for token in (UNKNOWN, START, END))
EVERY = EditEncoderConfig(reads_prototype_input=True)

CARDS = [
    Example({"name": "draw card", "body": "draw a card"}, "draw(card)"),
    Example({"name": "draw minion", "body": "draw a minion"}, "draw(minion)"),
    Example({"name": "deal damage", "body": "deal to a minion"}, "deal(minion)"),
    Example({"name": "deal card", "body": "deal a card"}, "deal(card)"),
]
LEARNED = EditEncoder.learn(CARDS, EditEncoderConfig(reads_prototype_input=True))
SIZE = len(LEARNED.vocabulary)

texts = st.text() | st.text("abC_1 =(.,\n", max_size=40)


def prototype(name: str, body: str, y: str, encoding: EditEncoder = LEARNED) -> Tokens:
    return encoding.tokenize(Example({"name": name, "body": body}, y))


def test_an_oov_word_has_the_same_id_in_all_sequences() -> None:
    x = [["draw", "zork"], ["zork", "quux"]]
    found = Tokens([["quux", "a"], ["frob"]], ["frob", "(", "zork", ")"])
    edit = LEARNED.encode(x, [[found]], ["frob", "zork", "quux"])[0]
    zork, quux, frob = range(SIZE, SIZE + 3)  # in the order in which they are met
    number = LEARNED.vocabulary.id_of
    assert edit.sources == [
        [number("draw"), zork, EOS_ID],
        [zork, quux, EOS_ID],
        [quux, number("a"), EOS_ID],
        [frob, EOS_ID],
        [frob, number("("), zork, number(")"), EOS_ID],
    ]
    assert edit.target == [BOS_ID, frob, zork, quux, EOS_ID]
    assert edit.unknown == ["zork", "quux", "frob"]


def test_all_groups_of_prototypes_share_the_ids_of_oov_words() -> None:
    found = [prototype("a", "b", "zork frob"), prototype("a", "b", "frob quux")]
    groups = [*([each] for each in found), []]
    edits = LEARNED.encode([["x1"], ["x2"]], groups, ["quux", "frob", "zork"])
    assert len({tuple(edit.target) for edit in edits}) == 1
    assert len({tuple(edit.unknown) for edit in edits}) == 1
    names = [LEARNED.words(edit.sources[-1][:-1], edit.unknown) for edit in edits]
    assert names == [["zork", "frob"], ["frob", "quux"], []]
    assert edits[0].sources[-1][1] == edits[1].sources[-1][0]
    assert LEARNED.words(edits[0].target[1:-1], edits[0].unknown) == ["quux", "frob", "zork"]


def test_an_oov_word_of_the_output_alone_gets_an_id_after_those_of_the_sources() -> None:
    output = ["draw", "zork", "quux", "zork"]
    edit = LEARNED.encode([["quux"], []], [[]], output)[0]
    assert edit.unknown == ["quux", "zork"]
    assert edit.target[2:5] == [SIZE + 1, SIZE, SIZE + 1]
    assert LEARNED.words(edit.target, edit.unknown) == [START, *output, END]


def test_without_a_prototype_its_sources_are_empty() -> None:
    edit = LEARNED.encode([["draw"], ["a"]], [[]])[0]
    assert edit.sources[2:] == [[EOS_ID]] * 3
    assert edit.target == [BOS_ID, EOS_ID]


def test_a_word_of_one_example_is_not_in_the_vocabulary_however_frequent() -> None:
    own = Example({"name": "zork zork", "body": "zork"}, "zork(zork)")
    encoding = EditEncoder.learn([*CARDS, own], EditEncoderConfig())
    assert "zork" not in encoding.vocabulary
    assert "draw" in encoding.vocabulary


def test_a_word_of_one_input_and_another_output_is_not_in_the_vocabulary() -> None:
    examples = [Example({"t": "zork"}, "a"), Example({"t": "b"}, "zork"), Example({"t": "c"}, "d")]
    encoding = EditEncoder.learn(examples, EditEncoderConfig())
    assert encoding.vocabulary.tokens == SPECIAL
    assert encoding.output_vocab_size == len(SPECIAL)


def test_counts_are_document_frequencies() -> None:
    examples = [Example({"t": "a a a"}, "b b b"), Example({"t": "a"}, "b c")]
    encoding = EditEncoder.learn(examples, EVERY, min_count=1)
    counts = dict(zip(encoding.vocabulary.tokens, encoding.vocabulary.counts, strict=True))
    assert (counts["a"], counts["b"], counts["c"]) == (2, 2, 1)


def test_the_output_vocabulary_comes_first() -> None:
    tokens = LEARNED.vocabulary.tokens
    assert set(tokens[len(SPECIAL) : LEARNED.output_vocab_size]) == {
        *("draw", "deal", "(", ")", "card", "minion")
    }
    # by how many examples have them, ties by spelling
    assert tokens[len(SPECIAL) : len(SPECIAL) + 2] == ("(", ")")
    assert set(tokens[LEARNED.output_vocab_size :]) == {"a"}


@given(st.lists(st.tuples(st.text("ab c", max_size=8), st.text("bc d", max_size=8)), min_size=1))
def test_words_are_unique_and_the_output_vocabulary_comes_from_outputs(
    pairs: list[tuple[str, str]],
) -> None:
    encoding = EditEncoder.learn([Example({"t": x}, y) for x, y in pairs], EVERY, min_count=1)
    tokens = encoding.vocabulary.tokens
    assert len(set(tokens)) == len(tokens)
    outputs = {token for _, y in pairs for token in encoding.tokenize_output(y)}
    inputs = {token for x, _ in pairs for token in encoding.tokenize_input({"t": x})[0]}
    assert set(tokens[: encoding.output_vocab_size]) == {*SPECIAL, *outputs}
    assert set(tokens[encoding.output_vocab_size :]) == inputs - outputs


def test_the_least_frequent_words_are_left_out_when_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("redraft.text.edit_encoder.MAX_INPUT_VOCAB", 3)
    encoding = EditEncoder.learn(CARDS, EditEncoderConfig(max_output_vocab=2), min_count=1)
    assert encoding.vocabulary.tokens == (*SPECIAL, "(", ")", "a", "card", "deal")
    assert encoding.output_vocab_size == len(SPECIAL) + 2


@settings(deadline=None)
@given(texts, texts)
def test_an_output_of_vocabulary_words_is_decoded_from_its_ids(x: str, y: str) -> None:
    encoding = EditEncoder.learn([Example({"t": x}, y)], EVERY, min_count=1)
    edit = encoding.encode(encoding.tokenize_input({"t": x}), [[]], encoding.tokenize_output(y))
    assert edit[0].unknown == []
    assert detokenize(encoding.words(edit[0].target[1:-1], [])) == y


@settings(deadline=None)
@given(texts, texts)
def test_an_output_of_source_words_is_decoded_from_its_ids(x: str, y: str) -> None:
    nothing = EditEncoder.learn([Example({"t": ""}, "")], EVERY, min_count=1)
    found = nothing.tokenize(Example({"t": x}, y))
    edit = nothing.encode([[]], [[found]], found.output)[0]
    assert UNK_ID not in edit.target
    assert set(edit.target[1:-1]) <= set(edit.sources[-1])
    assert detokenize(nothing.words(edit.target[1:-1], edit.unknown)) == y


tokens = st.sampled_from(["draw", "card", "a", "(", "zork", "quux", "frob"])
token_lists = st.lists(tokens, max_size=6)


@given(token_lists, token_lists, token_lists, st.sets(tokens))
def test_decoding_inverts_encoding(
    x: list[str], y: list[str], output: list[str], hidden: set[str]
) -> None:
    edit = LEARNED.encode([x, []], [[Tokens([[], []], y)]], output, hidden=hidden)[0]
    assert LEARNED.words(edit.sources[0], edit.unknown) == [*x, END]
    assert LEARNED.words(edit.sources[-1], edit.unknown) == [*y, END]
    assert LEARNED.words(edit.target, edit.unknown) == [START, *output, END]
    assert len(set(edit.unknown)) == len(edit.unknown)
    met = {*x, *y, *output}
    assert set(edit.unknown) == {t for t in met if t in hidden or t not in LEARNED.vocabulary}


def test_a_hidden_word_is_encoded_as_an_oov() -> None:
    x, found = [["draw", "card"], []], Tokens([[], []], ["card", "draw"])
    edit = LEARNED.encode(x, [[found]], ["draw", "card", "minion"], hidden={"card", "minion"})[0]
    draw = LEARNED.vocabulary.id_of("draw")
    assert edit.unknown == ["card", "minion"]
    assert edit.sources[0] == [draw, SIZE, EOS_ID]
    assert edit.sources[-1] == [SIZE, draw, EOS_ID]
    assert edit.target == [BOS_ID, draw, SIZE, SIZE + 1, EOS_ID]


@pytest.mark.parametrize("longer", [-1, 0, 1, 50])
def test_a_truncated_output_has_no_eos(longer: int) -> None:
    output = ["draw"] * (LONGEST_OUTPUT + longer)
    target = LEARNED.encode([[], []], [[]], output)[0].target
    assert (target[-1] == EOS_ID) == (longer <= 0)
    assert target.count(LEARNED.vocabulary.id_of("draw")) == min(len(output), LONGEST_OUTPUT)


@pytest.mark.parametrize("longer", [-1, 0, 1, 50])
def test_sources_are_truncated_and_end_with_eos(longer: int) -> None:
    output = ["draw"] * (LONGEST_OUTPUT + longer)
    edit = LEARNED.encode([[], []], [[Tokens([[], []], output)]])[0]
    assert edit.sources[-1][-1] == EOS_ID
    assert len(edit.sources[-1]) == min(len(output), LONGEST_OUTPUT) + 1
    field = LEARNED.tokenize_input({"name": "aB " * (LONGEST_FIELD + longer), "body": ""})[0]
    assert len(field) == LONGEST_FIELD


def test_an_identifier_is_followed_by_its_parts() -> None:
    read = LEARNED.tokenize_input({"name": "maxCard_2 = x", "body": "__init__"})
    assert read == [["maxCard_2", "max", "Card", "2", "=", "x"], ["__init__", "init"]]


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
def test_the_config_determines_the_sources(
    *, reads_input: bool, prototypes: int, copyable: list[bool]
) -> None:
    config = EditEncoderConfig(reads_prototype_input=reads_input, prototypes=prototypes)
    encoding = EditEncoder.learn(CARDS, config)
    assert encoding.copyable == copyable
    assert encoding.source_ids == len(copyable)
    found = prototype("zork", "quux", "frob", encoding)
    for count in range(4):
        assert len(encoding.encode([["a"], []], [[found] * count])[0].sources) == len(copyable)
    unknown = encoding.encode([["a"], []], [[found]])[0].unknown
    assert unknown == (["zork", "quux"] * reads_input + ["frob"]) * (prototypes > 0)


def several(prototypes: int, *, reads_input: bool) -> EditEncoder:
    config = EditEncoderConfig(prototypes=prototypes, reads_prototype_input=reads_input)
    return EditEncoder.learn(CARDS, config)


def test_every_sequence_belongs_to_the_input_or_to_one_prototype() -> None:
    owners = {
        reads_input: [encoding.prototype_of(source_id) for source_id in range(encoding.source_ids)]
        for reads_input in (False, True)
        for encoding in [several(3, reads_input=reads_input)]
    }
    assert owners == {
        False: [None, None, 0, 1, 2],
        True: [None, None, 0, 0, 0, 1, 1, 1, 2, 2, 2],
    }


@pytest.mark.parametrize("reads_input", [False, True])
@given(
    outputs=st.lists(st.lists(st.sampled_from(["draw", "zork", "frob"]), max_size=3), max_size=4)
)
def test_missing_prototypes_are_empty_and_surplus_ones_are_ignored(
    *, reads_input: bool, outputs: list[list[str]]
) -> None:
    encoding = several(2, reads_input=reads_input)
    group = [Tokens([["card"], []], output) for output in outputs]
    nothing = Tokens([[], []], [])
    exactly = [*group, nothing, nothing][:2]
    x, output = [["draw"], ["quux"]], ["frob", "new"]
    found, expected = (encoding.encode(x, [each], output) for each in (group, exactly))
    assert found == expected
    read = [
        source_id for source_id in range(2, encoding.source_ids) if encoding.copyable[source_id]
    ]
    names = [
        encoding.words(found[0].sources[source_id][:-1], found[0].unknown) for source_id in read
    ]
    assert names == [each.output for each in exactly]


def test_oovs_of_cached_outputs_get_ids_before_those_of_the_output() -> None:
    cached = [["zork", "draw", "frob"], ["late", "frob"]]
    found = [[Tokens([[], []], ["zork"])], []]
    edits = LEARNED.encode([["quux"], []], found, ["new", "frob"], cached=cached)
    assert edits[0].unknown == ["quux", "zork", "frob", "late", "new"]
    assert edits[0].cached == edits[1].cached
    draw = LEARNED.vocabulary.id_of("draw")
    assert edits[0].cached == [
        [SIZE + 1, draw, SIZE + 2, EOS_ID],
        [SIZE + 3, SIZE + 2, EOS_ID],
    ]
    assert edits[0].target == [BOS_ID, SIZE + 4, SIZE + 2, EOS_ID]
    assert LEARNED.encode([["quux"], []], found, ["new"])[0].cached == []


def test_cache_positions_concatenate_the_cached_outputs_with_bos_before_each() -> None:
    draw = LEARNED.vocabulary.id_of("draw")
    rows = [
        *LEARNED.encode([[], []], [[]], cached=[["draw"], [], ["zork"]]),
        *LEARNED.encode([[], []], [[]]),
        *LEARNED.encode([[], []], [[]], cached=[["draw"] * (LONGEST_OUTPUT + 5)]),
    ]
    start, end = BOS_ID, EOS_ID
    positions = CachePositions.pad(rows[:2])
    assert positions.ids.tolist() == [[start, draw, end, start, end, start, SIZE, end], [0] * 8]
    assert positions.ranks.tolist() == [[0, 0, 0, 1, 1, 2, 2, 2], [0] * 8]
    assert CachePositions.pad(rows[1:2]).ids.shape == (1, 0)
    assert CachePositions.pad(rows[2:]).ids.shape == (1, LONGEST_OUTPUT + 2)


def test_a_negative_number_of_prototypes_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^prototypes is -1; expected a whole number from 0 to"):
        EditEncoderConfig(prototypes=-1)


def test_a_batch_is_padded_and_has_the_size_of_the_extended_vocabulary() -> None:
    edits = [
        *LEARNED.encode([["zork", "quux"], ["a"]], [[]], ["zork"]),
        *LEARNED.encode([[], ["frob"]], [[prototype("a", "a", "draw(card)")]], ["draw", "frob"]),
    ]
    batch = EditBatch.pad(edits, vocab_size=SIZE)
    assert batch.width == SIZE + 2
    assert [each.lengths.tolist() for each in batch.sources] == [
        *([3, 1], [2, 2], [1, 2], [1, 2], [1, 5])
    ]
    assert batch.target.ids.tolist() == [[*edits[0].target, 0], edits[1].target]
    highest = max(int(each.ids.max()) for each in batch.sources)
    assert highest == batch.width - 1
    assert torch.equal(batch.sources[0].ids[0], torch.tensor(edits[0].sources[0]))


@pytest.mark.parametrize("config", [EditEncoderConfig(), EditEncoderConfig(5, 2)])
def test_a_saved_encoder_encodes_alike(config: EditEncoderConfig, tmp_path: Path) -> None:
    encoding = EditEncoder.learn(CARDS, config)
    encoding.save(tmp_path)
    loaded = EditEncoder.load(tmp_path / "vocabulary.txt", tmp_path / "encoding.json")
    assert loaded.vocabulary == encoding.vocabulary
    assert (loaded.output_vocab_size, loaded.fields) == (
        encoding.output_vocab_size,
        encoding.fields,
    )
    assert loaded.config == config
    x = encoding.tokenize_input({"name": "drawCard zork", "body": "a"})
    assert loaded.tokenize_input({"name": "drawCard zork", "body": "a"}) == x
    assert loaded.encode(x, [[]], ["zork"]) == encoding.encode(x, [[]], ["zork"])


def test_settings_of_another_version_are_named(tmp_path: Path) -> None:
    LEARNED.save(tmp_path)
    described = json.loads((tmp_path / "encoding.json").read_text())
    described["config"]["colour"] = "red"
    (tmp_path / "encoding.json").write_text(json.dumps(described))
    with pytest.raises(ConfigError, match=r"/encoding\.json: unknown setting 'colour'; known"):
        EditEncoder.load(tmp_path / "vocabulary.txt", tmp_path / "encoding.json")


def of_project(name: str, output: str) -> Example:
    return Example({"t": "do it"}, output, {"package": name})


def test_words_of_a_single_project_are_oov_if_there_are_several() -> None:
    examples = [
        of_project("ham", "fry ham"),
        of_project("ham", "cut ham"),
        of_project("egg", "fry"),
    ]
    encoding = EditEncoder.learn(examples, EVERY, project="package", min_count=1)
    words = encoding.vocabulary.tokens
    assert "fry" in words
    assert "ham" not in words
    assert "ham" in EditEncoder.learn(examples, EVERY, min_count=1).vocabulary.tokens
    of_one = EditEncoder.learn(examples[:2], EVERY, project="package", min_count=1)
    assert {"ham", "fry", "cut"} <= set(of_one.vocabulary.tokens)
