"""Propose and choose: stored outputs are never lost, and confidence is bounded by the evidence."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redraft.editing.choosing import (
    INVENTED_CONFIDENCE,
    UNFAMILIAR_CONFIDENCE,
    ChoosingEditor,
)
from redraft.editing.slot_filling import Query
from redraft.editing.templates import TemplateModel
from redraft.editing.value_table import ValueTable
from redraft.errors import ModelError
from redraft.model import RetrieveAndEdit
from redraft.training.fit import FitOptions
from redraft.types import Example

CITIES = "Rome Oslo Paris Lima Cairo Quito Sofia Minsk Dakar Tunis Turin Porto".split()  # noqa: SIM905
KINDS = {
    "how many customers in {}": "SELECT COUNT(*) FROM customers WHERE city = '{}'",
    "list the orders from {}": "SELECT id FROM orders WHERE city = '{}'",
    "total revenue of {}": "SELECT SUM(total) FROM orders WHERE city = '{}'",
    "open tickets in {}": "SELECT id FROM tickets WHERE city = '{}' AND status = 'OPEN'",
}


def shop(cities: list[str]) -> list[Example]:
    """One example for each kind of question and city."""
    return [
        Example({"text": x.format(city)}, y.format(city))
        for city in cities
        for x, y in KINDS.items()
    ]


UNTRAINED = FitOptions(train=False)


@pytest.fixture(scope="module")
def model() -> RetrieveAndEdit:
    return RetrieveAndEdit.fit(shop(CITIES), editor="choosing", options=UNTRAINED)


def test_other_values_are_substituted(model: RetrieveAndEdit) -> None:
    answer = model.predict_one("how many customers in Havana?")
    assert answer.output == "SELECT COUNT(*) FROM customers WHERE city = 'Havana'"
    assert answer.prototype is not None
    assert answer.confidence is not None
    assert answer.confidence > 0.5
    assert answer.invented == ()
    assert "".join(token.text for token in answer.provenance) == answer.output


@pytest.mark.parametrize("asked", ["{}", "  {} ?", "{}!", "{}."])
def test_stored_inputs_get_their_stored_output(model: RetrieveAndEdit, asked: str) -> None:
    for example in shop(CITIES):
        answer = model.predict_one(asked.format(example.x["text"].upper()))
        assert answer.output == example.y
        assert answer.prototype is not None
        assert answer.prototype.example == example


words = st.text("abcdef ?.", min_size=1, max_size=12).filter(lambda text: text.strip(" ?."))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(words, words), min_size=1, max_size=8))
def test_an_added_pair_is_answered_at_once_whatever_it_says(pairs: list[tuple[str, str]]) -> None:
    fitted = RetrieveAndEdit.fit(shop(CITIES[:3]), editor="choosing", options=UNTRAINED)
    added = [Example({"text": x}, y) for x, y in pairs]
    grown = RetrieveAndEdit(fitted.retriever.add(added), fitted.editor)
    newest = {x.casefold().strip().rstrip(" ?."): y for x, y in pairs}
    for x, _ in pairs:
        key = " ".join(x.casefold().split()).rstrip(" ?.")
        expected = [
            y for z, y in pairs if " ".join(z.casefold().split()).rstrip(" ?.") == key
        ]  # the newest is the last
        assert grown.predict_one(x).output == expected[-1]
    assert newest


def test_of_several_stored_outputs_the_newest_is_first(model: RetrieveAndEdit) -> None:
    x = {"text": "How many customers in Rome"}
    newer = Example(x, "SELECT COUNT(*) FROM clients WHERE city = 'Rome'")
    grown = RetrieveAndEdit(model.retriever.add([newer]), model.editor)
    first, second, *_ = grown.predict([x], 5)[0]
    assert first.output == newer.y
    assert second.output == "SELECT COUNT(*) FROM customers WHERE city = 'Rome'"
    assert first.confidence == second.confidence == pytest.approx(0.495)


def test_an_invented_value_is_marked_and_never_confident(model: RetrieveAndEdit) -> None:
    for candidates in model.predict(["how many customers", "total revenue", "open tickets"], 10):
        for candidate in candidates:
            if any(city in candidate.output for city in CITIES):
                assert candidate.invented
                assert candidate.confidence is not None
                assert candidate.confidence <= INVENTED_CONFIDENCE


@pytest.mark.parametrize("x", ["qwe asd zxc", "wie wird das Wetter", "import os; os.getcwd()", "!"])
def test_an_input_like_no_example_is_marked(model: RetrieveAndEdit, x: str) -> None:
    for candidate in model.predict([x], 3)[0]:
        assert not candidate.is_familiar
        assert candidate.confidence is not None
        assert candidate.confidence <= UNFAMILIAR_CONFIDENCE


def test_rare_words_decide_how_much_of_an_input_is_known() -> None:
    """Counts by hand: of ten inputs, each has "how many" and one has "invoices"."""
    examples = [
        Example({"text": f"how many {thing} {thing} 7"}, f"count({thing})")
        for thing in ("invoices", *(f"thing{i}" for i in range(9)))
    ]
    templates = TemplateModel.learn(examples, ValueTable.learn(examples))

    def known_share(text: str) -> float:
        return templates.known_share(Query.of({"text": text}, templates.table))

    common, rare = 1.0, math.log(11) + 1  # IDF with one added to both counts
    assert known_share("how many") == 1.0
    assert known_share("how many 8") == 1.0
    assert known_share("octopus") == known_share("7") == 0.0
    expected = 2 * common**2 / (2 * common**2 + rare**2)
    assert known_share("how many octopus") == pytest.approx(expected)


def test_the_chooser_is_never_behind_a_single_proposer_on_held_out_pairs(
    model: RetrieveAndEdit,
) -> None:
    assert isinstance(model.editor, ChoosingEditor)
    chooser = model.editor.chooser
    assert chooser is not None
    best = max(share for name, share in chooser.accuracy.items() if name != "chooser")
    assert chooser.preferred is not None or chooser.accuracy["chooser"] >= best


def test_outputs_that_have_nothing_to_do_with_inputs_leave_it_to_the_best_proposer() -> None:
    rng = np.random.default_rng(0)
    examples = [
        Example({"text": f"question {i} of {rng.integers(1000)}"}, f"answer {rng.integers(5)}")
        for i in range(60)
    ]
    lines: list[str] = []
    options = FitOptions(log=lines.append, train=False)
    fitted = RetrieveAndEdit.fit(examples, editor="choosing", options=options)
    assert isinstance(fitted.editor, ChoosingEditor)
    chooser = fitted.editor.chooser
    assert chooser is not None
    assert any("held-out pairs" in line for line in lines)
    if chooser.preferred is not None:
        assert f"{chooser.preferred} is used" in " ".join(lines)


def test_few_pairs_have_no_confidence_and_still_an_answer() -> None:
    lines: list[str] = []
    options = FitOptions(log=lines.append, train=False)
    fitted = RetrieveAndEdit.fit(shop(CITIES[:2]), editor="choosing", options=options)
    answer = fitted.predict_one("list the orders from Havana")
    assert answer.output == "SELECT id FROM orders WHERE city = 'Havana'"
    assert answer.confidence is None
    assert "too few" in lines[0]


def test_candidates_are_ranked_and_different(model: RetrieveAndEdit) -> None:
    candidates = model.predict(["list the orders from Havana"], 8)[0]
    outputs = [candidate.output for candidate in candidates]
    assert len(set(outputs)) == len(outputs) == 8
    scores = [candidate.score for candidate in candidates]
    assert scores == sorted(scores, reverse=True)


def test_samples_are_those_of_their_seed(model: RetrieveAndEdit) -> None:
    x = "list the orders from Havana"
    assert model.sample([x], 3, seed=1) == model.sample([x], 3, seed=1)
    firsts = {model.sample([x], 1, seed=seed)[0][0].output for seed in range(30)}
    assert "SELECT id FROM orders WHERE city = 'Havana'" in firsts


def test_a_saved_model_answers_alike(model: RetrieveAndEdit, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    loaded = RetrieveAndEdit.load(tmp_path / "model")
    inputs = ["list the orders from Havana", "open tickets in Rome", "nothing like it"]
    assert loaded.predict(inputs, 3) == model.predict(inputs, 3)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("chooser.json", {"none": [1e300, 0, 0, 0]}),
        ("chooser.json", {"none": [0]}),
        ("chooser.json", {"features": {}}),
        ("chooser.json", {"preferred": "somebody"}),
        ("chooser.json", {"floor": None}),
        ("templates.json", {"count": -1}),
        ("templates.json", {"inputs": {"a": "b"}}),
        ("confidence.json", {"features": {}}),
    ],
)
def test_a_damaged_editor_is_refused_by_the_name_of_its_file(
    model: RetrieveAndEdit, tmp_path: Path, name: str, damage: dict[str, object]
) -> None:
    from redraft.storage.artifact import Artifact

    model.editor.save(tmp_path)
    path = tmp_path / name
    path.write_text(json.dumps(json.loads(path.read_text()) | damage))
    files = {file.name: file for file in tmp_path.iterdir()}
    with pytest.raises(ModelError, match=name.replace(".", r"\.")):
        ChoosingEditor.load(Artifact(tmp_path, files))
