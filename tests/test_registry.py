"""Names to classes: for users any class, for a model directory only what may be imported."""

import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from redraft import RetrieveAndEdit
from redraft.editing.base import Editor, VerbatimEditor
from redraft.editing.neural import NeuralEditor
from redraft.errors import ConfigError, ModelError
from redraft.registry import ALLOWED, BUILT_IN, find_part, find_saved_part, saved_name
from redraft.retrieval.base import NoRetriever, Retriever
from redraft.retrieval.bow import BowRetriever
from redraft.retrieval.dense import TaskRetriever
from redraft.storage.artifact_writer import write_artifact
from redraft.types import Example
from tests.greetings import greeter

HERE = f"{__name__}:Reversed"


class Reversed(BowRetriever):
    """A retriever that a user has written."""

    name = "reversed"


class Needy(VerbatimEditor):
    """An editor that cannot be built without knowing how."""

    name = "needy"

    def __init__(self, words: int) -> None:
        self.words = words


class Fitted(Needy):
    """An editor that learns from the examples and the retriever."""

    name = "fitted"

    @classmethod
    def fit(cls, examples: Sequence[Example], retriever: Retriever) -> "Fitted":
        return cls(len(examples) + len(retriever.examples))


@pytest.mark.parametrize("kind", BUILT_IN)
def test_every_built_in_part_is_found_and_saved_under_its_name(kind: str) -> None:
    for name in BUILT_IN[kind]:
        part = find_part(kind, name)
        assert part is find_saved_part(kind, name)
        assert saved_name(kind, part) == part.name == name


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("psychic", "no retriever is called 'psychic'; choose one of: bow, bm25"),
        ("no_such_package:A", "cannot be imported (ModuleNotFoundError: No module named"),
        ("os:environ", "os:environ: is not a subclass of redraft.retrieval.base.Retriever"),
        ("os:nothing", "os:nothing: cannot be imported (AttributeError:"),
        (":", "cannot be imported (ValueError:"),
        ("redraft.retrieval.base:Retriever", "lacks the retriever methods add, load, remove"),
        ("redraft.editing.base:VerbatimEditor", "is not a subclass of redraft.retrieval"),
    ],
)
def test_a_part_that_cannot_be_used_is_one_line(name: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        find_part("retriever", name)
    assert message in str(caught.value)


def test_a_class_or_an_instance_is_fitted_like_a_name(examples: list[Example]) -> None:
    by_name = RetrieveAndEdit.fit(examples, retriever="lexical", editor="verbatim")
    for retriever in (BowRetriever, Reversed, Reversed.build([]), Reversed.build(examples[:3])):
        model = RetrieveAndEdit.fit(examples, retriever=retriever, editor=VerbatimEditor)
        assert list(model.retriever.examples) == examples
        assert model.predict([examples[7].x])[0][0] == by_name.predict([examples[7].x])[0][0]
    editor = VerbatimEditor()
    assert RetrieveAndEdit.fit(examples, retriever=NoRetriever, editor=editor).editor is editor


def test_a_trained_editor_can_be_given_as_an_instance(examples: list[Example]) -> None:
    trained = greeter().editor
    assert isinstance(trained, NeuralEditor)
    model = RetrieveAndEdit.fit(examples, retriever="lexical", editor=trained)
    assert model.editor is trained
    assert len(model.retriever.examples) == len(examples)


def test_an_editor_class_is_fitted_or_built(examples: list[Example]) -> None:
    model = RetrieveAndEdit.fit(examples, retriever="none", editor=Fitted)
    assert isinstance(model.editor, Fitted)
    assert model.editor.words == 2 * len(examples)
    with pytest.raises(ConfigError, match=r"Needy: cannot be built; give it a classmethod fit"):
        RetrieveAndEdit.fit(examples, retriever="none", editor=Needy)


@pytest.mark.parametrize("part", [Editor, TaskRetriever, 3])
def test_a_wrong_class_or_instance_is_refused(part: object, examples: list[Example]) -> None:
    with pytest.raises(ConfigError, match=r"lacks the editor methods|not a subclass of redraft"):
        RetrieveAndEdit.fit(examples, retriever="none", editor=part)  # type: ignore[arg-type]


def test_a_class_of_this_program_is_saved_and_loaded(
    examples: list[Example], tmp_path: Path
) -> None:
    model = RetrieveAndEdit.fit(examples, retriever=Reversed, editor="verbatim")
    model.save(tmp_path / "model")
    assert type(RetrieveAndEdit.load(tmp_path / "model").retriever) is Reversed


def test_a_class_without_a_name_in_its_module_is_not_saved(
    examples: list[Example], tmp_path: Path
) -> None:
    class Local(BowRetriever):
        name = "local"

    model = RetrieveAndEdit.fit(examples, retriever=Local, editor="verbatim")
    with pytest.raises(ConfigError, match="define the class at the top level of a module"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def saved_with(reference: str, folder: Path, examples: list[Example]) -> Path:
    """Save a model whose settings name another retriever, with a manifest that fits them."""
    RetrieveAndEdit.fit(examples, retriever="none", editor="verbatim").save(folder)
    files = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.*")}
    settings = next(text for text in files.values() if b"[retriever]" in text).decode()
    assert tomllib.loads(settings)["retriever"] == {"name": "none"}
    with write_artifact(folder) as staging:
        (staging / "model.toml").write_text(settings.replace('"none"', f'"{reference}"'))
        lines = next(text for text in files.values() if text.startswith(b'{"x"'))
        (staging / "examples.jsonl").write_bytes(lines)
    return folder


def test_loading_imports_no_module_that_the_model_names(
    examples: list[Example], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "from redraft.retrieval.base import NoRetriever\nclass Bad(NoRetriever): name = 'bad'\n"
    (tmp_path / "freely_named.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    folder = saved_with("freely_named:Bad", tmp_path / "model", examples)
    with pytest.raises(ModelError) as caught:
        RetrieveAndEdit.load(folder)
    assert str(caught.value).startswith(f"{folder}")
    assert f"set {ALLOWED}=freely_named:Bad or import its module first" in str(caught.value)
    assert "freely_named" not in sys.modules
    monkeypatch.setenv(ALLOWED, "other:Part, freely_named:Bad")
    try:
        assert RetrieveAndEdit.load(folder).retriever.name == "bad"
        monkeypatch.delenv(ALLOWED)
        assert RetrieveAndEdit.load(folder).retriever.name == "bad"  # it is imported now
    finally:
        sys.modules.pop("freely_named", None)


@pytest.mark.parametrize(
    "reference",
    [
        "os:system",
        "redraft:Client",
        "redraft.retrieval.base:Retriever",
        "psychic",
        ":",
        "os:",
        "…:…",
    ],
)
def test_a_saved_reference_to_anything_else_is_refused(reference: str) -> None:
    with pytest.raises(ConfigError):
        find_saved_part("retriever", reference)
