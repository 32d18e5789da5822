"""The study of public pair sets, on a tiny folder of sets: systems, promises, messy rows."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from experiments.lib.results import Measured, Row, read_results
from experiments.public_pairs import systems as measured_systems
from experiments.public_pairs.__main__ import main
from experiments.public_pairs.comparison import comparison_rows, mean_of_means
from experiments.public_pairs.confidences import calibration_error, chance_error, confidence_rows
from experiments.public_pairs.promises import revalued_pairs, stored_again
from experiments.public_pairs.sets import PairSet, read_sets, set_names
from experiments.public_pairs.support import replace_words
from experiments.public_pairs.systems import (
    SYSTEMS,
    TRAINED,
    UNTRAINED,
    proposed_outputs,
    system_rows,
    systems,
)
from experiments.public_pairs.tables import TABLES
from redraft.data.pairs import write_pairs
from redraft.errors import PairsError
from redraft.model import RetrieveAndEdit
from redraft.training.fit import FitOptions
from redraft.types import TEXT_FIELD, Example

CITIES = ("ghent", "lyon", "oslo", "turin", "porto", "graz", "bern", "cork", "riga", "vaduz")
KINDS = {
    "how many people live in {city} ?": 'SELECT population FROM city WHERE name = "{city}" ;',
    "which river runs through {city} ?": 'SELECT river FROM course WHERE town = "{city}" ;',
    "list the museums of {city}": 'SELECT title FROM museum WHERE place = "{city}" ;',
}


def pair(question: str, city: str) -> Example:
    return Example({TEXT_FIELD: question.format(city=city)}, KINDS[question].format(city=city))


def pairs_of(cities: tuple[str, ...]) -> list[Example]:
    return [pair(question, city) for city in cities for question in KINDS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sets with train and dev, and one without dev."""
    folder = tmp_path_factory.mktemp("sets")
    for name in ("town-question", "city-question"):
        write_pairs(pairs_of(CITIES[:8]), folder / name / "train.jsonl")
        write_pairs(pairs_of(CITIES[8:]), folder / name / "dev.jsonl")
    write_pairs(pairs_of(CITIES), folder / "half" / "train.jsonl")
    return folder


@pytest.fixture
def pairs(folder: Path) -> PairSet:
    return next(read_sets(folder, "dev", ["city-question"]))


def run(folder: Path, out: Path, *arguments: str) -> list[Row]:
    main(["--data", str(folder), "--no-train", "-o", str(out), *arguments])
    return read_results(out / "results.json")


def test_every_untrained_system_is_measured_on_every_set(folder: Path, tmp_path: Path) -> None:
    rows = run(folder, tmp_path)
    plain = [row for row in rows if row.is_plain and not row.setting.startswith("mean")]
    names = ["verbatim", "substitution", UNTRAINED, "oracle, untrained"]
    assert [row.system for row in plain] == 2 * names
    assert {row.setting for row in plain} == {"city-question", "town-question"}
    by_name = {row.system: row for row in plain if row.setting == "city-question"}
    assert by_name["verbatim"].metrics["exact"] == 0.0
    assert by_name["oracle, untrained"].metrics["exact"] == 100.0
    assert by_name[UNTRAINED].metrics["fit_seconds"] > 0
    assert "milliseconds" not in by_name["oracle, untrained"].metrics
    kept = (tmp_path / "answers" / "city-question-dev.jsonl").read_text().splitlines()
    assert [len(json.loads(line)["values"]["exact"]) for line in kept] == 4 * [6]
    shown = TABLES["public pairs, question splits"].markdown(rows)
    assert f"| city-question | {UNTRAINED} | 6 |" in shown


def test_the_default_is_compared_on_each_set_and_on_their_mean(
    folder: Path, tmp_path: Path
) -> None:
    rows = run(folder, tmp_path, "--sets", "city-question")
    assert not [row for row in rows if row.setting.startswith("mean")]
    rows = run(folder, tmp_path, "--sets", "town-question")  # joins the set of the first run
    ahead = {(row.setting, row.baseline): row for row in rows if row.is_difference}
    settings = {setting for setting, _ in ahead}
    assert settings == {
        "city-question",
        "town-question",
        "mean of question splits",
        "mean of all sets",
    }
    mean = ahead["mean of all sets", "verbatim"]
    assert mean.n == 12
    assert mean.config["sets"] == ["city-question", "town-question"]
    both = [ahead[name, "verbatim"].metrics["exact"] for name in mean.config["sets"]]
    assert mean.metrics["exact"] == pytest.approx(sum(both) / 2, abs=0.01)
    low, high = mean.interval["exact"]
    assert low <= mean.metrics["exact"] <= high


