"""No verb writes into a folder that holds something else, or deletes what a user keeps."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from redraft import Example, RetrieveAndEdit
from redraft.cli.app import app
from redraft.completion.project import Project
from redraft.server.served_model import ServedModel
from tests.retrieval.test_dense import saved_embedder

PARTS = ("--retriever", "bm25", "--editor", "verbatim")

WRITING_VERBS: dict[str, Sequence[str]] = {
    "fit": ("fit", "{pairs}", "-o", "{out}", *PARTS),
    "add": ("add", "{out}", "{pairs}"),
    "remove": ("remove", "{out}", "--where", "verb=sum"),
    "index": ("index", "{sources}", "-o", "{out}"),
    "index --from": ("index", "{sources}", "-o", "{out}", "--from", "{functions}"),
    "split": ("split", "{pairs}", "-o", "{out}"),
    "evaluate": ("evaluate", "{model}", "{pairs}", "-o", "{out}"),
    "mine": ("mine", "{sources}", "-o", "{out}/"),
    "predict -o": ("predict", "{model}", "--file", "{pairs}", "-o", "{out}/"),
    "embed": ("embed", "{embedder}", "{pairs}", "-o", "{out}"),
    "demo": ("demo", "-o", "{out}"),
    "serve": ("serve", "{out}"),
}


@pytest.fixture
def places(tmp_path: Path, pairs_file: Path, examples: list[Example]) -> dict[str, Path]:
    """Good inputs for every verb, so that only the folder to write to can be refused."""
    (tmp_path / "sources").mkdir()
    source = 'def double(number):\n    """Return twice the number."""\n    return 2 * number\n'
    (tmp_path / "sources" / "double.py").write_text(source)
    functions = [f for found in Project.read([tmp_path / "sources"]).files.values() for f in found]
    for folder, pairs in (("model", examples), ("functions", functions)):
        RetrieveAndEdit.fit(pairs, retriever="bm25", editor="verbatim").save(tmp_path / folder)
    return {
        "pairs": pairs_file,
        "model": tmp_path / "model",
        "functions": tmp_path / "functions",
        "embedder": saved_embedder(examples, tmp_path / "embedder"),
        "sources": tmp_path / "sources",
    }


def run(arguments: Sequence[str], **places: Path) -> Result:
    texts = {name: str(path) for name, path in places.items()}
    return CliRunner().invoke(app, [argument.format(**texts) for argument in arguments])


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def write_foreign(folder: Path, *, manifest: str) -> None:
    """Write the project of somebody who knows nothing of us."""
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main")
    (folder / "thesis.txt").write_text("years of work")
    for name in ("train.jsonl", "scores.json", "pairs.jsonl", "job.json"):
        (folder / name).write_text('{"mine": true}\n')
    if manifest:
        (folder / "manifest.json").write_text(manifest)


@pytest.mark.parametrize("manifest", ['{"name": "my web app"}', ""], ids=["manifest", "plain"])
@pytest.mark.parametrize("verb", WRITING_VERBS)
def test_a_folder_of_other_files_is_refused_and_left_alone(
    tmp_path: Path, places: dict[str, Path], verb: str, manifest: str
) -> None:
    out = tmp_path / "site"
    write_foreign(out, manifest=manifest)
    before = contents(out)
    done = run(WRITING_VERBS[verb], out=out, **places)
    assert done.exit_code == 2, done.output
    assert len(done.stderr.strip().splitlines()) == 1
    assert "site" in done.stderr or verb == "serve"  # whose log names the folder
    assert contents(out) == before
    assert not (tmp_path / "site.training").exists()


def keep_files(folder: Path) -> dict[str, bytes]:
    """Put files of a user's into a folder of ours; returns them."""
    for name in ("notes.txt", "eval/report.html", "retriever/mine.npy", ".git/HEAD"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    (folder / "empty").mkdir()
    return {name: text for name, text in contents(folder).items() if text == b"mine"}


@pytest.mark.parametrize("verb", ["fit", "add", "remove", "index --from"])
def test_files_that_a_user_keeps_in_a_model_survive(
    tmp_path: Path, places: dict[str, Path], verb: str
) -> None:
    out = tmp_path / "out"
    assert run(WRITING_VERBS["fit"], out=out, **places).exit_code == 0
    before, kept = contents(out), keep_files(out)
    done = run(WRITING_VERBS[verb], out=out, **places)
    assert done.exit_code == 0, done.output
    after = contents(out)
    assert {name: after.get(name) for name in kept} == kept
    assert (out / "empty").is_dir()
    assert after["manifest.json"] != before["manifest.json"] or verb == "fit"
    RetrieveAndEdit.load(out)


def test_files_that_a_user_keeps_survive_the_changes_of_a_server(
    places: dict[str, Path], examples: list[Example]
) -> None:
    folder = places["model"]
    kept = keep_files(folder)
    served = ServedModel.open("m", folder)
    served.add([Example({"text": "new"}, "new()")])
    served.remove([examples[0].identity])
    assert {name: contents(folder).get(name) for name in kept} == kept


def test_a_training_leaves_a_folder_of_a_users_beside_the_model(
    tmp_path: Path, places: dict[str, Path]
) -> None:
    (tmp_path / "out.training").mkdir()
    (tmp_path / "out.training" / "notes.txt").write_text("mine")
    assert run(WRITING_VERBS["fit"], out=tmp_path / "out", **places).exit_code == 0
    assert contents(tmp_path / "out.training") == {"notes.txt": b"mine"}


@pytest.mark.parametrize("verb", ["split", "evaluate", "fit", "index --from"])
def test_a_verb_given_again_replaces_its_own_results(
    tmp_path: Path, places: dict[str, Path], verb: str
) -> None:
    out = tmp_path / "out"
    for _ in range(2):
        done = run(WRITING_VERBS[verb], out=out, **places)
        assert done.exit_code == 0, done.output


def test_a_split_never_overwrites_its_input(tmp_path: Path, places: dict[str, Path]) -> None:
    out = tmp_path / "parts"
    assert run(WRITING_VERBS["split"], out=out, **places).exit_code == 0
    before = contents(out)
    done = run(("split", str(out / "train.jsonl"), "-o", "{out}"), out=out)
    assert done.exit_code == 2
    assert "train.jsonl: the input would be overwritten; name another folder" in done.stderr
    assert contents(out) == before


@pytest.mark.parametrize("name", ["../escape", "a/b", "", ".", "x" * 300, "/tmp/x"])
def test_a_part_of_a_split_is_a_plain_file_name(
    tmp_path: Path, places: dict[str, Path], name: str
) -> None:
    arguments = ("split", "{pairs}", "-o", "{out}", "--shares", f"{name}=1")
    done = run(arguments, out=tmp_path / "parts", **places)
    assert done.exit_code == 2
    assert "is not a file name" in done.stderr
    assert not (tmp_path / "parts").exists()
