"""A model directory is whole, checked, and replaced in one step."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from redraft.artifact import MANIFEST, open_artifact, write_artifact
from redraft.errors import ModelError


def write(folder: Path, **files: str) -> None:
    with write_artifact(folder) as staging:
        (staging / "part").mkdir()
        for name, text in files.items():
            (staging / "part" / f"{name}.txt").write_text(text)


def read(folder: Path) -> dict[str, str]:
    files = open_artifact(folder).part("part").files
    return {name: path.read_text() for name, path in files.items()}


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    write(tmp_path / "model", a="one", b="two")
    assert read(tmp_path / "model") == {"a.txt": "one", "b.txt": "two"}


def test_a_new_version_replaces_the_old_and_leaves_nothing_of_it(tmp_path: Path) -> None:
    write(tmp_path / "model", a="one", b="two")
    write(tmp_path / "model", a="three")
    assert read(tmp_path / "model") == {"a.txt": "three"}
    stored = [path for path in (tmp_path / "model").rglob("*") if path.is_file()]
    assert len(stored) == 2  # the manifest and one file


def test_an_error_while_writing_leaves_the_old_model(tmp_path: Path) -> None:
    write(tmp_path / "model", a="one")
    with pytest.raises(IsADirectoryError), write_artifact(tmp_path / "model") as staging:
        staging.write_text("a folder cannot be written as a file")
    assert read(tmp_path / "model") == {"a.txt": "one"}
    assert [path.name for path in (tmp_path / "model").iterdir() if path.name[0] == "."] == []


def test_an_error_while_writing_the_first_model_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), write_artifact(tmp_path / "model"):
        raise ZeroDivisionError
    assert not (tmp_path / "model").exists()


def test_files_in_folders_of_folders_are_kept(tmp_path: Path) -> None:
    with write_artifact(tmp_path / "model") as staging:
        (staging / "a" / "b").mkdir(parents=True)
        (staging / "a" / "b" / "c.txt").write_text("deep")
    nested = open_artifact(tmp_path / "model").part("a").part("b")
    assert nested.path("c.txt").read_text() == "deep"


KILLED_WRITER = """
import os, signal, sys
from pathlib import Path
import redraft.artifact as artifact
step, folder = int(sys.argv[1]), Path(sys.argv[2])
replace, calls = Path.replace, 0
def killing_replace(self, target):
    global calls
    if calls == step:
        os.kill(os.getpid(), signal.SIGKILL)
    calls += 1
    return replace(self, target)
Path.replace = killing_replace
with artifact.write_artifact(folder) as staging:
    for name in "abc":
        (staging / f"{name}.txt").write_text("new " + name)
"""


@pytest.mark.parametrize("step", range(4))
def test_a_writer_killed_at_any_step_leaves_the_old_model_whole(tmp_path: Path, step: int) -> None:
    folder = tmp_path / "model"
    with write_artifact(folder) as staging:
        for name in "abc":
            (staging / f"{name}.txt").write_text("old " + name)
    done = subprocess.run(
        [sys.executable, "-c", KILLED_WRITER, str(step), str(folder)], check=False
    )
    assert done.returncode == -signal.SIGKILL
    artifact = open_artifact(folder)
    assert [artifact.path(f"{n}.txt").read_text() for n in "abc"] == ["old a", "old b", "old c"]
    with write_artifact(folder) as staging:
        (staging / "a.txt").write_text("next")
    assert sorted(path.suffix for path in folder.rglob("*") if path.is_file()) == [".json", ".txt"]


def test_a_truncated_file_is_named(tmp_path: Path) -> None:
    write(tmp_path / "model", a="a long text")
    path = open_artifact(tmp_path / "model").path("part/a.txt")
    path.write_text("a long")
    with pytest.raises(
        ModelError, match=r"a\.\w+\.txt: truncated or altered .*fit the model again"
    ):
        open_artifact(tmp_path / "model")


def test_an_altered_file_of_the_same_size_is_named(tmp_path: Path) -> None:
    write(tmp_path / "model", a="one")
    open_artifact(tmp_path / "model").path("part/a.txt").write_text("two")
    with pytest.raises(ModelError, match="altered \\(its hash does not match\\)"):
        open_artifact(tmp_path / "model")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    write(tmp_path / "model", a="one")
    open_artifact(tmp_path / "model").path("part/a.txt").unlink()
    with pytest.raises(ModelError, match=r"a\.\w+\.txt: missing"):
        open_artifact(tmp_path / "model")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"format": 1}', '{"format": 1, "files": {"a": 3}}']
)
def test_a_damaged_manifest_is_refused(tmp_path: Path, text: str) -> None:
    write(tmp_path / "model", a="one")
    (tmp_path / "model" / MANIFEST).write_text(text)
    with pytest.raises(ModelError, match=r"manifest\.json: damaged"):
        open_artifact(tmp_path / "model")


def test_a_model_of_another_format_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "model", a="one")
    manifest = tmp_path / "model" / MANIFEST
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"format": 99}))
    with pytest.raises(ModelError, match="model format 99, this redraft reads 1"):
        open_artifact(tmp_path / "model")


@pytest.mark.parametrize("stored", ["../secret", "/etc/passwd"])
def test_a_manifest_cannot_point_outside_the_model(tmp_path: Path, stored: str) -> None:
    write(tmp_path / "model", a="one")
    entry = {"stored": stored, "bytes": 1, "sha256": ""}
    (tmp_path / "model" / MANIFEST).write_text(json.dumps({"format": 1, "files": {"a": entry}}))
    with pytest.raises(ModelError, match="outside the model"):
        open_artifact(tmp_path / "model")


def test_a_folder_that_is_no_model_is_neither_read_nor_overwritten(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ModelError, match="not a model"):
        open_artifact(tmp_path)
    with pytest.raises(ModelError, match="holds other files"):
        write(tmp_path, a="one")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_file_is_not_overwritten_by_a_model(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ModelError, match="is a file"):
        write(tmp_path / "file", a="one")


def test_what_a_killed_first_writer_left_is_taken_over(tmp_path: Path) -> None:
    left = tmp_path / "model"
    (left / ".staging-abc" / "part").mkdir(parents=True)
    (left / ".staging-abc" / "part" / "a.txt").write_text("half")
    (left / "part").mkdir()
    (left / "part" / "b.0123456789ab.txt").write_text("moved")
    write(left, a="one")
    assert read(left) == {"a.txt": "one"}
    assert len([path for path in left.rglob("*") if path.is_file()]) == 2


def test_files_beside_what_a_killed_writer_left_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / ".staging-abc").mkdir()
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ModelError, match="holds other files"):
        write(tmp_path, a="one")
    assert (tmp_path / "thesis.txt").exists()
