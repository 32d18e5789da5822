"""The Hearthstone study: every system and ablation becomes a row, on cards made up here."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.hearthstone import run
from experiments.hearthstone.prototype_use import (
    ADDED,
    HALF,
    adding_rows,
    gained_rows,
    given_rows,
)
from experiments.hearthstone.run import (
    ABLATIONS,
    METRICS,
    OTHER_RETRIEVERS,
    SEARCHES,
    SETTING,
    SINGLE_PROCESS,
    TABLES,
    ablation_rows,
    retriever_rows,
    search_rows,
)
from experiments.lib.bench import (
    COPIED,
    SYSTEMS,
    Bench,
    Questions,
    compared_rows,
    paper_rows,
    system_rows,
    without_ratios,
)
from experiments.lib.example_scores import append_scores, read_scores
from experiments.lib.paired import similarity_rows
from experiments.lib.results import SIMILARITY, Measured, Row, read_results
from redraft.config.toml import DEFAULT_RETRIEVER
from redraft.editing.base import Editor, VerbatimEditor
from redraft.editing.neural import NeuralEditor
from redraft.retrieval.base import Retriever
from redraft.training.fit import FitOptions, editor_config
from redraft.types import Candidate, Example, TracedToken

TINY: dict[str, Any] = {
    "retriever": {
        "network": {"word_width": 8, "width": 8, "embedding_dim": 8},
        "training": {"steps": 2},
    },
    "editor": {
        "network": {
            "word_width": 8,
            "width": 8,
            "decoder_layers": 1,
        },
        "decoding": {"max_length": 12, "beam_size": 2},
        "training": {"steps": 12, "learning_rate": 0.02},
    },
}


def card(at: int) -> Example:
    name = f"Card{at}"
    x = {"name": name, "properties": f"cost_{at % 4}", "description": "Deal damage."}
    return Example(x, f'class {name}(Card):\n    cost = {at % 4}\n    text = "{name}"\n')


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    train, asked = [card(at) for at in range(24)], [card(at) for at in range(30, 33)]
    return Bench(
        Questions(SETTING, "dev", train, asked), FitOptions(TINY, seed=1), tmp_path / "runs"
    )


def test_both_systems_and_every_retriever_alone_are_measured_on_the_same_cards(
    bench: Bench,
) -> None:
    rows = [each.row for each in (*retriever_rows(bench), *system_rows(bench))]
    assert [row.system for row in rows] == [*SINGLE_PROCESS, "retrieve+edit", "seq2seq"]
    for row in rows:
        assert (row.setting, row.split, row.seed, row.n) == (SETTING, "dev", 1, 3)
        assert {"bleu_yin", "bleu_paper", "exact", "exact_unseen", "parses"} <= set(row.metrics)
        low, high = row.interval["bleu_yin"]
        assert low <= row.metrics["bleu_yin"] <= high
    edited, alone = rows[-2:]
    assert edited.config["encoding"]["prototypes"] == 1
    assert alone.config["retriever"] == "none"
    assert alone.config["encoding"]["prototypes"] == 0
    assert edited.parameters > alone.parameters > 0
    assert edited.metrics["millions"] == round(edited.parameters / 1e6, 2)
    shown = {mark: table.markdown(rows) for mark, table in TABLES.items()}
    published = "| published, test | Retrieve+Edit (Hashimoto et al. 2018) | 66 | – | 70.0 |"
    assert published in shown[SETTING]
    assert "seq2seq" in shown[f"{SETTING}, costs"]
    assert "bm25" not in shown[f"{SETTING}, costs"]  # it was not trained
    assert "retrieve+edit" not in shown[f"{SETTING}, ahead"]


def test_each_ablation_changes_one_part_and_leaves_the_rest(bench: Bench) -> None:
    measured = [each.row for each in ablation_rows(bench)]
    rows = {row.variant: row for row in measured}
    retrieved = [f"{name} retrieval" for name in OTHER_RETRIEVERS]
    assert list(rows) == [*ABLATIONS, *retrieved]
    whole = dict(next(iter(system_rows(bench))).row.config)
    for name, settings in ABLATIONS.items():
        changed = rows[name].config
        for table, values in settings.items():
            for key, value in values.items():
                assert changed[table][key] == value != whole[table][key]
            rest = {k: v for k, v in changed[table].items() if k not in values}
            assert rest == {k: v for k, v in whole[table].items() if k not in values}


def test_the_same_weights_are_searched_in_other_ways(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[NeuralEditor] = []
    measure = Bench.measure

    def listening(
        self: Bench, system: str, variant: str, retriever: Retriever, editor: NeuralEditor
    ) -> Measured:
        searched.append(editor)
        return measure(self, system, variant, retriever, editor)

    monkeypatch.setattr(Bench, "measure", listening)
    variants = [each.row.variant for each in search_rows(bench)]
    assert variants == list(SEARCHES)
    plain = bench.trained("retrieve+edit", DEFAULT_RETRIEVER).decoding
    for editor, changed in zip(searched, SEARCHES.values(), strict=True):
        assert editor.decoding == replace(plain, **changed) != plain
    assert plain.syntax == "python"
    assert len(list(bench.folder.rglob("editor/**/log.jsonl"))) == 1


def test_a_finished_training_is_not_repeated(bench: Bench) -> None:
    first = next(iter(system_rows(bench))).row
    again = Bench(bench.questions, bench.options, bench.folder)
    second = next(iter(system_rows(again))).row
    assert _without_speed(second.metrics) == _without_speed(first.metrics)
    assert second.train_seconds == pytest.approx(first.train_seconds, abs=0.2)  # as it took then
    logs = list(bench.folder.rglob("editor/**/log.jsonl"))
    assert len(logs) == 1
    assert len(logs[0].read_text().splitlines()) == 8  # evaluations of 12 steps


def _without_speed(metrics: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in metrics.items() if name != "per_second"}


def test_the_papers_networks_have_the_papers_sizes() -> None:
    asked: list[tuple[str, str, Any]] = []

    class Listening(Bench):
        def edited(self, system: str, variant: str, retriever_name: str, settings: Any) -> Any:
            assert variant == ""
            asked.append((system, retriever_name, settings))
            return None, None

    list(paper_rows(Listening(Questions(SETTING, "dev", [], []), FitOptions(), Path())))
    assert [(system, name) for system, name, _ in asked] == [
        ("retrieve+edit (paper)", "task"),
        ("seq2seq (paper)", "none"),
    ]
    for _, _, settings in asked:
        assert settings["network"]["architecture"] == "lstm"
        assert settings["network"]["width"] == 256
        assert settings["training"]["steps"] == 3000
        editor_config(533, FitOptions({"editor": dict(settings)}))  # knows every setting


def test_an_editor_is_given_other_prototypes_than_the_nearest(bench: Bench) -> None:
    rows = {each.row.variant: each for each in given_rows(bench)}
    best, other, nothing = rows.values()
    assert list(rows) == [f"{what} prototype" for what in ("the best", "any", "no")]
    assert {each.row.system for each in rows.values()} == {"retrieve+edit"}
    assert best.values["bleu_yin"] != nothing.values["bleu_yin"] != other.values["bleu_yin"]
    assert best.row.metrics[SIMILARITY] > other.row.metrics[SIMILARITY] > 0
    assert SIMILARITY not in nothing.row.metrics
    table = TABLES[f"{SETTING}, variants"].markdown([best.row])
    assert f"| {SETTING}, the best prototype | retrieve+edit | 3 |" in table


def test_what_was_copied_from_a_prototype_is_counted(bench: Bench) -> None:
    copied, read = TracedToken("a", "prototype"), TracedToken("b", "input")

    class Copying(VerbatimEditor):
        def edit(self, *args: Any, **kwargs: Any) -> list[list[Candidate]]:
            origins = ((copied, read, read, read), (), (copied, read))
            answers = super().edit(*args, **kwargs)
            return [
                [replace(found, provenance=own)]
                for (found, *_), own in zip(answers, origins, strict=True)
            ]

    retriever = bench.retriever("bm25")
    measured = bench.measure("copying", "", retriever, Copying())
    assert measured.values[COPIED] == [25.0, 0.0, 50.0]
    assert measured.row.metrics[COPIED] == 25.0
    assert measured.values[SIMILARITY] == measured.values["bleu_yin"]  # prototypes as answers
    silent = bench.measure("bm25", "", retriever, VerbatimEditor())
    assert COPIED not in silent.values


def test_what_retrieval_brings_is_told_by_how_near_the_prototype_was(tmp_path: Path) -> None:
    def kept(system: str, seed: int, exact: list[float], **values: list[float]) -> None:
        row = Row(system, SETTING, "dev", seed, len(exact), {})
        measured = Measured(row, {"exact": exact, **values}, ["0", "1", "2"])
        append_scores(measured, tmp_path / "scores.jsonl")

    for seed, right in ((0, 100.0), (1, 0.0)):
        kept("retrieve+edit", seed, [100.0, right, 0.0], similarity=[90.0, 80.0, 20.0])
        kept("seq2seq", seed, [0.0, 0.0, 0.0])
    kept("retrieve+edit", 2, [0.0, 0.0, 0.0])  # of an earlier version, which did not tell
    kept("seq2seq", 2, [0.0, 0.0, 0.0])
    measured = read_scores(tmp_path / "scores.jsonl")
    (whole,) = compared_rows(measured, ["exact"])
    far, near = without_ratios(similarity_rows(measured, [SETTING], (0, 50, 101), ["exact"]))
    assert (whole.setting, whole.n, whole.metrics) == (SETTING, 3, {"exact": 33.33})
    assert (far.subset, far.n, far.metrics) == ("similarity 0 to 50", 1, {"exact": 0})
    assert (near.setting_label, near.n) == (f"{SETTING}, similarity 50 to 100", 2)
    assert near.metrics == {"exact": 75.0}
    assert near.config == {"seeds": [0, 1]}


def test_the_half_that_was_not_trained_on_is_added_to_retrieve_from(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, set[str]]] = []
    measure = Bench.measure

    def listening(
        self: Bench, system: str, variant: str, retriever: Retriever, editor: Editor
    ) -> Measured:
        asked.append((variant, {each.identity for each in retriever.examples}))
        return measure(self, system, variant, retriever, editor)

    monkeypatch.setattr(Bench, "measure", listening)
    rows = [each.row for each in adding_rows(bench)]
    assert [(row.system, row.variant) for row in rows] == [
        ("retrieve+edit", HALF),
        ("seq2seq", HALF),
        *((name, f"{ADDED}{how}") for name in SYSTEMS for how in ("", " and studied")),
    ]
    whole = {each.identity for each in bench.questions.train}
    half = {each.identity for each in bench.questions.train[::2]}
    assert dict(asked)[HALF] == half
    assert all(found == whole for variant, found in asked if ADDED in variant)
    # the weights are those of the half: nothing was trained for what was added
    assert len(list(bench.folder.rglob("editor/**/log.jsonl"))) == 2


def test_the_share_of_a_gain_is_of_the_means_over_the_seeds_that_have_every_step() -> None:
    def scored(variant: str, seed: int, values: list[float]) -> Measured:
        row = Row("retrieve+edit", SETTING, "dev", seed, len(values), {}, variant=variant)
        return Measured(row, {"exact": values, "parses": [100.0] * len(values)}, [])

    kept = [
        scored(variant, seed, [first + seed, second + seed])
        for seed in (0, 1)
        for variant, first, second in (
            (HALF, 10.0, 30.0),
            (ADDED, 20.0, 40.0),
            ("", 50.0, 70.0),
        )
    ]
    alone = scored(ADDED, 2, [0.0, 0.0])
    (row,) = gained_rows([*kept, alone], SETTING, ("exact", "parses"))
    assert row.setting_label == f"{SETTING}, {ADDED}, % of the gain"
    assert row.metrics == {"exact": 25.0}  # of parsing nothing was to be gained
    assert row.interval["exact"] == (25.0, 25.0)
    assert row.config == {"seeds": [0, 1]}

    seldom = [
        scored(variant, 0, [0.0] * 9 + [right]) for variant, right in ((HALF, 0.0), (ADDED, 50.0))
    ]
    (row,) = gained_rows([*seldom, scored("", 0, [0.0] * 9 + [100.0])], SETTING, ["exact"])
    assert row.metrics == {"exact": 50.0}
    assert row.interval == {}  # without the one answer nothing is gained that had a share
    table = TABLES[f"{SETTING}, gained"].markdown([row])
    assert table.endswith("| 10 | – | – | 50.0 |\n")


def test_the_differences_of_the_page_follow_from_the_scores_of_every_card() -> None:
    folder = Path(run.__file__).parent
    kept = {
        (row.system_label, row.setting_label): row.metrics
        for row in read_results(folder / "results.json")
        if row.is_difference and not row.subset
    }
    measured = read_scores(folder / "answers" / "dev.jsonl")
    found = {
        (row.system_label, row.setting_label): row.metrics
        for row in compared_rows(measured, METRICS)
    }
    assert kept == found
