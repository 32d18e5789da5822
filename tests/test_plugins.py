"""Parts of other packages: the code of docs/extending.md, installed and used by the command."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from redraft.types import Example

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "extending.md").read_text()
SOURCES = dict(re.findall(r'```python title="(.*?)"\n(.*?)```', PAGE, flags=re.DOTALL))
[USAGE] = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
[ENTRY_POINTS] = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)
COMMANDS = re.findall(r"```sh\n(.*?)\n```", PAGE, flags=re.DOTALL)
INPUT = "sum the first 7 itms of decks"
MAIN = "from redraft.cli.app import main; main()"

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Write the package of the page into a folder and return the folder."""
    folder = tmp_path / "site"
    for name, code in SOURCES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
    return folder


def install(folder: Path) -> None:
    """Add the metadata that pip writes for the entry points of the page."""
    info = folder / "my_parts-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-parts\nVersion: 1.0\n")
    lines = ENTRY_POINTS.replace('[project.entry-points."', "[").replace('"]', "]")
    (info / "entry_points.txt").write_text(lines.replace('"', ""))


@pytest.fixture
def run(tmp_path: Path, package: Path, pairs_file: Path) -> Run:  # noqa: ARG001
    """Return a function that runs Python with the package on its path, next to the pairs."""

    def run(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join([str(package), str(ROOT / "src")])
        return subprocess.run(
            [sys.executable, *map(str, arguments)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": path, **variables},
        )

    return run


def test_installed_parts_work_with_every_command(
    run: Run, package: Path, tmp_path: Path, examples: Sequence[Example]
) -> None:
    install(package)
    parts = ("--retriever", "edit-distance", "--editor", "substitute")
    done = run("-c", MAIN, "fit", "pairs.jsonl", "-o", "model", *parts)
    assert done.returncode == 0, done.stderr
    done = run("-c", MAIN, "info", "model")
    facts = json.loads(done.stdout)
    assert (facts["retriever"], facts["editor"], facts["examples"]) == (
        "edit-distance",
        "substitute",
        len(examples),
    )
    done = run("-c", MAIN, "predict", "model", INPUT)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["candidates"][0]["output"] == "sum(decks[:7])"
    done = run("-c", MAIN, "evaluate", "model", "pairs.jsonl", "-o", "evaluation")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["exact"]
    assert (tmp_path / "evaluation" / "report.html").exists()
    done = run("-c", MAIN, "add", "model", "pairs.jsonl")
    assert done.returncode == 0, done.stderr
    done = run("-c", MAIN, "fit", "pairs.jsonl", "-o", "other", "--retriever", "nonsense")
    assert done.returncode == 2
    assert "none, edit-distance, or package.module:Class" in done.stderr


def test_a_class_named_on_the_command_line_needs_permission_to_load(run: Run) -> None:
    fit, predict = (command.replace("redraft ", "") for command in COMMANDS)
    allowed, _, predict = predict.partition(" ")
    done = run("-c", MAIN, *fit.split())
    assert done.returncode == 0, done.stderr
    arguments = [predict.split()[0], predict.split()[1], INPUT]
    done = run("-c", MAIN, *arguments)
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert allowed in line
    done = run("-c", MAIN, *arguments, **dict([allowed.split("=")]))
    assert done.returncode == 0, done.stderr


def test_a_model_of_a_package_that_is_gone_is_one_line(run: Run, package: Path) -> None:
    install(package)
    done = run("-c", MAIN, "fit", "pairs.jsonl", "-o", "model", "--retriever", "edit-distance",
               "--editor", "verbatim")  # fmt: skip
    assert done.returncode == 0, done.stderr
    (package / "my_parts-1.0.dist-info" / "entry_points.txt").unlink()
    done = run("-c", MAIN, "info", "model")
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert "no retriever is called 'edit-distance' here; install the package" in line


def test_the_python_of_the_page_runs(run: Run) -> None:
    done = run("-c", USAGE)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "sum(decks[:7])\n"


def test_a_model_of_installed_parts_is_served(run: Run, package: Path) -> None:
    install(package)
    code = """
from pathlib import Path
from redraft import RetrieveAndEdit, read_pairs
from redraft.server.schema import PredictRequest
from redraft.server.served_model import ServedModel
pairs = read_pairs("pairs.jsonl")
RetrieveAndEdit.fit(pairs, retriever="edit-distance", editor="substitute").save("model")
served = ServedModel.open("model", Path("model"))
request = PredictRequest(inputs=["sum the first 7 itms of decks"])
print(served.info().retriever, served.predict(request)[0][0].output)
"""
    done = run("-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "edit-distance sum(decks[:7])\n"
