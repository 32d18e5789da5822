"""Exact and FAISS indexes against brute force."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from redraft.index import base as index_module
from redraft.index import faiss as faiss_module
from redraft.index.base import ExactIndex, Index, build_index, load_index
from redraft.index.faiss import FaissIndex
from redraft.index.neighbours import Neighbours
from redraft.storage.artifact import Artifact, open_artifact
from redraft.storage.artifact_writer import write_artifact

Vectors = NDArray[np.float32]
Mask = NDArray[np.bool_]

COUNT, WIDTH = 3_000, 32
NO_ROWS, NO_VECTORS = np.zeros(0, np.int64), np.zeros((0, WIDTH), np.float32)


def unit(values: NDArray[np.float64]) -> Vectors:
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    return np.asarray(values / lengths, np.float32)


def clustered(count: int, seed: int, *, spread: float = 0.4, clusters: int = 60) -> Vectors:
    """Unit vectors around a few centres, as directions of like inputs lie."""
    generator = np.random.default_rng(seed)
    centres = unit(np.random.default_rng(0).normal(size=(clusters, WIDTH)))
    chosen = centres[generator.integers(clusters, size=count)]
    return unit(chosen + spread * generator.normal(size=(count, WIDTH)) / WIDTH**0.5)


def brute_force(vectors: Vectors, query: Vectors, k: int, allowed: Mask) -> list[float]:
    """The k smallest squared distances, the subtraction written out."""
    differences = vectors[allowed].astype(np.float64) - query
    return sorted((differences**2).sum(axis=1).tolist())[:k]


def assert_nearest(found: Neighbours, vectors: Vectors, queries: Vectors, allowed: Mask) -> None:
    """The distances are the smallest, and are those of the rows, which are allowed."""
    for query, rows, distances in zip(queries, found.rows, found.distances, strict=True):
        expected = brute_force(vectors, query, len(rows), allowed)
        assert distances.tolist() == pytest.approx(expected, abs=1e-5)
        assert allowed[rows].all()
        assert len(set(rows.tolist())) == len(rows)
        own = ((vectors[rows].astype(np.float64) - query) ** 2).sum(axis=1)
        assert distances.tolist() == pytest.approx(own.tolist(), abs=1e-5)


def save(index: Index, folder: Path) -> Artifact:
    with write_artifact(folder) as staging:
        index.save(staging)
    return open_artifact(folder)


def assert_same(left: Neighbours, right: Neighbours) -> None:
    np.testing.assert_array_equal(left.rows, right.rows)
    np.testing.assert_array_equal(left.distances, right.distances)


@pytest.fixture(scope="module")
def vectors() -> Vectors:
    return clustered(COUNT, seed=1)


@pytest.fixture(scope="module")
def queries() -> Vectors:
    return clustered(200, seed=2)


@pytest.fixture(scope="module")
def cells(vectors: Vectors) -> FaissIndex:
    return FaissIndex.build(vectors)


@pytest.fixture(scope="module")
def graph(vectors: Vectors) -> FaissIndex:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(faiss_module, "HNSW_FROM", 100)
        return FaissIndex.build(vectors)


@pytest.fixture(params=["cells", "graph"])
def approximate(request: pytest.FixtureRequest) -> FaissIndex:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, FaissIndex)
    return found


@pytest.fixture
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a large index, of which even a fifth is too much to compare with."""
    monkeypatch.setattr(index_module, "EXACT_BELOW", 10)


coordinates = arrays.arrays(
    np.int8, st.tuples(st.integers(1, 12), st.just(3)), elements=st.integers(-2, 2)
)


@settings(deadline=None)
@given(coordinates, coordinates, st.integers(1, 15), st.data())
def test_exact_search_equals_brute_force(
    points: NDArray[np.int8], asked: NDArray[np.int8], k: int, data: st.DataObject
) -> None:
    vectors, queries = (unit(each + np.array([0.1, 0.2, 0.3])) for each in (points, asked))
    allowed = data.draw(arrays.arrays(np.bool_, len(vectors)))
    found = ExactIndex(vectors).search(queries, k, allowed=allowed)
    assert found.rows.shape == (len(queries), min(k, allowed.sum()))
    assert_nearest(found, vectors, queries, allowed)


