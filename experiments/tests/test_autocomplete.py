"""The autocomplete study: every system in every setting, on functions made up here."""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from experiments.autocomplete.__main__ import KEPT, SIMILARITIES
from experiments.autocomplete.bench import CompletionBench, Size
from experiments.autocomplete.completions import METRICS, align_each, measure_retriever
from experiments.autocomplete.figures import write_plots
from experiments.autocomplete.run import ABLATIONS, ORACLE, ablation_rows, paper_rows, system_rows
from experiments.autocomplete.settings import (
    IN_PROJECT,
    OTHER_FILES,
    PAPER,
    SETTINGS,
    STRICT,
    Functions,
    settings,
)
from experiments.autocomplete.tables import TABLES
from experiments.lib.baselines import ClassicCache, suffix_match
from experiments.lib.costs import COSTS
from experiments.lib.example_scores import append_scores, read_scores
from experiments.lib.next_token import NEVER
from experiments.lib.paired import difference_rows, similarity_rows
from experiments.lib.results import SIMILARITY, Measured, Row
from experiments.lib.tables import Table
from redraft.data.pairs import write_pairs
from redraft.editing.session import align
from redraft.errors import PairsError
from redraft.models.batch import CachePositions
from redraft.models.ngram_cache import EVIDENCE, LONGEST
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.training.fit import FitOptions
from redraft.types import Example

TINY: dict[str, Any] = {
    "retriever": {"network": {"word_width": 8, "width": 8, "embedding_dim": 8}},
    "editor": {
        "network": {
            "word_width": 8,
            "width": 8,
            "decoder_layers": 1,
        },
        "decoding": {"max_length": 12, "beam_size": 2},
    },
}
SIZE = Size(steps=2, batch=4, retriever_steps=2, asked=2, fitted=2, decoded=2)
KINDS = ("add", "drop", "find", "list", "send")


def function(package: str, at: int, side: str) -> Example:
    kind = KINDS[at % len(KINDS)]
    name = f"{kind}_{package}"
    body = f"{kind}ed = self.{package}.{kind}(item{at})\nreturn {kind}ed"
    x = {"docstring": f"{kind} an item. Returns: it", "name": name, "arguments": f"self, item{at}"}
    meta = {"package": f"{package}_{side}", "file": f"{package}/{at % 2}.py", "line": at}
    return Example(x, body, meta)


def write_corpus(folder: Path) -> Path:
    for rule in ("strict", "paper"):
        (folder / rule).mkdir(parents=True)
        for side in ("train", "dev", "test"):
            packages = ("ham", "egg") if side != "train" else ("ham", "egg", "oil")
            found = [function(name, at, side) for name in packages for at in range(6)]
            write_pairs(found, folder / rule / f"{side}.jsonl")
    return folder


@pytest.fixture
def bench(tmp_path: Path) -> CompletionBench:
    corpus = write_corpus(tmp_path / "corpus")
    strict, paper = (Functions.read(corpus / rule) for rule in ("strict", "paper"))
    return CompletionBench(strict, paper, SIZE, FitOptions(TINY, seed=3), tmp_path / "runs")


def names(measured: list[Measured]) -> set[tuple[str, str]]:
    return {(each.row.system, each.row.setting_label) for each in measured}


