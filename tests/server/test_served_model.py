"""A served model: responses, and changes of its examples."""

from pathlib import Path

import pytest

from redraft import Example, RetrieveAndEdit
from redraft.completion.project import Project
from redraft.errors import NoAnswerError, PairsError
from redraft.server import schema
from redraft.server.schema import FieldError
from redraft.server.served_model import ServedModel
from tests.greetings import greeter, greeting
from tests.shop import shopkeeper


@pytest.fixture
def served() -> ServedModel:
    return ServedModel("greetings", greeter())


def pairs(count: int = 3) -> list[Example]:
    return [
        Example({"title": f"card {at}", "text": f"draw {at}"}, f"draw({at})", {"deck": at % 2})
        for at in range(count)
    ]


def plain(examples: list[Example], folder: Path | None = None) -> ServedModel:
    model = RetrieveAndEdit.fit(examples, retriever="lexical", editor="verbatim")
    if folder is not None:
        model.save(folder)
    return ServedModel("cards", model, folder)


def test_an_answer_shows_its_prototype_its_tokens_and_what_changed(served: ServedModel) -> None:
    [[answer]] = served.predict(schema.PredictRequest(inputs=["greet Kepler"]))
    assert answer.prototype is not None
    assert "".join(each.text for each in answer.tokens) == answer.output
    kept = "".join(each.text for each in answer.diff if each.change != "added")
    assert kept == answer.prototype.y
    assert "".join(each.text for each in answer.diff if each.change != "removed") == answer.output


def test_another_prototype_can_be_edited(served: ServedModel) -> None:
    first, second = served.retrieve(schema.RetrieveRequest(inputs=["greet Kepler"], k=2))[0]
    request = schema.PredictRequest(inputs=["greet Kepler"], prototype=second.id)
    [[answer]] = served.predict(request)
    assert answer.prototype is not None
    assert answer.prototype.id == second.id != first.id
    assert answer.prototype.distance == pytest.approx(second.distance, abs=1e-5)


def test_an_output_is_gone_on_with(served: ServedModel) -> None:
    found = served.complete(schema.CompleteRequest(x="greet Ada", prefix="print(", k=2))
    assert 0 < len(found) <= 2
    assert all(each.probability and 0 <= each.probability <= 1 for each in found)
    assert found[0].text.startswith(found[0].token)


def test_inputs_must_have_the_models_fields() -> None:
    cards = plain(pairs())
    with pytest.raises(FieldError, match="expected an input with the fields title, text") as caught:
        cards.predict(schema.PredictRequest(inputs=[{"title": "a", "text": "b"}, "card 1"]))
    assert caught.value.field == "inputs.1"
    with pytest.raises(FieldError, match="expected an input with the fields title, text"):
        cards.add([greeting("Ada")])


@pytest.mark.parametrize("asked", ["who is on call?", "Who is on call", "WHO IS  ON CALL!"])
def test_an_added_pair_is_answered_as_it_was_added(tmp_path: Path, asked: str) -> None:
    shopkeeper().save(tmp_path / "model")
    first = ServedModel.open("shop", tmp_path / "model")
    second = ServedModel.open("shop", tmp_path / "model")
    first.add([Example({"text": "who is on call?"}, "SELECT 'old'")])
    first.add([Example({"text": "who is on call?"}, "SELECT name FROM agents")])
    assert second.refresh()
    for served in (first, second):
        [[answer, other]] = served.predict(schema.PredictRequest(inputs=[asked], k=2))
        assert answer.output == "SELECT name FROM agents"
        assert other.output == "SELECT 'old'"


def test_added_examples_are_retrieved_and_removed_ones_are_not(tmp_path: Path) -> None:
    cards = plain(pairs(), tmp_path / "model")
    new = Example({"title": "lamp", "text": "light"}, "light()", {"deck": 7})
    asked = schema.RetrieveRequest(inputs=[dict(new.x)], k=1)
    assert cards.add([new]) == 1
    assert cards.retrieve(asked)[0][0].y == "light()"
    assert len(RetrieveAndEdit.load(tmp_path / "model").retriever.examples) == 4
    assert cards.example(new.identity).meta == {"deck": 7}
    assert cards.remove([new.identity]) == 1
    assert cards.retrieve(asked)[0][0].y != "light()"
    with pytest.raises(NoAnswerError, match="no example has this id; it may have been removed"):
        cards.example(new.identity)
    assert cards.remove([], {"deck": 1}) == 1
    assert len(RetrieveAndEdit.load(tmp_path / "model").retriever.examples) == 2
    with pytest.raises(PairsError, match="at least one must stay"):
        cards.remove([], {"deck": 0})


