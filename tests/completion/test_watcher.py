"""The file watcher: re-reading, removals and notifications."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from redraft.completion import project as project_module
from redraft.completion.project import Project, mine_all
from redraft.completion.watcher import Watcher
from redraft.errors import PairsError
from redraft.mining.python_functions import Source
from redraft.server.served_model import ServedModel
from tests.baskets import source, write_project
from tests.server.functions import served_functions

NOUNS = ("zinnia", "yucca", "xenia", "wisteria")
DEADLINE = 20.0


def names(project: Project) -> list[str]:
    return sorted(each.x["name"] for found in project.files.values() for each in found)


class Notified(list[list[str]]):
    """The names of all functions, each time that something changed."""

    def __call__(self, project: Project) -> None:
        self.append(names(project))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_project(tmp_path / "shop", NOUNS)


@pytest.fixture
def notified() -> Notified:
    return Notified()


@pytest.fixture
def watcher(folder: Path, notified: Notified) -> Watcher:
    watcher = Watcher([folder], notified, without=["tests"], debounce_ms=10)
    watcher.read()
    return watcher


@pytest.fixture
def read(watcher: Watcher, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that were read since."""
    assert watcher.project.files
    found: list[str] = []

    def mine_and_note(source: Source) -> object:
        found.append(source.name)
        return mine_all(source)

    monkeypatch.setattr(project_module, "mine_all", mine_and_note)
    return found


def test_only_the_file_that_changed_is_read_again(
    folder: Path, watcher: Watcher, notified: Notified, read: list[str]
) -> None:
    (folder / "basket_0.py").write_text(source(("violet",)))
    assert watcher.update([folder / "basket_0.py"])
    assert read == ["basket_0.py"]
    assert notified == [["add_violet", "add_wisteria", "add_xenia"]]


def test_a_file_that_was_only_saved_changes_nothing(
    folder: Path, watcher: Watcher, notified: Notified, read: list[str]
) -> None:
    assert not watcher.update([folder / "basket_0.py"])
    assert read == ["basket_0.py"]
    assert notified == []


def test_new_files_come_and_deleted_ones_go(
    folder: Path, watcher: Watcher, notified: Notified, read: list[str]
) -> None:
    (folder / "fresh.py").write_text(source(("violet",)))
    (folder / "basket_2.py").unlink()
    assert watcher.update([folder / "fresh.py", folder / "basket_2.py"])
    assert read == ["fresh.py"]
    assert notified == [["add_violet", "add_yucca", "add_zinnia"]]
    (folder / "fresh.py").unlink()
    assert watcher.update([folder / "fresh.py"])
    assert notified[-1] == ["add_yucca", "add_zinnia"]


def test_a_folder_that_is_moved_takes_its_files_along(
    folder: Path, watcher: Watcher, notified: Notified, read: list[str]
) -> None:
    write_project(folder / "inner", ("violet",))
    assert watcher.update([folder / "inner"])
    (folder / "inner").rename(folder / "other")
    assert watcher.update([folder / "inner", folder / "other"])
    assert read == ["inner/basket_0.py", "other/basket_0.py"]
    assert notified[0] == notified[1]
    assert "other/basket_0.py" in watcher.project.files
    assert "inner/basket_0.py" not in watcher.project.files


def test_a_file_that_does_not_parse_keeps_its_functions(
    folder: Path, watcher: Watcher, notified: Notified, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "basket_0.py").write_text("def half(:\n")
    with caplog.at_level(logging.INFO, logger="redraft"):
        assert not watcher.update([folder / "basket_0.py"])
        assert not watcher.update([folder / "basket_0.py"])
    assert notified == []
    assert len(caplog.messages) == 1  # logged once
    assert caplog.messages[0].startswith("basket_0.py:1: not Python 3: ")
    assert caplog.messages[0].endswith("; keeping its previous functions")
    (folder / "basket_0.py").write_text(source(("violet",)))
    assert watcher.update([folder / "basket_0.py"])


