"""The comparison of retrievers, on data small enough to train in seconds."""

from dataclasses import replace
from pathlib import Path

import pytest

from experiments.autocomplete.settings import Functions
from experiments.public_pairs.comparison import MEAN_OF_ALL
from experiments.public_pairs.sets import PairSet
from experiments.retrieval.comparison import Setting, by_hold_out, learned_rows, plain_rows
from experiments.retrieval.corpora import cards, function_sets, functions
from experiments.retrieval.edits import edit_rows
from redraft.errors import PairsError
from redraft.training.fit import FitOptions
from redraft.types import Example

TINY = {
    "network": {"word_width": 16, "embedding_dim": 32, "width": 8},
    "training": {"steps": 6, "batch_size": 8},
}


def test_every_system_is_measured_and_none_beats_the_oracle(examples: list[Example]) -> None:
    asked, known = examples[::6], [each for at, each in enumerate(examples) if at % 6]
    setting = Setting("sentences", "dev", [(known, asked)], leave_out=False)
    comparison = by_hold_out(known, setting)
    options = FitOptions(settings={"retriever": TINY}, seed=1)
    rows = [*plain_rows(comparison), *learned_rows(comparison, options)]
    assert [row.system for row in rows] == ["lexical", "bm25", "oracle", "task", "input"]
    bleu = {row.system: row.metrics["bleu_yin"] for row in rows}
    assert bleu["oracle"] == max(bleu.values())
    trained = {row.system: row for row in rows}["task"]
    assert trained.seed == 1
    assert trained.parameters > 0
    assert trained.config["network"]["embedding_dim"] == 32
    assert all(
        low <= row.metrics[name] <= high
        for row in rows
        for name, (low, high) in row.interval.items()
    )


def made_up(package: str, at: int) -> Example:
    x = {"docstring": f"Return item {at} of {package}.", "name": f"item_{at}", "arguments": "self"}
    return Example(x, f"return self.{package}[{at}]", {"package": package, "file": f"{package}.py"})


def test_no_package_answers_for_itself_across_and_none_for_another_within() -> None:
    packages = [f"package_{name}" for name in range(20)]
    comparison = functions([made_up(name, at) for name in packages for at in range(10)])
    trained_on = {example.meta["package"] for example in comparison.train}
    for measured, chosen_by in comparison.settings:
        for setting in (measured, chosen_by):
            for known, asked in setting.groups:
                asked_of = {example.meta["package"] for example in asked}
                known_of = {example.meta["package"] for example in known}
                assert not asked_of & trained_on
                if setting.name == "in project":
                    assert known_of == asked_of
                else:
                    assert known_of == trained_on
    within = comparison.settings[0][0]
    assert within.leave_out
    assert replace(within, leave_out=False) != within


def test_no_asked_function_is_in_the_index_of_its_set() -> None:
    made = {name: [made_up(name, at) for at in range(20)] for name in ("ham", "egg", "oil")}
    held_out = {name: made[name] for name in ("egg", "oil")}
    across, within = function_sets(Functions(made["ham"], {}, held_out))
    assert across.asked == within.asked
    assert len(across.asked) == 24
    assert across.train == made["ham"]
    assert len(within.train) == 16
    assert not {each.identity for each in within.train} & {each.identity for each in within.asked}


def test_a_folder_without_the_split_names_those_it_has(tmp_path: Path) -> None:
    (tmp_path / "train_hs.in").touch()
    with pytest.raises(PairsError, match=r"has no test_hs\.in; splits that are there: train"):
        cards(tmp_path, asked="test")


def test_edits_are_measured_on_every_set_and_compared_with_bm25() -> None:
    cities = ("ghent", "lyon", "oslo", "turin", "porto", "graz", "bern", "cork", "riga", "vaduz")
    kinds = {"who lives in {}": "people of '{}'", "who works in {}": "jobs of '{}'"}
    pairs = [
        Example({"text": x.format(city)}, y.format(city))
        for city in cities
        for x, y in kinds.items()
    ]
    pairs += [Example({"text": f"rivers of {city}"}, f"rivers '{city}'") for city in cities]
    sets = [
        PairSet(name, "dev", pairs[at:], [pair for pair in pairs[:at] if pair not in pairs[at:]])
        for name, at in (("towns", 3), ("cities", 5))
    ]
    logged: list[str] = []
    rows = list(edit_rows(sets, logged.append))
    assert len(logged) == len(sets)
    plain = {(row.setting, row.system): row for row in rows if not row.is_difference}
    assert {setting for setting, _ in plain} == {"towns", "cities", MEAN_OF_ALL}
    for row in rows:
        if row.is_difference:
            own = plain[row.setting, row.system].metrics
            base = plain[row.setting, "bm25"].metrics
            assert row.metrics == pytest.approx(
                {name: own[name] - base[name] for name in own}, abs=0.02
            )
    assert not list(edit_rows([], logged.append))
