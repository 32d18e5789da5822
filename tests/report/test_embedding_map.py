"""The map of the example space: its axes by a direct decomposition, its groups by counting."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from redraft.report import embedding_map as space
from redraft.report.embedding_map import (
    MAX_EVALUATED,
    MAX_GROUPS,
    OTHER,
    _inverse_frequencies,
    _weighted,
    embedding_map,
    group_key,
    groups_by,
    principal_axes,
    sampled,
)
from redraft.retrieval.auto import AutoRetriever, Selection
from redraft.retrieval.base import NoRetriever
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.retrieval.bow import BowRetriever
from redraft.types import Example
from tests.reports import task_retriever


def decomposed(vectors: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Shares of variance and axes, by the covariance as NumPy has it."""
    variance, components = np.linalg.eigh(np.cov(vectors.T.astype(np.float64), bias=True))
    return (variance / variance.sum())[::-1][:2], components.T[::-1][:2]


def noted(values: Sequence[object], key: str = "package") -> list[Example]:
    return [Example({"text": "x"}, "y", {key: value}) for value in values]


@pytest.mark.parametrize("shape", [(200, 30), (40, 300), (12, 5), (3, 9)])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_the_axes_are_those_of_a_direct_decomposition(
    shape: tuple[int, int], is_sparse: bool
) -> None:
    generator = np.random.default_rng(1)
    spread = np.linspace(3, 0.1, shape[1])
    vectors = (generator.normal(size=shape) * spread + 1).astype(np.float32)
    vectors *= generator.random(shape) < 0.6
    shares, components = decomposed(vectors)
    axes = principal_axes(sparse.csr_array(vectors) if is_sparse else vectors)
    assert axes is not None
    np.testing.assert_allclose(axes.shares, shares, rtol=1e-4)
    cosines = np.abs((axes.components * components).sum(axis=1))
    np.testing.assert_allclose(cosines, 1, atol=1e-4)
    points = axes.project(vectors)
    np.testing.assert_allclose(points.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(
        np.abs(points), np.abs((vectors - axes.mean) @ components.T), atol=1e-3
    )


def test_the_covariance_is_the_same_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32)
    whole = principal_axes(vectors)
    monkeypatch.setattr(space, "_BLOCK", 7)
    blocks = principal_axes(vectors)
    assert whole is not None
    assert blocks is not None
    np.testing.assert_allclose(whole.components, blocks.components, atol=1e-8)


def test_vectors_that_do_not_differ_in_two_directions_have_no_map() -> None:
    line = np.outer(np.arange(30), np.ones(20)).astype(np.float32)
    for vectors in (line[:1], np.ones((30, 20), np.float32), line):
        assert principal_axes(vectors) is None
        assert principal_axes(sparse.csr_array(vectors)) is None


def test_every_retriever_has_a_map(examples: list[Example]) -> None:
    evaluated = examples[:7]
    bm25 = Bm25Retriever.build(examples)
    retrievers = [task_retriever(examples), BowRetriever.build(examples), bm25]
    for retriever in (*retrievers, AutoRetriever(bm25, Selection("bm25", 0, ()))):
        found = embedding_map(retriever, evaluated)
        assert found is not None
        assert found.points.shape == (60, 2)
        assert found.evaluated.shape == (7, 2)
        # the evaluated inputs are examples here, and so lie where these lie
        np.testing.assert_allclose(found.evaluated, found.points[:7], atol=1e-5)
        assert 0 < found.share <= 1
        assert found.key == "verb"
        assert found.agreement is not None
        assert found.agreement.by_chance == pytest.approx(19 / 59)


def test_rare_words_weigh_more_where_nothing_is_learned() -> None:
    words = [("the", "cards"), ("the", "decks"), ("the", "cards")]
    vectors = _weighted(
        unit := BowRetriever.build(
            [Example({"text": " ".join(pair)}, "y") for pair in words]
        ).vectors,
        _inverse_frequencies(unit),
    ).toarray()
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    by_frequency = vectors[1][np.argsort(-vectors.astype(bool).sum(axis=0))]
    assert by_frequency[0] < vectors[1].max()


def test_an_empty_or_single_example_has_no_map(examples: list[Example]) -> None:
    assert embedding_map(NoRetriever(examples), examples) is None
    assert embedding_map(BowRetriever.build(examples[:1]), examples) is None


def test_no_more_is_drawn_than_can_be_told_apart(
    examples: list[Example], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(space, "MAX_POINTS", 25)
    found = embedding_map(BowRetriever.build(examples), examples * 6)
    assert found is not None
    assert len(found.points) == len(found.examples) == len(found.groups) == 25
    assert len(found.evaluated) == len(found.evaluated_rows) == MAX_EVALUATED
    assert found.size == 60


def test_a_sample_is_always_the_same_and_has_no_row_twice() -> None:
    assert sampled(3, 5) == [0, 1, 2]
    rows = sampled(1000, 50)
    assert rows == sampled(1000, 50) == sorted(set(rows))
    assert len(rows) == 50


def test_the_key_tells_the_examples_apart() -> None:
    examples = [
        Example(
            {"text": "x"}, "y", {"line": at, "part": "train", "public": at % 2 == 0, "of": at % 5}
        )
        for at in range(100)
    ]
    assert group_key(examples) == "of"
    assert group_key(noted(range(100))) is None
    assert group_key(noted(["same"] * 100)) is None
    assert group_key(noted([["a"], ["b"]] * 50)) is None
    assert group_key([Example({"text": "x"}, "y")] * 9) is None
    assert group_key([]) is None


def test_rare_values_are_the_others() -> None:
    examples = noted(["a"] * 60 + ["b"] * 30 + [f"rare {at}" for at in range(9)] + [""])
    assert groups_by(examples, "package") == ["a"] * 60 + ["b"] * 30 + [OTHER] * 10
    many = groups_by(noted([f"v{at % 20:02}" for at in range(200)]), "package")
    assert len(set(many) - {OTHER}) == MAX_GROUPS


def test_agreement_is_whole_where_groups_lie_apart() -> None:
    examples = [
        Example({"text": f"{word} {word} {at}"}, f"{at}", {"of": word})
        for at in range(9)
        for word in ("cards", "decks")
    ]
    found = embedding_map(BowRetriever.build(examples), [])
    assert found is not None
    assert found.agreement is not None
    assert found.agreement.share == 1
    assert found.evaluated.shape == (0, 2)