def test_more_queries_than_fit_a_batch_are_answered_in_order() -> None:
    vectors = clustered(700, seed=3)
    found = ExactIndex(vectors).search(vectors, 1)
    assert found.rows[:, 0].tolist() == list(range(700))


def test_no_queries_give_an_empty_result(vectors: Vectors) -> None:
    assert len(ExactIndex(vectors).search(vectors[:0], 3).rows) == 0


def test_recall_on_indexed_vectors_is_at_least_99_per_cent(
    approximate: FaissIndex, vectors: Vectors
) -> None:
    assert approximate.recall.at_1 >= 0.99
    # leave one out, as it was measured, but of all rows and not of a sample
    truth = ExactIndex(vectors).search(vectors, 2).distances[:, 1]
    found = approximate.search(vectors, 2).distances[:, 1]
    assert (found <= truth + 1e-4).mean() >= 0.99


def test_recall_on_unseen_queries_is_at_least_99_per_cent(
    approximate: FaissIndex, vectors: Vectors, queries: Vectors
) -> None:
    truth = ExactIndex(vectors).search(queries, 1)
    found = approximate.search(queries, 1)
    assert (found.rows == truth.rows).mean() >= 0.99
    shared = (found.rows == truth.rows)[:, 0]
    np.testing.assert_allclose(found.distances[shared], truth.distances[shared], atol=1e-5)


def test_a_large_k_raises_the_effort_until_k_rows_are_found(
    approximate: FaissIndex, queries: Vectors, vectors: Vectors
) -> None:
    found = approximate.search(queries, 500)
    assert (found.rows >= 0).all()
    everything = approximate.search(queries[:3], COUNT)
    assert (np.sort(everything.rows, axis=1) == np.arange(len(vectors))).all()


def test_missing_neighbours_have_row_minus_one(approximate: FaissIndex, queries: Vectors) -> None:
    found = approximate.search(queries[:2], COUNT + 5)
    assert (found.rows[:, -5:] == -1).all()
    assert (found.rows[:, :-5] >= 0).all()


def test_a_narrow_filter_is_searched_exactly(
    approximate: FaissIndex, vectors: Vectors, queries: Vectors
) -> None:
    allowed = np.arange(COUNT) % 100 == 7
    found = approximate.search(queries, 10, allowed=allowed)
    assert found.rows.shape == (len(queries), 10)
    assert_nearest(found, vectors, queries, allowed)


def test_a_filter_that_allows_nothing_finds_nothing(
    approximate: FaissIndex, queries: Vectors
) -> None:
    found = approximate.search(queries, 10, allowed=np.zeros(COUNT, np.bool_))
    assert found.rows.shape == (len(queries), 0)


@pytest.mark.usefixtures("few_are_many")
def test_a_broad_filter_returns_k_allowed_rows(
    approximate: FaissIndex, vectors: Vectors, queries: Vectors
) -> None:
    allowed = np.arange(COUNT) % 5 == 1
    found = approximate.search(queries, 20, allowed=allowed)
    assert (found.rows >= 0).all()
    assert allowed[found.rows].all()
    truth = ExactIndex(vectors).search(queries, 20, allowed=allowed)
    assert (found.rows[:, 0] == truth.rows[:, 0]).mean() >= 0.99


@pytest.mark.parametrize("index_type", [ExactIndex, FaissIndex.build])
def test_an_added_vector_is_found_after_the_others(index_type: Callable[[Vectors], Index]) -> None:
    vectors, more = clustered(400, seed=4), clustered(5, seed=5, spread=2)
    index = index_type(vectors)
    grown = index.replace(NO_ROWS, more)
    assert grown.search(more, 1).rows[:, 0].tolist() == [400, 401, 402, 403, 404]
    assert len(index.vectors) == 400
    np.testing.assert_array_equal(grown.vectors, np.concatenate([vectors, more]))


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("index_type", [ExactIndex, FaissIndex.build])
def test_removed_vectors_are_never_found_and_later_rows_move_up(
    index_type: Callable[[Vectors], Index],
) -> None:
    vectors = clustered(400, seed=6)
    removed = np.array([0, 17, 399, 200, 17])
    smaller = index_type(vectors).replace(removed, NO_VECTORS)
    kept = np.setdiff1d(np.arange(400), removed)
    np.testing.assert_array_equal(smaller.vectors, vectors[kept])
    assert smaller.search(vectors[kept], 1).rows[:, 0].tolist() == list(range(len(kept)))
    # each removed vector finds its neighbours, but not itself
    assert (smaller.search(vectors[removed], 1).distances > 1e-3).all()