def test_seeds_of_a_trained_system_are_averaged_before_it_is_compared() -> None:
    def one(system: str, seed: int, exact: list[float]) -> Measured:
        values = {"exact": exact, "bleu_yin": exact}
        return Measured(Row(system, "a", "dev", seed, 2, {}), values, ["0", "1"])

    measured = [
        one("verbatim", 0, [0.0, 0.0]),
        one(TRAINED, 0, [100.0, 0.0]),
        one(TRAINED, 1, [100.0, 100.0]),
        one(UNTRAINED, 0, [100.0, 0.0]),
    ]
    rows = list(comparison_rows(measured, "dev"))
    assert {row.system_label: row.metrics["exact"] for row in rows} == {
        f"{TRAINED} − verbatim": 75.0,
        f"{TRAINED} − {UNTRAINED}": 25.0,
        f"{UNTRAINED} − verbatim": 50.0,
    }


def test_a_mean_over_sets_gives_every_set_the_same_weight() -> None:
    low, high = mean_of_means([np.zeros(10), np.full(1000, 100.0)])
    assert low == high == 50.0


def test_promises_hold_on_pairs_that_are_stored_or_added(folder: Path, tmp_path: Path) -> None:
    rows = run(folder, tmp_path, "--measure", "promises")
    assert {row.variant for row in rows} == {"stored and added", "unknown", "confidence"}
    by_variant = {row.variant: row for row in rows if row.setting == "city-question"}
    kept = by_variant["stored and added"]
    assert kept.metrics["stored"] == kept.metrics["added"] == 100.0
    assert kept.config["n_stored"] == 24
    assert kept.config["n_revalued"] == 6
    assert by_variant["unknown"].config["n_nonsense_marked"] == 600
    assert by_variant["unknown"].metrics["nonsense_marked"] > 50
    pooled = [row for row in rows if row.setting == "all question splits"]
    assert [row.n for row in pooled] == [12]
    for name in ("stored and added", "unknown", "confidence"):
        assert "| city-question, " in TABLES[f"public pairs, {name}"].markdown(rows)


def test_an_input_is_right_with_any_of_its_stored_outputs(pairs: PairSet) -> None:
    model = RetrieveAndEdit.fit(pairs.train, editor="verbatim")
    first = pairs.train[0]
    again = Example({TEXT_FIELD: first.x[TEXT_FIELD].upper()}, "other")
    assert stored_again(model, [again], pairs.train) == [100.0]
    assert stored_again(model, [again], [again]) == [0.0]


def test_revalued_questions_have_other_values_than_the_asked_ones(pairs: PairSet) -> None:
    revalued = revalued_pairs(pairs)
    assert len(revalued) == len(pairs.asked)
    for old, new in zip(pairs.asked, revalued, strict=True):
        assert new.y != old.y
        assert new.y in {example.y for example in pairs_of(CITIES)}


def test_the_calibration_error_is_that_of_ten_bins_of_equal_size() -> None:
    confidence = np.repeat([0.2, 0.8], 50)
    right = np.tile([1.0, 0.0, 0.0, 0.0, 0.0], 10)
    assert calibration_error(confidence, np.append(right, 1 - right)) == pytest.approx(0.0)
    assert calibration_error(confidence, np.ones(100)) == pytest.approx(0.5)
    assert 0 < chance_error(confidence) < 0.2


def test_precision_is_of_the_answered_questions_and_absent_without_any() -> None:
    row = Row(UNTRAINED, "a", "dev", 0, 4, {})
    values: dict[str, list[float]] = {
        "confidence": [0.9, 0.9, 0.1, 0.1],
        "right": [1.0, 0.0, 1.0, 0.0],
        "answered": [1.0, 1.0, 0.0, 0.0],
    }
    packages = [str(i) for i in range(4)]
    answered, silent = confidence_rows(
        [
            Measured(row, values, packages),
            Measured(replace(row, setting="b"), {**values, "answered": [0.0] * 4}, packages),
        ],
        0.9,
    )
    assert (answered.metrics["precision"], answered.metrics["coverage"]) == (50.0, 50.0)
    assert answered.metrics["brier_constant"] == 25.0
    assert silent.metrics["coverage"] == 0.0
    assert "precision" not in silent.metrics