def test_every_system_is_measured_and_compared_with_the_default(
    bench: CompletionBench, tmp_path: Path
) -> None:
    measured = list(system_rows(bench))
    everywhere = ("retrieve+edit", "seq2seq", "decoder-only", "bm25", "lexical", "task", "input")
    in_project = ("cache", "seq2seq + cache", "seq2seq + suffix")
    expected = {(system, setting) for system in everywhere for setting in SETTINGS}
    expected |= {(system, setting) for system in in_project for setting in SETTINGS[:2]}
    assert names(measured) == expected
    assert len(measured) == len(expected)
    for each in measured:
        assert each.row.seed == 3
        assert each.row.n == 4
        assert {"avg_1", "avg_10_paper", "longest_5"} <= set(each.row.metrics)
        assert set(each.row.interval) | set(COSTS) == set(each.row.metrics)
        assert each.row.metrics["avg_1"] == pytest.approx(np.mean(each.values["avg_1"]), abs=0.01)
        append_scores(each, tmp_path / "scores.jsonl", metrics=KEPT)
    edited = next(each.row for each in measured if each.row.system == "retrieve+edit")
    assert edited.config["encoding"]["prototypes"] == 1
    assert edited.parameters > 0
    assert set(METRICS) <= set(edited.metrics)

    kept = read_scores(tmp_path / "scores.jsonl")
    assert names(kept) == expected
    differences = {(row.system_label, row.setting): row for row in difference_rows(kept, METRICS)}
    similar = list(similarity_rows(kept, SETTINGS, SIMILARITIES, METRICS))
    assert sum(row.n for row in similar) == 4 * len(SETTINGS)
    # less each other system in every setting, and in each the one pair that is compared besides
    assert len(differences) == len(expected) - len(SETTINGS) + len(SETTINGS)
    ahead = differences["retrieve+edit − seq2seq", IN_PROJECT]
    by_name = {(each.row.system, each.row.setting): each.row.metrics for each in measured}
    ours, theirs = by_name["retrieve+edit", IN_PROJECT], by_name["seq2seq", IN_PROJECT]
    assert ahead.metrics["avg_10"] == pytest.approx(ours["avg_10"] - theirs["avg_10"], abs=0.02)
    low, high = ahead.interval["avg_10"]
    assert low <= ahead.metrics["avg_10"] <= high
    pages = write_plots(kept, tmp_path / "plots")
    assert {page.stem for page in pages} == {*SETTINGS, "distance"}
    assert all("<svg" in page.read_text() and "NaN" not in page.read_text() for page in pages)


def test_every_part_is_taken_away_once(bench: CompletionBench) -> None:
    measured = list(ablation_rows(bench))
    parts = ["no cache", "no prototype read", *ABLATIONS]
    assert [each.row.setting_label for each in measured] == [
        f"{setting}, {part}" for part in parts for setting in (IN_PROJECT, STRICT)
    ]
    read = [each.row.config["encoding"]["prototypes"] for each in measured]
    assert read == [1, 1, 0, 0, 3, 3, *[1] * 4]


def test_the_papers_network_and_the_best_prototypes_are_measured_across(
    bench: CompletionBench,
) -> None:
    measured = {(each.row.system, each.row.setting_label): each for each in paper_rows(bench)}
    oracle = f"{PAPER}, {ORACLE}"
    rows = difference_rows(list(measured.values()), METRICS)
    compared = [(row.system_label, row.setting_label) for row in rows]
    assert (f"retrieve+edit − {ORACLE}", PAPER) in compared
    assert ("retrieve+edit − retrieve+edit (LSTM)", oracle) in compared  # both have the best
    assert len(compared) == len(set(compared))
    assert set(measured) == {
        ("oracle", PAPER),
        ("retrieve+edit", PAPER),
        ("retrieve+edit", oracle),
        ("retrieve+edit (LSTM)", PAPER),
        ("retrieve+edit (LSTM)", oracle),
        ("seq2seq (LSTM)", PAPER),
    }
    network = measured["seq2seq (LSTM)", PAPER].row.config["network"]
    assert (network["architecture"], network["copying"]) == ("lstm", "positional")
    training = measured["seq2seq (LSTM)", PAPER].row.config["training"]
    assert training["steps"] == SIZE.steps
    best, found = (measured[name, PAPER].values[SIMILARITY] for name in ("oracle", "retrieve+edit"))
    assert all(one >= other for one, other in zip(best, found, strict=True))


def test_a_training_that_went_on_costs_all_of_its_parts(bench: CompletionBench) -> None:
    bench.editor("twice", Bm25Retriever.build(bench.strict.train))
    log = bench.folder / "twice" / "editor" / "log.jsonl"
    report = json.loads(log.read_text().splitlines()[-1])
    log.write_text(json.dumps({**report, "seconds": 600.0, "core_seconds": 900.0}) + "\n")
    _, about = bench.editor("twice", Bm25Retriever.build(bench.strict.train))
    assert about["train_seconds"] == 600.0
    row = kept_row("retrieve+edit", IN_PROJECT, 0, [1.0, 1.0, 1.0, 1.0])
    assert bench.about(row, about).row.metrics["core_minutes"] == 15.0


