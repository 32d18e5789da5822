"""Sketches: values are masked and filled without loss, and a network over them proposes outputs."""

import json
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from redraft.editing.alignment import aligned
from redraft.editing.choosing import ChoosingEditor
from redraft.editing.sketch import (
    PHRASE,
    VALUE,
    SketchModel,
    fill,
    mask_input,
    mask_output,
    sketch_examples,
)
from redraft.editing.sketch_editor import SketchEditor
from redraft.editing.value_table import ValueTable
from redraft.errors import ModelError
from redraft.model import RetrieveAndEdit
from redraft.training.fit import FitOptions
from redraft.types import Example, Prototype
from tests.combined import combined_model
from tests.greetings import settings

AUTHORS = ["Ada Lovelace", "Alan Turing", "Grace Hopper", "Edsger Dijkstra", "Donald Knuth"]
YEARS = ["1998", "2003", "2011", "2016"]
WHERE = 'FROM publication WHERE author = "{}" AND year = {} ;'
KINDS = {
    "papers by {} in {}": f"SELECT id {WHERE}",
    "how many papers did {} write in {}": f"SELECT COUNT(*) {WHERE}",
    "venues of {} in {}": f"SELECT DISTINCT venue {WHERE}",
    "citations of {} in {}": f"SELECT SUM(cited) {WHERE}",
}
EXAMPLES = [
    Example({"text": x.format(author, year)}, y.format(author, year))
    for author in AUTHORS
    for year in YEARS
    for x, y in KINDS.items()
]
TABLE = ValueTable.learn(EXAMPLES)


def test_values_of_input_and_output_get_the_same_names() -> None:
    masked = mask_input({"text": "papers by Ada Lovelace in 2024?"}, TABLE)
    assert masked.sketch["text"].split()[:2] == ["papers", "by"]
    assert masked.sketch["text"].count(VALUE) == 2
    output = 'SELECT id FROM publication WHERE author = "Ada Lovelace" AND year = 2024 ;'
    assert mask_output(masked, output, TABLE) == (
        f'SELECT id FROM publication WHERE author = "{VALUE}a_i" AND year = {VALUE}b_i ;'
    )


def test_examples_that_differ_in_values_have_one_sketch_of_their_output() -> None:
    sketches, _ = sketch_examples(EXAMPLES, TABLE)
    assert len({example.y for example in sketches}) == len(KINDS)
    assert all(PHRASE in example.y for example in sketches)
    assert max(len(example.y.split()) for example in sketches) <= 12


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
values = st.sampled_from([*AUTHORS, *YEARS, "Zuse", "3 July 2024", "1,000"])


@given(values, values, text)
def test_a_masked_output_is_filled_without_loss(author: str, year: str, other: str) -> None:
    masked = mask_input({"text": f"papers by {author} in {year} {other}"}, TABLE)
    output = f'SELECT "{author}" WHERE year = {year} -- {author.upper()} {other}'
    assume(VALUE not in output and output.isprintable())
    filled = fill(masked, mask_output(masked, output, TABLE), TABLE)
    assert filled is not None
    assert filled.casefold() == output.casefold()


@given(st.lists(st.sampled_from([example.y for example in EXAMPLES]), max_size=8))
def test_phrases_are_decoded_without_loss(outputs: list[str]) -> None:
    model = SketchModel.learn(outputs)
    for output in [*outputs, *(y + " AND id = 7" for y in outputs)]:
        assert model.decode(model.encode(output)) == output


def test_a_sketch_that_names_a_missing_value_is_no_output() -> None:
    masked = mask_input({"text": "papers by Ada Lovelace"}, TABLE)
    assert fill(masked, f"SELECT {VALUE}zz_i", TABLE) is None


@pytest.fixture(scope="module")
def model() -> RetrieveAndEdit:
    dev = EXAMPLES[::3]
    return combined_model(EXAMPLES, dev, FitOptions(settings(40), dev=dev), sketches=True)


def test_the_network_writes_the_values_of_a_new_input(model: RetrieveAndEdit) -> None:
    assert isinstance(model.editor, ChoosingEditor)
    network = model.editor.neural
    assert isinstance(network, SketchEditor)
    x = {"text": "papers by Konrad Zuse in 1941"}
    outputs = [c.output for c in network.edit([x], model.retriever.retrieve([x], 3), 5)[0]]
    right = 'SELECT id FROM publication WHERE author = "Konrad Zuse" AND year = 1941 ;'
    assert right in outputs
    wrong = right.replace("1941", "2003")
    (likely, _), (unlikely, _) = network.log_probs(x, [], [right, wrong])
    assert likely > unlikely


def test_a_loaded_model_answers_alike(model: RetrieveAndEdit, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    loaded = RetrieveAndEdit.load(tmp_path / "model")
    asked = ["papers by Konrad Zuse in 1941", "how many papers did Konrad Zuse write in 2003"]
    expected = [[(c.output, c.confidence) for c in row] for row in model.predict(asked, 3)]
    assert [[(c.output, c.confidence) for c in row] for row in loaded.predict(asked, 3)] == expected


@pytest.mark.parametrize(
    "saved",
    [
        {},
        {"merges": [], "units": [[1]]},
        {"merges": [["a"]], "units": []},
        {"merges": [], "units": ["ab"]},
        {"merges": [], "units": [["a" * 30_000]]},
    ],
)
def test_damaged_phrases_are_refused_by_name(
    model: RetrieveAndEdit,
    tmp_path: Path,
    saved: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(json, "dumps", _dumps_sketch(saved))
    model.save(tmp_path / "model")
    monkeypatch.undo()
    with pytest.raises(ModelError, match=r"sketch.*damaged \(not the phrases of sketches\)"):
        RetrieveAndEdit.load(tmp_path / "model")


def _dumps_sketch(saved: dict[str, object]):  # type: ignore[no-untyped-def]
    dumps = json.dumps

    def replaced(values, **options):  # type: ignore[no-untyped-def]
        is_sketch = isinstance(values, dict) and set(values) == {"merges", "units"}
        return dumps(saved if is_sketch else values, **options)

    return replaced


def test_generated_tokens_are_traced_by_alignment() -> None:
    stored = Prototype(Example({"text": "papers in 2003"}, "SELECT id WHERE year = 2003"), 0.1)
    candidate = aligned(("papers", "since", "2004"), "SELECT id WHERE year > 2004", [stored])
    origins = {token.text.strip(): token.origin for token in candidate.provenance}
    assert origins == {
        "SELECT": "prototype",
        "id": "prototype",
        "WHERE": "prototype",
        "year": "prototype",
        ">": "generated",
        "2004": "input",
    }
    assert candidate.prototype is stored
    assert "".join(token.text for token in candidate.provenance) == candidate.output
