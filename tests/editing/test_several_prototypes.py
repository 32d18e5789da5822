"""Several prototypes read side by side, by an editor that learned to pick a word of one of them."""

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from redraft import Example, RetrieveAndEdit
from redraft.config import override
from redraft.editing.neural_editor import DecodingConfig, NeuralEditor
from redraft.retrieval.lexical import LexicalRetriever
from redraft.retrieval.prototype import Prototype
from redraft.training.prototypes import Draws, PrototypeSource
from redraft.training.train_editor import EditorConfig, train_editor
from tests.greetings import NAMES, settings

WHICH = ("first", "second")


def asked(which: str, name: str) -> Example:
    return Example({"text": f"take the {which}"}, f"pick {name}")


def named(name: str) -> Example:
    return Example({"text": "name"}, name)


def pair(one: str, other: str) -> list[Prototype]:
    return [Prototype(named(one), 0.0), Prototype(named(other), 0.5, -5.0)]


class Pairs(PrototypeSource):
    """The prototypes of an example: its name and the next one, in the order that it asks for."""

    def draw(self, rows: Sequence[int], *, seed: int) -> Draws:  # noqa: ARG002
        drawn = []
        for row in rows:
            own, other = named(NAMES[row]), named(NAMES[row - 1])
            drawn.append([own, other] if row % 2 == 0 else [other, own])
        return drawn


@cache
def picker() -> NeuralEditor:
    """An editor that reads two prototypes; tests share it and must not change it."""
    examples = [asked(WHICH[at % 2], name) for at, name in enumerate(NAMES)]
    config = override(EditorConfig(), settings(120)["editor"], where="test")
    config = override(config, {"numbering": {"prototypes": 2}}, where="test")
    with TemporaryDirectory() as folder:
        return train_editor(examples, Pairs(), config, judge=lambda _: {}, folder=Path(folder))


@pytest.mark.parametrize("which", WHICH)
def test_an_unknown_word_is_copied_from_the_prototype_that_is_asked_for(which: str) -> None:
    found = pair("Zorblax", "Quux42")
    ((best,),) = picker().edit([{"text": f"take the {which}"}], [found])
    chosen = found[WHICH.index(which)]
    assert best.output == f"pick {chosen.example.y}"
    assert best.provenance[-1].origin == "prototype"
    assert best.prototype == chosen


def test_a_word_of_the_second_cannot_come_out_where_only_the_first_is_read() -> None:
    editor = picker()
    for found, is_possible in ((pair("Zorblax", "Quux42"), True), (pair("Zorblax", ""), False)):
        draft = editor.begin({"text": "take the second"}, found)
        tokens = [each.token for each in draft.complete("pick", k=10_000)]
        assert ("Quux42" in tokens) is is_possible


def test_fewer_prototypes_than_are_read_are_as_if_the_others_were_empty() -> None:
    editor = picker()
    x = {"text": "take the first"}
    (one, _), nothing = pair("Zorblax", ""), Prototype(Example({"text": ""}, ""), 1.0, -math.inf)
    for found, padded in (([one], [one, nothing]), ([], [nothing, nothing])):
        few, full = editor.question(x, found), editor.question(x, padded)
        assert few.edits == full.edits
        for (candidate,), (other,) in zip(
            editor.edit([x], [found]), editor.edit([x], [padded]), strict=True
        ):
            assert (candidate.output, candidate.log_prob) == (other.output, other.log_prob)
    ((alone,),) = editor.edit([x], [[]])
    assert alone.prototype is None


def test_prototypes_are_read_in_groups_and_groups_are_mixed() -> None:
    editor = picker().with_decoding(DecodingConfig(max_length=10, prototypes=2))
    assert editor.wants(1) == 4
    found = [*pair("Zorblax", "Quux42"), *pair("Frob", "Blub")]
    question = editor.question({"text": "take the second"}, [*found, *found])
    assert question.groups == [found[:2], found[2:]]
    assert question.log_weights == pytest.approx([0.006715, 0.006715], abs=1e-5)  # log(1 + e^-5)
    assert question.unknown == ["Zorblax", "Quux42", "Frob", "Blub"]
    three = editor.question({"text": "take the second"}, found[:3])
    assert [len(group) for group in three.groups] == [2, 1]
    ranked = editor.edit([{"text": "take the second"}], [found], k=2)[0]
    assert {each.output: each.prototype for each in ranked} == {
        "pick Quux42": found[1],
        "pick Blub": found[3],
    }


def test_a_saved_editor_reads_as_many_prototypes(tmp_path: Path) -> None:
    retriever = LexicalRetriever.build([named("Zorblax"), named("Quux42")])
    model = RetrieveAndEdit(retriever, picker())
    model.save(tmp_path / "model")
    loaded = RetrieveAndEdit.load(tmp_path / "model")
    assert isinstance(loaded.editor, NeuralEditor)
    assert loaded.editor.numbering.config.prototypes == loaded.editor.wants(1) == 2
    texts = [f"take the {which}" for which in WHICH]
    assert loaded.predict(texts, k=3) == model.predict(texts, k=3)