def test_every_row_is_in_one_table_or_is_an_ablation() -> None:
    def tables(system: str, setting: str, **parts: Any) -> list[str]:
        row = Row(system, setting, "test", 0, 4, {}, **parts)
        return [name for name, table in TABLES.items() if table.has(row)]

    assert tables("bm25", IN_PROJECT) == ["in a project", "costs"]
    assert tables("seq2seq", OTHER_FILES) == ["in a project"]
    assert tables("retrieve+edit (LSTM)", PAPER, variant=ORACLE) == ["across packages"]
    assert tables("retrieve+edit", STRICT, variant="no cache") == []
    less = partial(tables, "retrieve+edit")
    assert less(STRICT, baseline="retrieve+edit", baseline_variant="no cache") == ["parts"]
    assert less(PAPER, baseline="retrieve+edit", baseline_variant=ORACLE) == ["ahead"]
    assert less(PAPER, baseline="seq2seq") == ["ahead", "ratios"]
    assert less(PAPER, baseline="cache") == ["ahead"]
    assert tables("task", PAPER, baseline="lexical") == ["ratios"]
    assert less("", baseline="seq2seq", subset="similarity 0 to 10") == ["similarity"]


def kept_row(
    system: str, setting: str, seed: int, values: list[float], variant: str = ""
) -> Measured:
    metrics = {"avg_1": float(np.mean(values))}
    row = Row(system, setting, "test", seed, len(values), metrics, variant=variant)
    figures = {"avg_1": values, SIMILARITY: [5.0, 5.0, 50.0, 50.0]}
    return Measured(row, figures, ["a", "a", "b", "b"])


def test_a_difference_is_paired_over_the_seeds_that_both_have(tmp_path: Path) -> None:
    for each in (
        kept_row("retrieve+edit", IN_PROJECT, 0, [2.0, 4.0, 6.0, 8.0]),
        kept_row("retrieve+edit", IN_PROJECT, 1, [4.0, 6.0, 8.0, 10.0]),
        kept_row("retrieve+edit", IN_PROJECT, 2, [99.0, 99.0, 99.0, 99.0]),
        kept_row("seq2seq", IN_PROJECT, 0, [1.0, 3.0, 5.0, 7.0]),
        kept_row("seq2seq", IN_PROJECT, 1, [3.0, 5.0, 7.0, 9.0]),
        kept_row("retrieve+edit", IN_PROJECT, 0, [2.0, 4.0, 6.0, math.nan], "no cache"),
        kept_row("seq2seq", PAPER, 0, [1.0, 1.0, 1.0, 1.0]),  # the default is not measured there
    ):
        append_scores(each, tmp_path / "scores.jsonl")
    kept = read_scores(tmp_path / "scores.jsonl")
    found = {row.system_label: row for row in difference_rows(kept, METRICS)}
    similar = similarity_rows(kept, SETTINGS, SIMILARITIES, METRICS)
    assert set(found) == {"retrieve+edit − seq2seq", "retrieve+edit − no cache"}
    assert [(row.setting_label, row.n, row.metrics["avg_1"]) for row in similar] == [
        ("similarity 0 to 10", 2, 1.0),
        ("similarity 30 to 60", 2, 1.0),
    ]
    row = found["retrieve+edit − seq2seq"]
    assert (row.metrics["avg_1"], row.interval["avg_1"]) == (1.0, (1.0, 1.0))
    assert row.metrics["avg_1_ratio"] == pytest.approx(6 / 5, abs=0.01)
    assert row.config["seeds"] == [0, 1]
    assert found["retrieve+edit − no cache"].metrics["avg_1"] == 0.0
    table = Table({"avg_1": "average"}).markdown([row])
    assert "| in-project | retrieve+edit − seq2seq | 4 | 1.00 (1.00 to 1.00) |" in table


def test_a_question_is_answered_by_its_own_package_and_never_by_itself(
    bench: CompletionBench,
) -> None:
    for name in (IN_PROJECT, OTHER_FILES):
        setting = bench.asked[name]
        for example, ranked in zip(setting.asked, bench.found(setting), strict=True):
            assert ranked
            for found in (each.example for each in ranked):
                assert found.meta["package"] == example.meta["package"]
                assert found.y != example.y
                assert name == IN_PROJECT or found.meta["file"] != example.meta["file"]


@pytest.mark.parametrize("name", [STRICT, PAPER])
def test_across_packages_only_training_functions_answer(bench: CompletionBench, name: str) -> None:
    setting = bench.asked[name]
    packages = {each.example.meta["package"] for ranked in bench.found(setting) for each in ranked}
    assert packages
    assert all(package.endswith("_train") for package in packages)


