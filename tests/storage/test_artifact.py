"""A model directory is whole, checked, and replaced in one step."""

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from redraft.errors import ModelError
from redraft.storage.artifact import Artifact, open_artifact, read_artifact
from redraft.storage.artifact_writer import remove_artifact, write_artifact
from redraft.storage.locking import LOCK
from redraft.storage.manifest import MANIFEST


def write(folder: Path, **files: str) -> None:
    with write_artifact(folder) as staging:
        (staging / "part").mkdir()
        for name, text in files.items():
            (staging / "part" / f"{name}.txt").write_text(text)


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.rglob("*") if path.is_file()}


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
import redraft.storage.artifact_writer as artifact
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

KILL_AFTER = """replace(self, target)
    if self.name == "manifest.json":
        os.kill(os.getpid(), signal.SIGKILL)"""


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
    "text",
    [
        "",
        "{",
        "[]",
        '{"format": 4}',
        '{"format": 4, "redraft": "0.6.0", "files": {"a": 3}}',
        '{"format": 4, "files": {}}',
        '{"format": true, "redraft": "0.6.0", "files": {}}',
        "[" * 100_000,
        '{"format": 4, "redraft": "0.6.0", "files": {"a": {"stored": "a", "bytes": null, '
        '"sha256": "' + "0" * 64 + '"}}}',
    ],
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
    with pytest.raises(
        ModelError,
        match="model format 99, this version of redraft reads format 4; fit the model again",
    ):
        open_artifact(tmp_path / "model")


@pytest.mark.parametrize("stored", ["../secret", "/etc/passwd", "a" * 5000, "a\0b"])
def test_a_manifest_cannot_point_outside_the_model(tmp_path: Path, stored: str) -> None:
    write(tmp_path / "model", a="one")
    entry = {"stored": stored, "bytes": 1, "sha256": "0" * 64}
    manifest = {"format": 4, "redraft": "0.6.0", "files": {"a": entry}}
    (tmp_path / "model" / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(ModelError, match=r"outside the model|manifest\.json: damaged"):
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


def test_a_link_out_of_the_model_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "model", a="one")
    path = open_artifact(tmp_path / "model").path("part/a.txt")
    path.rename(tmp_path / "elsewhere.txt")
    path.symlink_to(tmp_path / "elsewhere.txt")
    with pytest.raises(ModelError, match="outside the model"):
        open_artifact(tmp_path / "model")


@pytest.mark.parametrize(
    "manifest",
    ['{"name": "my web app"}', "", "not JSON", '{"format": 4, "files": {}}', "[]"],
)
def test_a_folder_with_the_manifest_of_another_program_is_not_touched(
    tmp_path: Path, manifest: str
) -> None:
    (tmp_path / MANIFEST).write_text(manifest)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref")
    (tmp_path / "thesis.txt").write_text("years of work")
    before = contents(tmp_path)
    with pytest.raises(ModelError, match=r"manifest\.json was not written by redraft"):
        write(tmp_path, a="one")
    assert contents(tmp_path) == before