@pytest.mark.parametrize(
    ("x", "output"),
    [
        ("invoices of Graz?", "SELECT * FROM invoice WHERE city = 'Graz'"),
        ("invoices of Ghent", "SELECT * FROM invoice WHERE city = 'ghent'"),
        ("invoices of New York", "SELECT * FROM invoice WHERE city = 'New York'"),
    ],
)
def test_the_difflib_baseline_replaces_the_words_that_differ(x: str, output: str) -> None:
    stored = "SELECT * FROM invoice WHERE city = 'ghent'"
    assert replace_words(x, "invoices of Ghent", stored) == output


def test_messy_rows_need_no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.public_pairs.support.SEEDS", (0,))
    main(["--measure", "messy", "-o", str(tmp_path)])
    rows = read_results(tmp_path / "results.json")
    assert [row.system for row in rows] == ["verbatim", "difflib substitution", UNTRAINED]
    for row in rows:
        assert set(row.metrics) == {
            "answerable",
            "stored",
            "substitute",
            "mapping",
            "unanswerable",
        }
    assert rows[0].metrics["substitute"] == rows[0].metrics["unanswerable"] == 0.0
    assert "| support | verbatim | 60 |" in TABLES["public pairs, support"].markdown(rows)


def test_networks_are_trained_with_the_budget_and_the_rest_without(
    pairs: PairSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {}

    def fit(*_: Any, retriever: str, editor: str, options: FitOptions) -> RetrieveAndEdit:
        given[f"{retriever} {editor} {options.seed}"] = options.budget
        return RetrieveAndEdit.fit(pairs.train, editor="verbatim")

    monkeypatch.setattr(measured_systems, "RetrieveAndEdit", SimpleNamespace(fit=fit))
    monkeypatch.setattr(measured_systems, "ORACLES", {})
    for system in SYSTEMS[:5]:
        options = FitOptions(seed=2, budget=9.0)
        rows = list(system_rows(system, pairs, options, config={"budget": "9s"}))
        assert [one.row.seed for one in rows] == [2]
        assert rows[0].row.config == ({"budget": "9s"} if system.is_trained else {})
    assert given == {
        "bm25 verbatim 2": 0.0,
        "bm25 substitution 2": 0.0,
        "bm25 choosing 2": 0.0,
        "none neural 2": 9.0,
        "bm25 neural 2": 9.0,
    }


def test_systems_are_chosen_by_name_and_by_whether_they_are_trained() -> None:
    untrained = ["verbatim", "substitution", UNTRAINED]
    trained = ["seq2seq", "neural", TRAINED]
    assert [system.name for system in systems(trained=True)] == [*untrained, *trained]
    assert [system.name for system in systems(trained=False)] == untrained
    assert [system.name for system in systems(trained=True, names=[TRAINED])] == [TRAINED]
    assert systems(trained=False, names=[TRAINED]) == []


def test_only_the_default_editor_has_proposals(pairs: PairSet) -> None:
    model = RetrieveAndEdit.fit(pairs.train, editor="verbatim")
    with pytest.raises(TypeError, match="verbatim"):
        proposed_outputs(model, pairs.asked[0].x)


def test_sets_without_the_split_are_left_out_and_named_if_asked_for(folder: Path) -> None:
    assert set_names(folder, "dev") == ["city-question", "town-question"]
    with pytest.raises(PairsError, match=r"no set 'half' .*: city-question, town-question"):
        set_names(folder, "dev", ["half"])
    with pytest.raises(PairsError, match="sets that are there: none"):
        set_names(folder, "test")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "--data is missing"),
        (("--data", "nowhere"), "nowhere: no set with train.jsonl and dev.jsonl"),
        (("--measure", "messy", "--budget", "soon"), "--budget soon: expected a time"),
        (("--measure", "messy", "--precision", "90"), "--precision 90.0: expected a share"),
    ],
)
def test_a_wrong_option_is_an_error_of_one_line(
    arguments: tuple[str, ...],
    reason: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["-o", str(tmp_path), *arguments])
    assert stop.value.code == 2
    assert f"error: {reason}" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
