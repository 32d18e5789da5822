"""The paper's conditions: what copies from where, and a corpus that keeps near-copies."""

from pathlib import Path
from typing import Any

import pytest

from experiments.autocomplete.bench import Size
from experiments.autocomplete.settings import Functions
from experiments.corpus.packages import Pinned
from experiments.lib.bench import Bench, Questions
from experiments.lib.paired import difference_rows
from experiments.lib.settings import merged
from experiments.paper_conditions import cards, functions
from experiments.paper_conditions.functions import NearCopyBench
from experiments.paper_conditions.near_copies import write_corpus
from experiments.paper_conditions.tables import TABLES
from experiments.tests.wheels import source, write_wheel
from redraft.training.fit import FitOptions
from redraft.types import Example

TINY: dict[str, Any] = {
    "retriever": {"network": {"word_width": 8, "width": 8, "embedding_dim": 8}},
    "editor": {
        "network": {"word_width": 8, "width": 8, "decoder_layers": 1},
        "decoding": {"max_length": 12, "beam_size": 2},
    },
}
SIZE = Size(steps=2, batch=4, retriever_steps=2, asked=2, fitted=2, decoded=2)


def function(package: str, i: int, side: str) -> Example:
    x = {
        "docstring": f"Get item {i}. Returns: it",
        "name": f"get_{package}_{i}",
        "arguments": "self",
    }
    meta = {"package": f"{package}_{side}", "file": f"{package}.py", "line": i}
    return Example(x, f"item{i} = self.{package}.get({i})\nreturn item{i}", meta)


def functions_of(side: str, *packages: str) -> dict[str, list[Example]]:
    return {f"{name}_{side}": [function(name, i, side) for i in range(12)] for name in packages}


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NearCopyBench:
    monkeypatch.setattr(functions, "SIZE", SIZE)
    monkeypatch.setattr(functions, "lstm_settings", lambda: merged(TINY["editor"], _LSTM))
    train = [e for each in functions_of("train", "ham", "egg", "oil").values() for e in each]
    corpus = Functions(train, functions_of("dev", "ham"), functions_of("test", "ham", "egg"))
    return NearCopyBench(corpus, FitOptions(TINY), tmp_path)


_LSTM = {"network": {"architecture": "lstm", "copying": "positional"}}


def test_every_system_is_measured_on_the_same_functions(bench: NearCopyBench) -> None:
    measured = [
        *bench.untrained_rows(),
        *bench.learned_rows(),
        *bench.reranked_rows(),
        *bench.default_rows(),
        *bench.system_rows(),
        *bench.lstm_rows(),
    ]
    alone = ["lexical", "bm25", "task", "input", "reranked"]
    editors = ["retrieve+edit", "retrieve+edit (network)", "seq2seq"]
    papers = ["seq2seq (paper)", "retrieve+edit (paper)"]
    assert [each.row.system for each in measured] == [*alone, *editors, *papers]
    assert {(each.row.setting, each.row.n) for each in measured} == {("near-copies", 4)}
    unaided, copying = (each.row.config for each in measured[-2:])
    assert copying["network"]["copying"] == unaided["network"]["copying"] == "prototype"
    assert unaided["encoding"]["prototypes"] == 0
    differences = list(difference_rows(measured, functions.METRICS))
    pairs = {(row.system, row.baseline) for row in differences}
    compared = {
        ("retrieve+edit", "seq2seq"),
        ("retrieve+edit", "seq2seq (paper)"),
        ("retrieve+edit (paper)", "seq2seq (paper)"),
        ("retrieve+edit (network)", "seq2seq"),
    }
    assert compared <= pairs
    shown = TABLES["paper conditions, ratios"].markdown(differences)
    assert "reranked − lexical" in shown
    assert all(f"{one} − {other}" in shown for one, other in compared)


def test_both_systems_copy_as_the_condition_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def small(copying: str, *, steps: int) -> dict[str, Any]:
        network = {"architecture": "lstm", "copying": copying}
        return merged(TINY["editor"], {"network": network, "training": {"steps": steps}})

    monkeypatch.setattr(cards, "card_settings", small)
    train = [Example({"name": f"Card{i}"}, f"class Card{i}: cost = {i % 3}") for i in range(24)]
    questions = Questions(cards.SETTING, "dev", train, train[:2])
    retriever = merged(TINY["retriever"], {"training": {"steps": 2}})
    options = FitOptions({"retriever": retriever}, seed=1)
    for condition, copying in cards.COPYING.items():
        rows = list(cards.card_rows(condition, steps=3)(Bench(questions, options, tmp_path)))
        assert [each.row.system for each in rows] == ["retrieve+edit", "seq2seq"]
        for each in rows:
            assert each.row.variant == condition
            assert each.row.config["network"]["copying"] == copying
            assert each.row.config["training"]["steps"] == 3


def test_the_settings_are_the_papers_but_for_copying_and_steps() -> None:
    settings = cards.card_settings("prototype", steps=7)
    assert settings["network"]["architecture"] == "lstm"
    assert settings["network"]["copying"] == "prototype"
    assert settings["training"]["steps"] == 7
    assert settings["network"]["width"] == 256


def test_the_corpus_keeps_generated_sources_and_the_sides_of_its_list(tmp_path: Path) -> None:
    generated = '"""Generated by a tool; do not edit."""\n\n\n'
    sources = {"one": source(1, 2), "two": generated + source(2, 3), "six": source(6)}
    for name, text in sources.items():
        write_wheel(tmp_path / "archives", f"{name}-1.0", {f"{name}/code.py": text})
    sides = {"one": "train", "two": "test", "six": "dev"}
    write_corpus([Pinned(name, "1.0", side) for name, side in sides.items()], tmp_path)
    corpus = Functions.read(tmp_path)
    assert [example.x["name"] for example in corpus.train] == ["compute_1", "compute_2"]
    # the second is an equal pair of function and docstring
    assert [example.x["name"] for example in corpus.test["two"]] == ["compute_3"]
    assert list(corpus.dev) == ["six"]
