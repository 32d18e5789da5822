"""An editor that reads two prototypes together and learned to copy from one of them."""

import math
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from redraft import Example, RetrieveAndEdit
from redraft.config.toml import override
from redraft.editing.decoding import DecodingConfig
from redraft.editing.neural import NeuralEditor
from redraft.models import edit_network
from redraft.retrieval.bow import BowRetriever
from redraft.training.editor_config import EditorConfig
from redraft.training.editor_task import train_editor
from redraft.training.prototype_sampling import Draws, PrototypeSource
from redraft.types import Prototype
from tests.greetings import NAMES, settings

WHICH = ("first", "second")


def asked(which: str, name: str) -> Example:
    return Example({"text": f"take the {which}"}, f"pick {name}")


def named(name: str) -> Example:
    return Example({"text": "name"}, name)


def pair(one: str, other: str) -> list[Prototype]:
    return [Prototype(named(one), 0.0), Prototype(named(other), 0.5, -5.0)]


class Pairs(PrototypeSource):
    """Gives each example two prototypes, its own name first or second as its input says."""

    def draw(self, rows: Sequence[int], *, seed: int) -> Draws:  # noqa: ARG002
        drawn = []
        for row in rows:
            own, other = named(NAMES[row]), named(NAMES[row - 1])
            drawn.append([own, other] if row % 2 == 0 else [other, own])
        return drawn


@pytest.fixture(scope="module", autouse=True)
def _two_slots() -> Iterator[None]:
    """Share two slots among all OOV words: the training examples have no more than two."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edit_network, "OOV_SLOTS", 2)
        yield


@cache
def picker() -> NeuralEditor:
    """Train an editor that reads two prototypes; tests share it and must not change it."""
    examples = [asked(WHICH[at % 2], name) for at, name in enumerate(NAMES)]
    config = override(EditorConfig(), settings(120)["editor"], where="test")
    config = override(config, {"encoding": {"prototypes": 2}}, where="test")
    with TemporaryDirectory() as folder:
        return train_editor(examples, Pairs(), config, validate=lambda _: {}, folder=Path(folder))


@pytest.mark.parametrize("which", WHICH)
def test_an_oov_word_is_copied_from_the_requested_prototype(which: str) -> None:
    found = pair("Zorblax", "Quux42")
    ((best,),) = picker().edit([{"text": f"take the {which}"}], [found])
    chosen = found[WHICH.index(which)]
    assert best.output == f"pick {chosen.example.y}"
    assert best.provenance[-1].origin == "prototype"
    assert best.prototype == chosen


def test_a_word_of_the_second_prototype_is_impossible_without_it() -> None:
    editor = picker()
    for found, is_possible in ((pair("Zorblax", "Quux42"), True), (pair("Zorblax", ""), False)):
        session = editor.start_session({"text": "take the second"}, found)
        tokens = [each.token for each in session.complete("pick", k=10_000)]
        assert ("Quux42" in tokens) is is_possible


def test_missing_prototypes_are_encoded_as_empty_ones() -> None:
    editor = picker()
    x = {"text": "take the first"}
    (one, _), nothing = pair("Zorblax", ""), Prototype(Example({"text": ""}, ""), 1.0, -math.inf)
    for found, padded in (([one], [one, nothing]), ([], [nothing, nothing])):
        few, full = editor.editor_input(x, found), editor.editor_input(x, padded)
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
    editor_input = editor.editor_input({"text": "take the second"}, [*found, *found])
    assert editor_input.groups == [found[:2], found[2:]]
    assert editor_input.log_weights == pytest.approx(
        [0.006715, 0.006715], abs=1e-5
    )  # log(1 + e^-5)
    assert editor_input.oovs == ["Zorblax", "Quux42", "Frob", "Blub"]
    three = editor.editor_input({"text": "take the second"}, found[:3])
    assert [len(group) for group in three.groups] == [2, 1]
    ranked = editor.edit([{"text": "take the second"}], [found], k=2)[0]
    assert {each.output: each.prototype for each in ranked} == {
        "pick Quux42": found[1],
        "pick Blub": found[3],
    }


def test_a_saved_editor_reads_as_many_prototypes(tmp_path: Path) -> None:
    retriever = BowRetriever.build([named("Zorblax"), named("Quux42")])
    model = RetrieveAndEdit(retriever, picker())
    model.save(tmp_path / "model")
    loaded = RetrieveAndEdit.load(tmp_path / "model")
    assert isinstance(loaded.editor, NeuralEditor)
    assert loaded.editor.encoding.config.prototypes == loaded.editor.wants(1) == 2
    texts = [f"take the {which}" for which in WHICH]
    assert loaded.predict(texts, k=3) == model.predict(texts, k=3)