def test_dev_and_test_ask_other_packages(bench: CompletionBench) -> None:
    asked = set(bench.asked[IN_PROJECT].packages), set(bench.dev[IN_PROJECT].packages)
    assert asked == ({"ham_test", "egg_test"}, {"ham_dev", "egg_dev"})


def test_the_same_questions_are_asked_again(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus")
    strict = Functions.read(corpus / "strict")
    first, second = (settings(strict, strict, split="test", each=3) for _ in range(2))
    assert first[IN_PROJECT].asked == second[IN_PROJECT].asked
    assert len(first[IN_PROJECT].asked) == 6


def test_a_corpus_that_lacks_a_side_is_told(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus")
    (corpus / "strict" / "dev.jsonl").unlink()
    with pytest.raises(PairsError, match=r"has no dev\.jsonl; build a corpus with"):
        Functions.read(corpus / "strict")


def test_a_prototype_that_is_the_answer_saves_nearly_every_key(bench: CompletionBench) -> None:
    setting = bench.asked[IN_PROJECT]
    retriever = Bm25Retriever.build(setting.asked)
    found = retriever.retrieve([each.x for each in setting.asked], 1)
    measured = measure_retriever("oracle", setting, found)
    assert all(ranks == 100.0 for ranks in measured.values["bleu_yin"])
    lengths = measured.values["longest_1"]
    assert all(length > 10 for length in lengths)
    assert all(similarity == 100.0 for similarity in measured.values[SIMILARITY])
    # two lines, each accepted by one key, and the newline between them
    for saved, example in zip(measured.values["keys_saved"], setting.asked, strict=True):
        assert saved == pytest.approx(100 * (1 - 3 / len(example.y)))
    assert 0 < measured.row.metrics["suggestion_ms"] < 100


def test_without_prototypes_nothing_is_foreseen(bench: CompletionBench) -> None:
    setting = bench.asked[IN_PROJECT]
    measured = measure_retriever("nothing", setting, [[] for _ in setting.asked])
    assert measured.row.metrics["longest_10"] == 0.0
    assert max(len(each.y) for each in setting.asked) < NEVER


def test_a_suffix_match_is_believed_from_its_least_length_on() -> None:
    cache = suffix_match(3)
    shares = cache.gate(torch.arange(LONGEST + 1), torch.zeros(LONGEST + 1, len(EVIDENCE)))
    assert (shares[:3] < 0.01).all()
    assert (shares[3:] > 0.99).all()


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_functions_of_no_package_are_not_projects() -> None:
    from redraft.training.editor_config import count_projects

    bare = [replace(function("ham", at, "train"), meta={}) for at in range(3)]
    assert count_projects(bare) == 1


def test_a_classic_cache_backs_off_as_witten_and_bell() -> None:
    a, b, c, d = 4, 5, 6, 7  # after "a b" came c twice and d once; after "b" alone once a
    outputs = torch.tensor([[2, a, b, c, 3, 2, a, b, c, 3, 2, a, b, d, 3, 2, b, a, 3]])
    cache = ClassicCache()
    state = cache.begin(CachePositions(outputs, torch.zeros_like(outputs)))
    state = cache.read(state, torch.tensor([[2, a, b]]))
    with torch.no_grad():
        probs = cache(state, 8).probs[0].double()
    words = [a, b, c, 3, a, b, c, 3, a, b, d, 3, b, a, 3, a, b]  # the output so far among them
    expected = torch.bincount(torch.tensor(words), minlength=8).double()
    expected /= expected.sum()
    for counts in ({c: 2, d: 1, a: 1}, {c: 2, d: 1}, {c: 2, d: 1}):  # after b, a b, <s> a b
        total, kinds = sum(counts.values()), len(counts)
        seen = torch.zeros(8, dtype=torch.float64)
        for word, count in counts.items():
            seen[word] = count
        expected = (seen + kinds * expected) / (total + kinds)
    assert torch.allclose(probs, expected, atol=1e-6)
    assert probs.sum() == pytest.approx(1.0)


@given(
    st.lists(st.sampled_from("abc"), max_size=12),
    st.lists(st.lists(st.sampled_from("abcd"), max_size=10), max_size=4),
)
def test_align_each_equals_align_of_every_prefix(
    tokens: list[str], outputs: list[list[str]]
) -> None:
    aligned = align_each(tokens, outputs)
    assert aligned.tolist() == [
        [align(tokens[:end], output) for output in outputs] for end in range(len(tokens) + 1)
    ]
