"""Rows of an experiment: their means, their file, their table."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.lib.results import (
    Row,
    interval_of,
    read_results,
    with_means,
    write_results,
)
from experiments.lib.tables import Table, insert_table


def row(system: str, seed: int, bleu: float) -> Row:
    return Row(
        system, "cards", "dev", seed, 66, {"bleu_yin": bleu}, {"bleu_yin": (bleu - 4, bleu + 4)}
    )


def test_several_seeds_are_followed_by_their_mean_and_spread() -> None:
    rows = with_means([row("task", 0, 60.0), row("bm25", 0, 63.0), row("task", 1, 62.0)])
    assert [(each.system, each.seed) for each in rows] == [
        ("task", 0),
        ("task", 1),
        ("task", "mean"),
        ("bm25", 0),
    ]
    assert rows[2].metrics == {"bleu_yin": 61.0}
    assert rows[2].spread == {"bleu_yin": pytest.approx(1.41)}


def test_the_file_holds_every_row_and_where_it_comes_from(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "results.json"
    write_results(path, "retrieval", [row("task", 0, 60.0)])
    results = json.loads(path.read_text())
    assert {"experiment", "commit", "machine", "time", "rows", "published"} == set(results)
    assert results["rows"][0]["metrics"] == {"bleu_yin": 60.0}
    assert [each.name for each in path.parent.iterdir()] == ["results.json"]


def test_settings_of_an_earlier_run_are_kept_and_measured_ones_replaced(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    write_results(path, "retrieval", [row("task", 0, 60.0)])
    other = Row("task", "functions", "test", 0, 400, {"bleu_yin": 25.0})
    assert [each.setting for each in write_results(path, "retrieval", [other])] == [
        "cards",
        "functions",
    ]
    rows = write_results(path, "retrieval", [row("task", 0, 61.0)])
    assert [(each.setting, each.metrics["bleu_yin"]) for each in rows] == [
        ("functions", 25.0),
        ("cards", 61.0),
    ]


def test_the_table_shows_means_with_spread_and_single_runs_with_interval(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    rows = [row("task", 0, 60.0), row("task", 1, 62.0), row("bm25", 0, 63.0)]
    write_results(path, "retrieval", rows)
    table = Table({"bleu_yin": "BLEU", "other": "?"}).markdown(read_results(path))
    assert "| cards | task | 66 | 61.0 ± 1.4 | – |" in table
    assert "| cards | bm25 | 66 | 63.0 (59.0–67.0) | – |" in table


def test_seeds_of_another_run_join_the_mean(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    write_results(path, "retrieval", [row("task", 0, 60.0), row("task", 1, 62.0)])
    rows = write_results(path, "retrieval", [row("task", 2, 64.0)])
    assert [each.seed for each in rows] == [0, 1, 2, "mean"]
    assert rows[-1].metrics == {"bleu_yin": 62.0}


def test_a_figure_that_some_seeds_lack_has_no_mean() -> None:
    first, second = row("task", 0, 60.0), row("task", 1, 62.0)
    told = replace(first, metrics={**first.metrics, "copied": 30.0})
    mean = with_means([told, second])[-1]
    assert mean.seed == "mean"
    assert set(mean.metrics) == set(mean.spread) == set(second.metrics)


def test_seeds_of_other_settings_do_not_join_the_mean(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    long = {"training": {"steps": 100, "seed": 0, "rates": (1, 2)}}
    write_results(path, "retrieval", [replace(row("task", 0, 60.0), config=long)])
    again = {"training": {"steps": 100, "seed": 1, "rates": (1, 2)}}
    rows = write_results(path, "retrieval", [replace(row("task", 1, 62.0), config=again)])
    assert [each.seed for each in rows] == [0, 1, "mean"]
    short = {"training": {"steps": 50, "seed": 2, "rates": (1, 2)}}
    rows = write_results(path, "retrieval", [replace(row("task", 2, 50.0), config=short)])
    assert [each.seed for each in rows] == [2]


def test_intervals_are_of_the_mean() -> None:
    low, high = interval_of({"bleu_yin": [10.0, 20.0, 30.0] * 10})["bleu_yin"]
    assert 15 < low < 20 < high < 25


def test_a_table_replaces_the_one_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("# Title\n<!-- table: cards -->\nold\n<!-- end of table -->\nafter\n")
    assert insert_table(page, "cards", "| new |\n")
    assert page.read_text() == (
        "# Title\n<!-- table: cards -->\n| new |\n<!-- end of table -->\nafter\n"
    )
    assert not insert_table(page, "functions", "| new |\n")
    assert not insert_table(tmp_path / "nowhere.md", "cards", "| new |\n")


@given(
    st.builds(
        Row,
        system=st.sampled_from(["retrieve+edit", "seq2seq"]),
        setting=st.sampled_from(["cards", ""]),
        split=st.just("dev"),
        seed=st.sampled_from([0, "mean", "all"]),
        n=st.integers(0, 9),
        metrics=st.dictionaries(st.sampled_from(["exact", "avg_1"]), st.floats(0, 100)),
        variant=st.sampled_from(["", "no cache", "half, added"]),
        subset=st.sampled_from(["", "similarity 0 to 10"]),
        baseline=st.sampled_from(["", "seq2seq", "retrieve+edit"]),
        baseline_variant=st.sampled_from(["", "no cache"]),
        is_share=st.booleans(),
    )
)
def test_a_row_is_read_from_json_as_it_was_written(row: Row) -> None:
    written = json.loads(json.dumps(row.to_json()))
    assert written["system"] == row.system_label
    assert written["setting"] == row.setting_label
    back = Row.from_json(written)
    assert back == row if not row.is_plain else back == replace(row, baseline_variant="")


@pytest.mark.parametrize(
    ("changed", "system", "setting"),
    [
        ({}, "retrieve+edit", "cards"),
        ({"variant": "no cache"}, "retrieve+edit", "cards, no cache"),
        ({"baseline": "seq2seq"}, "retrieve+edit − seq2seq", "cards"),
        (
            {"baseline": "seq2seq", "variant": "half", "baseline_variant": "half"},
            "retrieve+edit − seq2seq",
            "cards, half",
        ),
        (
            {"baseline": "retrieve+edit", "baseline_variant": "no cache"},
            "retrieve+edit − no cache",
            "cards",
        ),
        (
            {"baseline": "LSTM", "baseline_variant": "oracle"},
            "retrieve+edit − LSTM, oracle",
            "cards",
        ),
        ({"variant": "half", "is_share": True}, "retrieve+edit", "cards, half, % of the gain"),
        ({"setting": "", "subset": "similarity 0 to 10"}, "retrieve+edit", "similarity 0 to 10"),
    ],
)
def test_labels_name_what_differs(changed: dict[str, Any], system: str, setting: str) -> None:
    labelled = replace(row("retrieve+edit", 0, 60.0), **changed)
    assert (labelled.system_label, labelled.setting_label) == (system, setting)