def test_files_that_a_user_keeps_in_a_model_folder_survive(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    write(folder, a="one", b="two")
    kept = {
        folder / "notes.txt": "mine",
        folder / "part" / "pairs.jsonl": "mine too",
        folder / "part" / "looks.0123456789ab.txt": "like a stored file",
        folder / ".git" / "HEAD": "ref",
    }
    for path, text in kept.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (folder / "lost+found").symlink_to(tmp_path)
    write(folder, a="three")
    assert read(folder) == {"a.txt": "three"}
    assert {path: path.read_text() for path in kept} == kept
    assert (folder / "lost+found").is_symlink()


def test_files_that_a_manifest_claims_but_no_writer_named_are_not_deleted(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    write(folder, a="one")
    (folder / "thesis.txt").write_text("years of work")
    entry = {"stored": "thesis.txt", "bytes": 13, "sha256": "0" * 64}
    manifest = {"format": 4, "redraft": "0.6.0", "files": {"a": entry}}
    (folder / MANIFEST).write_text(json.dumps(manifest))
    write(folder, a="two")
    assert (folder / "thesis.txt").read_text() == "years of work"


def test_a_save_succeeds_though_old_files_cannot_be_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "model", a="one")

    def refuse(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(13, "Permission denied", str(path), missing_ok)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", refuse)
        write(tmp_path / "model", a="two")
    assert read(tmp_path / "model") == {"a.txt": "two"}


def test_files_have_the_mode_of_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with write_artifact(tmp_path / "model") as staging:
            (staging / "a.txt").write_text("one")
            (staging / "a.txt").chmod(0o600)
    finally:
        os.umask(before)
    path = open_artifact(tmp_path / "model").path("a.txt")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_writer_killed_before_its_clean_up_is_cleaned_up_after(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    with write_artifact(folder) as staging:
        (staging / "a.txt").write_text("old")
    code = KILLED_WRITER.replace("return replace(self, target)", KILL_AFTER)
    done = subprocess.run([sys.executable, "-c", code, "99", str(folder)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert open_artifact(folder).path("b.txt").read_text() == "new b"
    assert len(list(folder.glob("a.*.txt"))) == 2  # the old one is left
    write(folder, a="next")
    assert set(contents(folder)) == {MANIFEST, open_artifact(folder).path("part/a.txt").name}


def test_a_reader_starts_over_when_the_model_is_replaced_meanwhile(tmp_path: Path) -> None:
    folder, reads = tmp_path / "model", []
    write(folder, a="one")

    def slow_read(artifact: Artifact) -> str:
        reads.append(artifact)
        if len(reads) < 3:
            write(folder, a=f"version {len(reads)}")
        return artifact.path("part/a.txt").read_text()

    assert read_artifact(folder, slow_read) == "version 2"
    assert len(reads) == 3


def test_a_reader_locks_out_a_busy_writer(tmp_path: Path) -> None:
    folder, reads = tmp_path / "model", []
    write(folder, a="one")

    def slow_read(artifact: Artifact) -> str:
        reads.append(artifact)
        if not (folder / LOCK).exists():
            write(folder, a=f"version {len(reads)}")
        return artifact.path("part/a.txt").read_text()

    assert read_artifact(folder, slow_read) == "version 3"


def test_an_error_of_a_reader_is_raised_where_nothing_was_replaced(tmp_path: Path) -> None:
    write(tmp_path / "model", a="one")
    with pytest.raises(ZeroDivisionError):
        read_artifact(tmp_path / "model", lambda _: 1 // 0)


def test_a_removed_artifact_leaves_what_a_user_kept_beside_it(tmp_path: Path) -> None:
    write(tmp_path / "gone", a="one")
    write(tmp_path / "kept", a="one")
    (tmp_path / "kept" / "notes.txt").write_text("mine")
    for name in ("gone", "kept", "missing"):
        remove_artifact(tmp_path / name)
    assert contents(tmp_path) == {"notes.txt": "mine"}
    assert not (tmp_path / "gone").exists()


def test_what_a_killed_first_writer_left_is_taken_over(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    done = subprocess.run([sys.executable, "-c", KILLED_WRITER, "2", str(folder)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(list(folder.glob("*.txt"))) == 2
    write(folder, a="one")
    assert read(folder) == {"a.txt": "one"}
    assert len(contents(folder)) == 2


def test_files_beside_what_a_killed_writer_left_are_not_overwritten(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    subprocess.run([sys.executable, "-c", KILLED_WRITER, "2", str(folder)], check=False)
    (folder / "thesis.0123456789ab.txt").write_text("years of work")
    before = contents(folder)
    with pytest.raises(ModelError, match="holds other files"):
        write(folder, a="one")
    assert contents(folder) == before