def test_removing_added_vectors_restores_the_index(queries: Vectors) -> None:
    index = ExactIndex(clustered(400, seed=7))
    grown = index.replace(NO_ROWS, clustered(20, seed=8))
    again = grown.replace(np.arange(400, 420), NO_VECTORS)
    assert_same(again.search(queries, 9), index.search(queries, 9))


def test_a_saved_exact_index_finds_the_same_from_its_file(
    tmp_path: Path, vectors: Vectors, queries: Vectors
) -> None:
    index = ExactIndex(vectors)
    loaded = load_index(save(index, tmp_path / "model"))
    assert isinstance(loaded, ExactIndex)
    assert isinstance(loaded.vectors, np.memmap)
    assert_same(loaded.search(queries, 7), index.search(queries, 7))
    grown = loaded.replace(NO_ROWS, queries[:1])
    assert grown.search(queries[:1], 1).rows.tolist() == [[COUNT]]


def test_a_saved_approximate_index_finds_the_same_from_its_files(
    approximate: FaissIndex, tmp_path: Path, queries: Vectors
) -> None:
    loaded = load_index(save(approximate, tmp_path / "model"))
    assert isinstance(loaded, FaissIndex)
    assert isinstance(loaded.vectors, np.memmap)
    assert loaded.recall == approximate.recall
    assert_same(loaded.search(queries, 7), approximate.search(queries, 7))
    allowed = np.arange(COUNT) % 100 == 3
    few, same = (each.search(queries, 7, allowed=allowed) for each in (loaded, approximate))
    assert_same(few, same)


def test_a_loaded_approximate_index_grows_and_shrinks(
    cells: FaissIndex, tmp_path: Path, queries: Vectors
) -> None:
    loaded = load_index(save(cells, tmp_path / "model"))
    changed = loaded.replace(np.array([0]), queries[:1])
    assert changed.search(queries[:1], 1).rows.tolist() == [[COUNT - 1]]


def test_few_vectors_are_indexed_exactly_and_many_by_faiss(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(index_module, "EXACT_BELOW", 300)
    few, many = build_index(clustered(299, seed=9)), build_index(clustered(300, seed=9))
    assert isinstance(few, ExactIndex)
    assert isinstance(many, FaissIndex)
    assert isinstance(load_index(save(few, tmp_path / "few")), ExactIndex)
    assert isinstance(load_index(save(many, tmp_path / "many")), FaissIndex)


def test_very_many_vectors_are_indexed_by_hnsw(cells: FaissIndex, graph: FaissIndex) -> None:
    assert type(cells.structure).__name__ == "IndexIVFFlat"
    assert type(graph.structure).__name__ == "IndexHNSWFlat"


def test_the_same_vectors_give_the_same_index(queries: Vectors) -> None:
    vectors = clustered(500, seed=10)
    first, second = (FaissIndex.build(vectors) for _ in range(2))
    assert first.recall == second.recall
    assert_same(first.search(queries, 5), second.search(queries, 5))


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("kept", [0, 1, 2, 12])
def test_all_but_a_few_vectors_can_be_removed_from_an_approximate_index(kept: int) -> None:
    vectors = clustered(400, seed=11)
    left = FaissIndex.build(vectors).replace(np.arange(kept, 400), NO_VECTORS)
    found = left.search(vectors[:kept], 1)
    assert found.rows.ravel().tolist() == list(range(kept))


def test_copies_of_one_vector_can_be_indexed() -> None:
    vectors = np.repeat(clustered(2, seed=12), 200, axis=0)
    index = FaissIndex.build(vectors)
    assert (index.search(vectors[:1], 200).rows < 200).all()