def test_a_project_that_becomes_empty_keeps_the_examples_and_says_so(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    served = served_functions(folder)
    watcher = Watcher([folder], served.index)
    watcher.read()
    for path in folder.glob("*.py"):
        path.unlink()
    assert not watcher.update([folder / "basket_0.py", folder / "basket_2.py"])
    assert caplog.messages == [f"{folder}: no function with a body is left; keeping the examples"]
    assert len(served.model.retriever.examples) == len(NOUNS)
    (folder / "fresh.py").write_text(source(("violet",)))
    assert watcher.update([folder / "fresh.py"])
    assert [each.x["name"] for each in served.model.retriever.examples] == ["add_violet"]


def test_a_folder_that_is_deleted_is_an_empty_project(
    folder: Path, watcher: Watcher, caplog: pytest.LogCaptureFixture
) -> None:
    for path in folder.glob("*.py"):
        path.unlink()
    folder.rmdir()
    assert not watcher.update([folder])
    assert "no function with a body is left" in caplog.text


@pytest.mark.parametrize(
    "place", ["tests/a.py", ".hidden/a.py", "__pycache__/a.py", "notes.txt", "../elsewhere.py"]
)
def test_skipped_folders_are_never_read(
    folder: Path, watcher: Watcher, read: list[str], place: str
) -> None:
    path = folder / place
    path.parent.mkdir(exist_ok=True)
    path.write_text(source(("violet",)))
    assert not watcher.update([path])
    assert read == []


def test_files_of_one_name_in_two_folders_are_kept_apart(
    tmp_path: Path, notified: Notified
) -> None:
    first = write_project(tmp_path / "first", ("zinnia",))
    second = write_project(tmp_path / "second", ("yucca",))
    watcher = Watcher([first, second], notified)
    assert names(watcher.read()) == ["add_yucca", "add_zinnia"]
    (first / "basket_0.py").write_text(source(("violet",)))
    assert watcher.update([first / "basket_0.py"])
    (second / "basket_0.py").unlink()
    assert watcher.update([second / "basket_0.py"])
    assert notified == [["add_violet", "add_yucca"], ["add_violet"]]


def test_a_change_that_cannot_be_applied_is_logged(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_: Project) -> None:
        raise refusal

    watcher = Watcher([folder], refuse)
    watcher.read()
    for refusal, message in (
        (PairsError("the model is of cards"), "the model is of cards"),
        (RuntimeError("def secret"), "cannot apply a file change: RuntimeError"),
    ):
        (folder / "basket_0.py").write_text(source((type(refusal).__name__,)))
        assert not watcher.update([folder / "basket_0.py"])
        assert caplog.messages[-1] == message


def test_invalid_paths_do_not_block_others(
    folder: Path, watcher: Watcher, notified: Notified
) -> None:
    (folder / "basket_0.py").write_text(source(("violet",)))
    assert watcher.update([Path("/a\0b/c.py"), folder / "a\0b.py", folder / "basket_0.py"])
    assert "add_violet" in notified[-1]


def test_changes_during_a_folders_deletion_are_read_with_the_next_change(
    folder: Path, watcher: Watcher, notified: Notified, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "basket_0.py").write_text(source(("violet",)))
    (folder / "new.py").write_text(source(("tulip",)))

    def find(*_: object, **__: object) -> list[Source]:
        raise FileNotFoundError(2, "No such file or directory", "gone")

    with monkeypatch.context() as patch:
        patch.setattr("redraft.completion.watcher.sources_of", find)
        assert not watcher.update([folder / "basket_0.py", folder / "new.py"])
    assert watcher.update([folder / "gone"])
    assert {"add_violet", "add_tulip"} < set(notified[-1])
    assert not watcher.update([folder / "gone"])


def test_a_path_that_is_not_there_is_an_error(tmp_path: Path, notified: Notified) -> None:
    with pytest.raises(PairsError, match="missing: no such file or folder; name sources"):
        Watcher([tmp_path / "missing"], notified).read()


@pytest.mark.asyncio
async def test_a_served_model_follows_the_files_until_stopped(folder: Path) -> None:
    served = served_functions(folder)
    watcher = Watcher([folder], served.index, debounce_ms=10)
    stop = asyncio.Event()
    watching = asyncio.create_task(watcher.run(stop))
    watcher.read()
    end, at = time.monotonic() + DEADLINE, 0
    while "add_violet" not in names_of(served):
        at += 1  # changes before the watch has started may be missed
        (folder / "basket_0.py").write_text(source(("violet", f"number_{at}")))
        assert time.monotonic() < end
        await asyncio.sleep(0.02)
    (folder / "basket_2.py").unlink()
    while "add_xenia" in names_of(served):
        assert time.monotonic() < end
        await asyncio.sleep(0.02)
    stop.set()
    await asyncio.wait_for(watching, DEADLINE)


@pytest.mark.asyncio
async def test_a_file_is_followed_also_after_an_editor_has_replaced_it(
    tmp_path: Path, notified: Notified
) -> None:
    path = tmp_path / "basket.py"
    path.write_text(source(("zinnia",)))
    watcher = Watcher([path], notified, debounce_ms=10)
    stop = asyncio.Event()
    watching = asyncio.create_task(watcher.run(stop))
    watcher.read()
    end, at = time.monotonic() + DEADLINE, 0
    for noun in ("yucca", "xenia", "wisteria"):
        while not (notified and f"add_{noun}" in notified[-1]):
            at += 1  # changes before the watch has started may be missed
            (tmp_path / "basket.new").write_text(source((noun, f"number_{at}")))
            (tmp_path / "basket.new").replace(path)
            assert time.monotonic() < end
            await asyncio.sleep(0.1)
    stop.set()
    await asyncio.wait_for(watching, DEADLINE)


def names_of(served: ServedModel) -> set[str]:
    return {each.x["name"] for each in served.model.retriever.examples}


@pytest.mark.asyncio
async def test_folders_that_cannot_be_watched_are_logged(
    watcher: Watcher, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def too_many(*_: object, **__: object) -> AsyncIterator[set[object]]:
        raise OSError("OS file watch limit reached.")
        yield set()

    monkeypatch.setattr("watchfiles.awatch", too_many)
    await watcher.run(asyncio.Event())
    message = "cannot watch for file changes: OS file watch limit reached."
    assert caplog.messages == [message]
