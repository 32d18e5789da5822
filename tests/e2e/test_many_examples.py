"""Many examples, which are kept in files, are answered as they are from memory."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from redraft import Example, RetrieveAndEdit
from redraft.cli.app import app
from redraft.data import filed
from redraft.data.filed import FiledExamples
from redraft.data.pairs import write_pairs
from tests.greetings import NAMES, greeting

ASKED = [{"text": f"greet {name}"} for name in ("Ada", "Nobody", "Turing")]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    write_pairs([greeting(name) for name in NAMES], tmp_path / "pairs.jsonl")
    return tmp_path / "pairs.jsonl"


def run(*arguments: object) -> Result:
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert done.exit_code == 0, done.stderr
    return done


def answers(model: Path) -> list[list[tuple[str, float]]]:
    loaded = RetrieveAndEdit.load(model)
    return [
        [(each.example.y, each.distance) for each in found]
        for found in loaded.retriever.retrieve(ASKED, 4)
    ]


def examples(model: Path) -> list[Example]:
    return list(RetrieveAndEdit.load(model).retriever.examples)


@pytest.mark.parametrize("retriever", ["bm25", "lexical", "none"])
def test_every_verb_gives_what_it_gives_in_memory(
    pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, retriever: str
) -> None:
    more = tmp_path / "more.jsonl"
    write_pairs([greeting("Nobody"), greeting("Somebody")], more)
    told = {}
    for many in (100, 12):
        monkeypatch.setattr(filed, "MANY", many)
        model, parts = tmp_path / f"model-{many}", ("--retriever", retriever)
        fitted = run("fit", pairs, "-o", model, *parts, "--editor", "verbatim")
        held = RetrieveAndEdit.load(model).retriever.examples
        assert isinstance(held, FiledExamples) == (many == 12)
        seen = [json.loads(fitted.stdout) | {"model": "", "bytes": 0}, answers(model)]
        run("add", model, more)
        seen += [answers(model), [each.to_json() for each in examples(model)]]
        run("remove", model, "--where", "initial=N")
        seen += [answers(model), [each.to_json() for each in examples(model)]]
        told[many] = seen
        assert not list(tmp_path.rglob(".staging-*"))
        assert not (tmp_path / f"model-{many}.training").exists()
    assert told[12] == told[100]


def test_a_model_of_many_examples_goes_back_to_memory_with_few(
    pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filed, "MANY", len(NAMES))
    model = tmp_path / "model"
    run("fit", pairs, "-o", model, "--editor", "verbatim")
    assert isinstance(RetrieveAndEdit.load(model).retriever.examples, FiledExamples)
    run("remove", model, "--where", "initial=A")
    assert isinstance(RetrieveAndEdit.load(model).retriever.examples, list)
    assert not any(each.meta["initial"] == "A" for each in examples(model))
