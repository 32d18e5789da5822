"""A model of words and stored outputs works without the optional packages.

Each test runs a fresh interpreter in which torch, faiss, plotly and others cannot be imported, as
in an environment after `pip install redraft`.
"""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from redraft.data.pairs import write_pairs
from redraft.types import Example
from tests.hostile import models

OPTIONAL = ("torch", "faiss", "safetensors", "plotly", "tokenizers", "onnxruntime")

HOOK = f"""
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {OPTIONAL}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Refuse())
"""

CHECK = f"""
assert not set({OPTIONAL}) & set(sys.modules), "an optional package was imported"
"""


def run(code: str, *arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run `code` where the optional packages cannot be imported."""
    command = [sys.executable, "-c", HOOK + code, *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def redraft(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command `redraft` where the optional packages cannot be imported."""
    return run("from redraft.cli.app import main; main()", *arguments, cwd=cwd)


LIBRARY = """
from pathlib import Path

from redraft import RetrieveAndEdit, read_pairs
from redraft.metrics.evaluation import Evaluation

pairs = read_pairs("pairs.jsonl")
for retriever in ("bm25", "bow", "auto", "reranked", "none"):
    model = RetrieveAndEdit.fit(pairs, retriever=retriever, editor="verbatim")
    model.save(retriever)
    model = RetrieveAndEdit.load(retriever)
    answers = model.predict([pair.x for pair in pairs])
    assert model.sample([pairs[0].x], seed=1) == model.sample([pairs[0].x], seed=1)
    assert len(Evaluation.of(pairs, answers).answers) == len(pairs)
    assert retriever == "none" or answers[0][0].output == pairs[0].y
    model.complete([pairs[0].x], ["su"])
"""

SERVER = """
from pathlib import Path

from starlette.testclient import TestClient

from redraft import RetrieveAndEdit, read_pairs
from redraft.server.http.app import create_app
from redraft.server.http.server import loader

pairs = read_pairs("pairs.jsonl")
RetrieveAndEdit.fit(pairs, retriever="bm25", editor="verbatim").save("model")
app = create_app({"model": loader("model", Path("model"))})
with TestClient(app, base_url="http://localhost") as client:
    while client.get("/readyz").status_code != 200:
        pass
    answer = client.post("/v1/predict", json={"inputs": [dict(pairs[0].x)]})
    assert answer.status_code == 200, answer.text
    assert answer.json()["results"][0][0]["output"] == pairs[0].y
    assert "<html" in client.get("/").text
"""

LANGUAGE_SERVER = """
from redraft.completion.engine import CompletionEngine
from redraft.server.lsp import handlers
from redraft.server.served_model import ServedModel
"""


@pytest.mark.usefixtures("pairs_file")
@pytest.mark.parametrize("code", [LIBRARY, SERVER, LANGUAGE_SERVER], ids=["api", "http", "lsp"])
def test_words_and_stored_outputs_need_no_optional_package(code: str, tmp_path: Path) -> None:
    ended = run(code + CHECK, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr


COMMANDS = """
check pairs.jsonl
split pairs.jsonl -o parts
config
config pairs.jsonl
config --preset paper
fit pairs.jsonl -o model --retriever bow --editor verbatim
fit pairs.jsonl -o model --retriever bm25 --editor verbatim
info model
predict model sum-the-first-items --explain
predict model sum-the-first-items --sample 1
predict model --file few.jsonl -o bulk
retrieve model sum-the-first-items
add model few.jsonl
remove model --where verb=max
mine code -o functions.jsonl
fit functions.jsonl -o functions --editor verbatim
index code -o mine --from functions
complete mine code/a.py:3:5
"""

FORKS = """
import os

import redraft.bulk.predict
import redraft.training.fit_model
from redraft.cli.app import main

for line in sys.argv[1].splitlines():
    child = os.fork()
    if not child:
        sys.argv[1:] = line.split()
        main()
    _, status = os.waitpid(child, 0)
    if status:
        sys.exit(f"redraft {line}: {status}")
"""
"""Runs commands in processes that share their imports, which take most of the time."""


def test_every_command_on_words_works(tmp_path: Path, examples: Sequence[Example]) -> None:
    write_pairs(examples, tmp_path / "pairs.jsonl")
    write_pairs(examples[:3], tmp_path / "few.jsonl")
    (tmp_path / "code").mkdir()
    function = 'def add(a, b):\n    """Add two."""\n    return a + b\n'
    (tmp_path / "code" / "a.py").write_text(function)
    ended = run(FORKS, COMMANDS.strip(), cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.usefixtures("pairs_file")
def test_an_evaluation_without_plotly_says_how_to_get_the_report(tmp_path: Path) -> None:
    fitted = redraft("fit", "pairs.jsonl", "-o", "model", "--editor", "verbatim", cwd=tmp_path)
    assert fitted.returncode == 0, fitted.stderr
    ended = redraft("evaluate", "model", "pairs.jsonl", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["n"] == 60
    assert "pip install 'redraft[report]'" in ended.stderr
    assert (tmp_path / "evaluation" / "scores.json").exists()
    assert not (tmp_path / "evaluation" / "report.html").exists()


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--retriever", "bm25", "--editor", "neural"], "the neural editor"),
        (["--retriever", "task", "--editor", "verbatim"], "the task retriever"),
        (["--retriever", "input", "--editor", "verbatim"], "the input retriever"),
    ],
)
@pytest.mark.usefixtures("pairs_file")
def test_a_neural_part_ends_in_one_line_that_says_what_to_install(
    arguments: list[str], part: str, tmp_path: Path
) -> None:
    ended = redraft("fit", "pairs.jsonl", "-o", "model", *arguments, cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert re.fullmatch(
        rf"error: {part} needs (torch|safetensors), which is not installed; "
        r"install it with: pip install 'redraft\[neural\]'",
        ended.stderr.splitlines()[-1],
    )
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(("kind", "part"), [("lstm", "neural editor"), ("task", "task retriever")])
@pytest.mark.parametrize("verb", ["info", "predict"])
def test_a_saved_neural_part_is_not_called_damaged(
    kind: str, part: str, verb: str, tmp_path: Path
) -> None:
    models.save(kind, tmp_path / "model")
    ended = redraft(verb, "model", *(["greet Ada"] if verb == "predict" else []), cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.count("\n") == 1
    assert ended.stderr.startswith(f"error: the {part} needs ")
    assert "pip install 'redraft[neural]'" in ended.stderr
