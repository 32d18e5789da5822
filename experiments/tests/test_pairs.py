"""The study of other kinds of pairs: every system becomes a row, and the default is compared."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from experiments.lib.bench import Bench, Questions, compared_rows, measured_rows
from experiments.lib.example_scores import read_scores
from experiments.lib.results import Row, write_results
from experiments.pairs.__main__ import main
from experiments.pairs.run import (
    MEASURES,
    METRICS,
    TABLES,
    read_questions,
)
from experiments.tests.test_hearthstone import TINY
from redraft.training.fit import FitOptions

SYSTEMS = ["bm25", "retrieve+edit", "seq2seq"]


@pytest.fixture(scope="module")
def questions() -> Questions:
    whole = read_questions("queries", "dev")
    return replace(whole, train=whole.train[:24], asked=whole.asked[:4])


def bench_of(questions: Questions, folder: Path, seed: int = 0) -> Bench:
    return Bench(questions, FitOptions(TINY, seed=seed), folder)


def test_every_system_is_measured_and_the_default_compared_with_each(
    questions: Questions, tmp_path: Path
) -> None:
    rows: list[Row] = []
    for seed in (0, 1):
        bench = bench_of(questions, tmp_path / "runs", seed)
        rows += measured_rows(bench, MEASURES["systems"], tmp_path / "dev.jsonl")
    assert [row.system for row in rows] == 2 * SYSTEMS
    for row in rows:
        assert (row.setting, row.split, row.n) == ("queries", "dev", 4)
        assert set(METRICS) <= set(row.metrics)
        assert "parses" not in row.metrics  # SQL is no Python
    edited, alone = rows[1:3]
    assert edited.config["retriever"] == "bm25"
    assert alone.config["encoding"]["prototypes"] == 0
    for table in ("training", "decoding", "augmentation"):
        assert edited.config[table] == alone.config[table]

    compared = list(compared_rows(read_scores(tmp_path / "dev.jsonl"), METRICS))
    assert [row.system_label for row in compared] == [
        "retrieve+edit − bm25",
        "retrieve+edit − seq2seq",
    ]
    for row, other in zip(compared, ("bm25", "seq2seq"), strict=True):
        assert row.config["seeds"] == [0, 1]
        assert set(row.metrics) == set(row.interval) == set(METRICS)
        ours, theirs = (mean(rows, system, "bleu_yin") for system in ("retrieve+edit", other))
        assert row.metrics["bleu_yin"] == pytest.approx(ours - theirs, abs=0.02)
        low, high = row.interval["bleu_yin"]
        assert low <= row.metrics["bleu_yin"] <= high
    assert_tables_show([*rows, *compared], tmp_path)


def mean(rows: list[Row], system: str, metric: str) -> float:
    found = [row.metrics[metric] for row in rows if row.system == system]
    return sum(found) / len(found)


def assert_tables_show(rows: list[Row], folder: Path) -> None:
    """Whether each row is in one table."""
    written = write_results(folder / "results.json", "pairs", rows)
    assert "Infinity" not in (folder / "results.json").read_text()
    shown = {mark: table.markdown(written) for mark, table in TABLES.items()}
    assert "| queries, dev | retrieve+edit | 4 |" in shown["pairs"]
    assert " − " not in shown["pairs"]
    assert "| queries, dev | retrieve+edit − bm25 | 4 |" in shown["pairs, ahead"]
    assert shown["pairs, ahead"].count("\n| queries") == 2


def test_answers_of_dev_and_test_are_kept_apart_and_trained_once(
    questions: Questions, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    for split in ("dev", "test"):
        bench = bench_of(replace(questions, split=split), runs)
        list(measured_rows(bench, MEASURES["systems"], tmp_path / f"{split}.jsonl"))
    logs = list(runs.rglob("editor/**/log.jsonl"))
    assert len(logs) == 2  # of Retrieve+Edit and of Seq2Seq
    assert all(len(log.read_text().splitlines()) == 8 for log in logs)
    asked = compared_rows(read_scores(tmp_path / "test.jsonl"), METRICS)
    assert [row.split for row in asked] == ["test", "test"]


def test_outputs_that_stand_in_train_are_not_counted_as_unseen(
    questions: Questions, tmp_path: Path
) -> None:
    known = replace(questions, asked=[questions.train[0], *questions.asked])
    measured = bench_of(known, tmp_path).alone("bm25")
    assert measured.values["exact"][0] == 100.0
    assert measured.row.metrics["exact"] == 20.0
    assert measured.row.metrics["exact_unseen"] == 0.0


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--measure", "ablations"), "invalid choice: 'ablations'"),
        (("--split", "train"), "invalid choice: 'train'"),
        (("--seeds", "0"), "'0' is not a number of at least 1"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_trained(
    arguments: tuple[str, str], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["-o", str(tmp_path), *arguments])
    assert stop.value.code == 2
    assert reason in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_command_writes_results_and_no_page(
    questions: Questions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("experiments.pairs.__main__.read_questions", lambda *_: questions)
    monkeypatch.setattr("experiments.lib.runner.FitOptions", partial(FitOptions, TINY))
    page = tmp_path / "README.md"
    empty = "<!-- table: pairs queries, dev, ahead -->\n<!-- end of table -->\n"
    page.write_text(empty)
    monkeypatch.chdir(tmp_path)
    main(["--kind", "queries", "--seeds", "1", "-o", str(tmp_path)])
    results: dict[str, Any] = json.loads((tmp_path / "results.json").read_text())
    assert [row["system"] for row in results["rows"]] == [
        *SYSTEMS,
        "retrieve+edit − bm25",
        "retrieve+edit − seq2seq",
    ]
    assert page.read_text() == empty
