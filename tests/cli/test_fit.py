"""`redraft fit` of both parts: what it tells, what it obeys, what it refuses."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from redraft.cli.app import app
from redraft.data.pairs import write_pairs
from tests.greetings import NAMES, greeting

TINY = """
[retriever.network]
word_width = 16
width = 8
embedding_dim = 16
[retriever.training]
steps = 4
[editor.network]
word_width = 16
width = 16
decoder_layers = 1
[editor.decoding]
max_length = 12
[editor.training]
steps = 7
"""


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    write_pairs([greeting(name) for name in NAMES], tmp_path / "pairs.jsonl")
    return tmp_path / "pairs.jsonl"


def fit(pairs: Path, config: str, *arguments: object) -> Result:
    (pairs.parent / "config.toml").write_text(config)
    out = pairs.parent / "model"
    command = ["fit", pairs, "-o", out, "--config", pairs.parent / "config.toml", *arguments]
    return CliRunner().invoke(app, [*map(str, command)])


def test_the_editor_is_trained_over_bm25(pairs: Path) -> None:
    done = fit(pairs, TINY, "--editor", "neural")
    assert done.exit_code == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["retriever"], facts["editor"], facts["examples"]) == ("bm25", "neural", 30)
    assert "editor: training on 27 pairs, 3 held out, about " in done.stderr
    assert "editor: answering 3 held-out pairs to calibrate its confidence" in done.stderr


def test_the_default_editor_needs_no_network(pairs: Path) -> None:
    done = fit(pairs, TINY, "--no-train")
    assert done.exit_code == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["retriever"], facts["editor"], facts["examples"]) == ("bm25", "choosing", 30)
    assert "steps" not in done.stderr


def test_the_comparison_of_retrievers_is_printed_and_kept(pairs: Path) -> None:
    done = fit(pairs, TINY, "--retriever", "auto", "--editor", "substitution")
    assert done.exit_code == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["retriever"] == "auto"
    measured = facts["selection"]["measured"]
    assert [row["name"] for row in measured] == ["bm25", "bow", "reranked"]
    shown = CliRunner().invoke(app, ["info", str(pairs.parent / "model"), "--format", "table"])
    for printed in (done.stderr, shown.stdout):
        for row in measured:
            assert f"{row['name']:<9} {row['similarity']:5.1f} BLEU" in printed


def test_both_parts_are_trained_and_announced(pairs: Path) -> None:
    done = fit(pairs, TINY, "--retriever", "task", "--editor", "neural")
    assert done.exit_code == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["retriever"], facts["editor"], facts["examples"]) == ("task", "neural", 30)
    told = done.stderr.splitlines()
    for name in ("retriever", "editor"):
        line = f"{name}: training on 27 pairs, 3 held out, about "
        assert any(one.startswith(line) for one in told)
    # a line whenever dev was scored
    for step in (3, 6, 7):
        assert any(f"step {step} of 7" in line and "dev_" in line for line in told)
    assert not (pairs.parent / "model.training").exists()
    assert (pairs.parent / "model" / "manifest.json").exists()


def test_a_budget_shortens_the_training(pairs: Path) -> None:
    many = TINY.replace("steps = 7", "steps = 1000000")
    done = fit(pairs, many, "--budget", "0.5s", "--retriever", "lexical")
    assert done.exit_code == 0, done.stderr
    assert "step 1,000,000" not in done.stderr


@pytest.mark.parametrize("budget", ["soon", "10", "-5m", "0s", "nanh", "infs", "5d", "m"])
def test_a_budget_that_is_no_time_is_refused(budget: str, pairs: Path) -> None:
    done = fit(pairs, TINY, f"--budget={budget}")
    assert done.exit_code == 2
    expected = f"error: --budget {budget}: expected a time such as 90s, 10m or 1h\n"
    assert done.stderr == expected


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("[editor.training]\nstep = 3\n", "[editor]: training: unknown setting 'step'"),
        ("[editor.netwrk]\nwidth = 3\n", "[editor]: unknown setting 'netwrk'"),
        ("[editr.training]\nsteps = 3\n", "unknown setting 'editr'; its tables are"),
        ("retriever = 3\n", "unknown setting 'retriever'; its tables are"),
        ("[editor.training]\nsteps = 'many'\n", "steps must be of type int, got str"),
        ("[editor.network]\narchitecture = 'abacus'\n", "choose one of: transformer, lstm"),
    ],
)
def test_settings_that_do_not_exist_are_refused_before_anything_is_trained(
    config: str, expected: str, pairs: Path
) -> None:
    done = fit(pairs, config)
    assert done.exit_code == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert expected in line
    assert not (pairs.parent / "model.training").exists()
