"""The experiments as commands: real processes, started from the project's root."""

import subprocess
import sys
from pathlib import Path

import pytest

from experiments.tables import HERE, ROOT

EXPERIMENTS = sorted(path.parent.name for path in HERE.glob("*/README.md"))


def run(module: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"experiments.{module}", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_index_names_every_experiment() -> None:
    page = (HERE / "README.md").read_text()
    others = [
        *("autocomplete", "completion", "hearthstone", "languages", "lm", "pairs"),
        *("paper_conditions", "public_pairs", "retrieval"),
    ]
    assert others == EXPERIMENTS
    assert all(f"`python -m experiments.{name}`" in page for name in EXPERIMENTS)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_explains_itself(name: str) -> None:
    done = run(name, "--help")
    assert done.returncode == 0, done.stderr
    assert f"usage: python -m experiments.{name}" in done.stdout
    assert "results.json" in done.stdout


def test_a_folder_without_cards_is_an_error_of_one_line(tmp_path: Path) -> None:
    done = run("hearthstone", "--data", tmp_path, "-o", tmp_path / "out")
    assert done.returncode == 2
    assert done.stderr == (f"error: {tmp_path}: has no train_hs.in; splits that are there: none\n")
    assert not (tmp_path / "out").exists()


def test_a_corpus_without_functions_is_an_error_of_one_line(tmp_path: Path) -> None:
    done = run("autocomplete", "--data", tmp_path, "-o", tmp_path / "out")
    assert done.returncode == 2
    assert done.stderr == (
        f"error: {tmp_path}/strict: has no train.jsonl; "
        "build a corpus with `python -m experiments.corpus`\n"
    )


def test_the_pages_are_up_to_date() -> None:
    done = run("tables", "--check")
    assert (done.returncode, done.stderr) == (0, "")