def test_changes_of_another_program_are_kept_by_the_next_change(tmp_path: Path) -> None:
    cards = plain(pairs(), tmp_path / "model")
    other = RetrieveAndEdit.load(tmp_path / "model")
    RetrieveAndEdit(other.retriever.remove([0]), other.editor).save(tmp_path / "model")
    lamp = Example({"title": "lamp", "text": "light"}, "light()")
    cards.add([lamp])
    expected = [example.identity for example in (*pairs()[1:], lamp)]
    for model in (cards.model, RetrieveAndEdit.load(tmp_path / "model")):
        assert [example.identity for example in model.retriever.examples] == expected


def test_a_refresh_adopts_the_changes_of_another_program(tmp_path: Path) -> None:
    plain(pairs(), tmp_path / "model")
    cards = ServedModel.open("cards", tmp_path / "model")
    assert not cards.is_outdated
    assert not cards.refresh()
    other = RetrieveAndEdit.load(tmp_path / "model")
    RetrieveAndEdit(other.retriever.remove([0]), other.editor).save(tmp_path / "model")
    assert cards.is_outdated
    assert cards.refresh()
    assert len(cards.model.retriever.examples) == 2
    assert not cards.refresh()


def test_a_buffer_needs_a_model_of_functions(tmp_path: Path) -> None:
    text = "def area(side):\n    "
    request = schema.CompleteRequest(text=text, offset=len(text))
    with pytest.raises(PairsError, match="cannot complete a Python buffer"):
        plain(pairs()).complete(request)
    (tmp_path / "shapes.py").write_text("def area(side):\n    return side * side\n")
    functions = [each for found in Project.read([tmp_path]).files.values() for each in found]
    shapes = plain(functions)
    assert shapes.info().completes_python
    [found] = shapes.complete(request)
    assert found.text == "return side * side"
    assert (found.probability or 0) > 0.5


def test_a_project_takes_the_place_of_the_examples(tmp_path: Path) -> None:
    (tmp_path / "shapes.py").write_text("def area(side):\n    return side * side\n")
    project = Project.read([tmp_path])
    shapes = plain([each for found in project.files.values() for each in found])
    assert shapes.index(project) == 0
    (tmp_path / "shapes.py").write_text("def edge(area):\n    return area ** 0.5\n")
    assert shapes.index(Project.read([tmp_path])) == 2
    assert [each.x["name"] for each in shapes.model.retriever.examples] == ["edge"]


def test_the_map_has_a_point_for_each_example(served: ServedModel) -> None:
    found = served.map()
    assert len(found.points) == found.examples == 10
    assert {point.label for point in found.points} == {
        each.x["text"] for each in served.model.retriever.examples
    }
    assert plain(pairs(1)).map().points == []


def test_an_id_that_duplicates_share_removes_them_all() -> None:
    cards = plain(pairs())
    lamp = Example({"title": "lamp", "text": "light"}, "light()", {"deck": 7})
    cards.add([lamp, Example(lamp.x, lamp.y, {"deck": 8})])
    assert cards.remove([lamp.identity]) == 2
    with pytest.raises(NoAnswerError, match="no example has this id"):
        cards.example(lamp.identity)


def test_fields_are_taken_in_the_models_order_whatever_that_of_the_request() -> None:
    cards = plain(pairs())
    turned = {"text": "light", "title": "lamp"}
    cards.add([Example(turned, "light()")])
    cards.remove([each.identity for each in pairs()])
    assert cards.info().fields == ["title", "text"]
    assert list(cards.model.retriever.examples[0].x) == ["title", "text"]
    for x in (turned, {"title": "lamp", "text": "light"}):
        assert cards.retrieve(schema.RetrieveRequest(inputs=[x]))[0][0].distance == 0
