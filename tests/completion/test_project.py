"""Indexing a code base: unchanged files, updates and removals."""

from pathlib import Path

import pytest

from redraft.completion.project import IndexChange, Project, index_project
from redraft.errors import PairsError
from redraft.mining.python_functions import find_sources
from redraft.model import RetrieveAndEdit
from tests.baskets import basket_model, method, source, write_project
from tests.greetings import greeter

OTHERS = ("zinnia", "yucca", "xenia", "wisteria")


@pytest.fixture
def model(tmp_path_factory: pytest.TempPathFactory) -> RetrieveAndEdit:
    return basket_model(tmp_path_factory.getbasetemp())


def names(model: RetrieveAndEdit) -> list[str]:
    return sorted(each.x["name"] for each in model.retriever.examples)


def test_the_examples_of_a_model_are_exchanged_for_those_of_a_project(
    model: RetrieveAndEdit, tmp_path: Path
) -> None:
    project = Project.read([write_project(tmp_path / "shop", OTHERS)])
    pointed, change = index_project(model, project)
    assert names(pointed) == sorted(f"add_{noun}" for noun in OTHERS)
    assert (len(change.rows), len(change.examples)) == (len(model.retriever.examples), 4)
    assert pointed.editor is model.editor
    (best,) = pointed.retriever.retrieve([{"docstring": "", "name": "yucca", "arguments": ""}])[0]
    assert best.example.meta["file"] == "basket_0.py"


def test_a_changed_file_exchanges_its_own_examples_and_no_others(
    model: RetrieveAndEdit, tmp_path: Path
) -> None:
    folder = write_project(tmp_path / "shop", OTHERS)
    pointed, _ = index_project(model, Project.read([folder]))
    (folder / "basket_0.py").write_text(source(("zinnia", "violet", "tulip")))
    (folder / "new.py").write_text("def undocumented():\n    return 1\n")
    again, change = index_project(pointed, Project.read([folder]))
    assert [each.x["name"] for each in change.examples] == [
        "add_zinnia",
        "add_violet",
        "add_tulip",
        "undocumented",
    ]
    assert len(change.rows) == 2
    assert set(names(again)) - set(names(pointed)) == {"add_violet", "add_tulip", "undocumented"}
    (folder / "basket_2.py").unlink()
    smaller, change = index_project(again, Project.read([folder]))
    assert set(names(again)) - set(names(smaller)) == {"add_xenia", "add_wisteria"}
    assert change.examples == []


def test_an_unchanged_project_is_the_same_model(model: RetrieveAndEdit, tmp_path: Path) -> None:
    project = Project.read([write_project(tmp_path / "shop", OTHERS)])
    pointed, _ = index_project(model, project)
    again, change = index_project(pointed, project)
    assert again is pointed
    assert change == IndexChange([], [])


def test_unreadable_files_are_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    folder = write_project(tmp_path / "shop", OTHERS)
    (folder / "old.py").write_text("print 1\n")
    project = Project.read([folder])
    assert [bad.file for bad in project.skipped] == ["old.py"]
    assert len(project.files) == 2


def test_a_project_without_functions_is_an_error(model: RetrieveAndEdit, tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text('"""Nothing yet."""\n')
    with pytest.raises(PairsError, match="no function with a body was found; give a folder"):
        index_project(model, Project.read([tmp_path]))


def test_a_model_of_other_pairs_cannot_be_pointed_at_code(tmp_path: Path) -> None:
    project = Project.read([write_project(tmp_path, OTHERS)])
    with pytest.raises(PairsError, match="input has the fields text; a code base needs a model of"):
        index_project(greeter(), project)


def test_new_functions_are_borrowed_from(model: RetrieveAndEdit, tmp_path: Path) -> None:
    from redraft.completion.engine import CompletionEngine

    pointed, _ = index_project(model, Project.read([write_project(tmp_path, OTHERS)]))
    text = method("yuccas").removesuffix("return self.put(yuccas)\n")
    best = CompletionEngine(pointed).complete(text, len(text))[0]
    assert best.prototype is not None
    assert best.prototype.example.meta["file"] in ("basket_0.py", "basket_2.py")


def test_only_what_is_named_is_read_again(tmp_path: Path) -> None:
    folder = write_project(tmp_path / "shop", OTHERS)
    project = Project.read([folder])
    (folder / "basket_0.py").write_text(source(("zinnia",)))
    (folder / "basket_2.py").write_text(source(("violet",)))
    changed, other = find_sources([folder])
    updated = project.updated([changed])
    assert [each.x["name"] for each in updated.files["basket_0.py"]] == ["add_zinnia"]
    assert updated.files["basket_2.py"] is project.files["basket_2.py"]
    assert list(updated.updated([], removed=["basket_0.py"]).files) == ["basket_2.py"]
    assert updated.updated([other]) == Project.read([folder])


def test_a_file_that_no_longer_parses_keeps_its_functions(tmp_path: Path) -> None:
    folder = write_project(tmp_path / "shop", OTHERS[:2])
    project = Project.read([folder])
    (folder / "basket_0.py").write_text("def half(:\n")
    broken = project.updated(find_sources([folder]))
    assert broken.files == project.files
    assert [bad.file for bad in broken.skipped] == ["basket_0.py"]
    assert broken.updated(find_sources([folder])).skipped == broken.skipped
    (folder / "basket_0.py").write_text(source(("violet",)))
    repaired = broken.updated(find_sources([folder]))
    assert repaired.skipped == []
    assert [each.x["name"] for each in repaired.files["basket_0.py"]] == ["add_violet"]
