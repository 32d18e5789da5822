"""The re-ranker learns which differing words change the output, and is at its optimum."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redraft.editing.reranker import PENALTY, SIMILARITIES, Differences, Reranker
from redraft.errors import ModelError

WORDS = ("-nonstop", "-please", "+cheap", "-big\t+large")


def differences(words: list[list[str]], seed: int = 0) -> Differences:
    rng = np.random.default_rng(seed)
    return Differences(words, rng.normal(size=(len(words), len(SIMILARITIES))))


def test_a_word_that_changes_the_output_weighs_more_than_one_that_does_not() -> None:
    asked = [differences([["-nonstop"], ["-please"], []], seed) for seed in range(20)]
    labels = [np.array([False, True, True])] * 20
    weights = Reranker.fit(asked, labels).words
    assert weights["-nonstop"] < -1 < weights["-please"]


rows = st.lists(st.lists(st.sampled_from(WORDS), unique=True), min_size=4, max_size=30)


@settings(max_examples=30, deadline=None)
@given(rows, st.randoms(use_true_random=False))
def test_the_gradient_of_the_penalised_likelihood_is_zero(words: list[list[str]], random) -> None:  # type: ignore[no-untyped-def]
    asked = differences(words)
    is_right = np.array([random.random() < 0.5 for _ in words])
    fitted = Reranker.fit([asked], [is_right])
    errors = 1 / (1 + np.exp(-fitted.score(asked))) - is_right
    for word, weight in fitted.words.items():
        has_word = np.array([word in row for row in words])
        assert errors @ has_word + PENALTY * weight == pytest.approx(0, abs=2e-2)


def test_lists_rank_the_most_similar_first_whatever_their_level() -> None:
    columns = (*SIMILARITIES, "bm25")
    asked, similarities = [], []
    for seed in range(20):
        plain = differences([["-nonstop"], ["-please"], []], seed)
        wider = np.column_stack([plain.similarities, np.zeros(3)])
        asked.append(Differences(plain.words, wider))
        level = 0.5 * (seed % 2)  # some questions are hard for every prototype
        similarities.append(level + np.array([0.0, 0.4, 0.5]))
    fitted = Reranker.fit_lists(asked, similarities, names=columns)
    assert all(fitted.score(one).argmin() == 0 for one in asked)
    assert fitted.words["-nonstop"] < -1 < fitted.words["-please"]


def test_a_file_over_other_similarities_is_refused(tmp_path: Path) -> None:
    asked = differences([["-nonstop"], []])
    Reranker.fit([asked] * 2, [np.array([False, True])] * 2).save(tmp_path / "reranker.json")
    with pytest.raises(ModelError, match=r"reranker\.json: damaged"):
        Reranker.load(tmp_path / "reranker.json", names=(*SIMILARITIES, "bm25"))


def test_a_saved_reranker_scores_alike(tmp_path: Path) -> None:
    asked = differences([["-nonstop"], ["-please", "+cheap"], []])
    fitted = Reranker.fit([asked] * 3, [np.array([False, True, True])] * 3)
    fitted.save(tmp_path / "reranker.json")
    loaded = Reranker.load(tmp_path / "reranker.json")
    assert np.array_equal(loaded.score(asked), fitted.score(asked))


@pytest.mark.parametrize(
    "changed",
    [
        {"words": {"-nonstop": "much"}},
        {"words": {"-nonstop": 1e300}},
        {"words": ["-nonstop"]},
        {"bias": None},
        {"similarities": {}},
    ],
)
def test_a_damaged_file_is_refused_by_name(tmp_path: Path, changed: dict[str, object]) -> None:
    path = tmp_path / "reranker.json"
    asked = differences([["-nonstop"], []])
    Reranker.fit([asked] * 2, [np.array([False, True])] * 2).save(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))
    with pytest.raises(ModelError, match=r"reranker\.json: damaged \(not the weights"):
        Reranker.load(path)
