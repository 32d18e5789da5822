"""Search in PostgreSQL beside exact search: what it finds, and what a filter leaves of it."""

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from redraft.index.base import ExactIndex
from redraft.index.neighbours import Neighbours
from redraft.postgres.examples import PostgresExamples, PostgresIndex
from redraft.postgres.store import created
from redraft.types import Example

SIZE, WIDTH = 6000, 24


def unit_vectors(count: int, seed: int = 0) -> NDArray[np.float32]:
    vectors = np.random.default_rng(seed).standard_normal((count, WIDTH), np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


VECTORS = unit_vectors(SIZE)
QUERIES = unit_vectors(20, seed=1)


@pytest.fixture(scope="module")
def stored(other_store: str) -> Iterator[PostgresExamples]:
    examples = [Example({"text": str(at)}, str(at), {"part": at % 100}) for at in range(SIZE)]
    with created(other_store, examples, VECTORS) as made:
        yield PostgresExamples.read(made)
        made.close()


@pytest.fixture
def index(stored: PostgresExamples) -> PostgresIndex:
    assert isinstance(stored.vector_index, PostgresIndex)
    return stored.vector_index


def recall(found: Neighbours, truth: Neighbours) -> float:
    assert found.rows.shape == truth.rows.shape
    return float((found.distances <= truth.distances + 1e-4).mean())


def is_by_the_graph(stored: PostgresExamples) -> bool:
    """Whether the server would walk the graph for a query like ours."""
    sql = stored.store._sql
    text = "[" + ",".join("0" for _ in range(WIDTH)) + "]"
    statement = sql._sql(
        f"EXPLAIN SELECT id FROM {{schema}}.examples ORDER BY vector <#> '{text}' LIMIT 10"
    )
    plan = stored.store._session.run(lambda it: it.execute(statement).fetchall())
    return "using examples_vector_idx" in str(plan)


def test_the_graph_finds_what_comparison_finds(
    stored: PostgresExamples, index: PostgresIndex
) -> None:
    assert is_by_the_graph(stored)
    found, truth = index.search(QUERIES, 10), ExactIndex(VECTORS).search(QUERIES, 10)
    assert recall(found, truth) >= 0.99
    assert np.allclose(found.distances, truth.distances, atol=1e-2)
    near = 2 - 2 * np.einsum("qkd,qd->qk", VECTORS[found.rows], QUERIES)
    assert np.allclose(found.distances, near, atol=1e-4)


@pytest.mark.parametrize("share", [0.01, 0.5])
def test_a_filter_leaves_k_results(
    share: float, stored: PostgresExamples, index: PostgresIndex
) -> None:
    allowed = stored.allowed({"part": 7}, {}) if share == 0.01 else np.arange(SIZE) % 2 == 0
    assert allowed.mean() == share
    found = index.search(QUERIES, 10, allowed=allowed)
    assert found.rows.shape == (len(QUERIES), 10)
    assert allowed[found.rows].all()
    truth = ExactIndex(VECTORS).search(QUERIES, 10, allowed=allowed)
    assert recall(found, truth) >= (1.0 if share == 0.01 else 0.99)


def test_a_filter_around_the_query_is_widened_until_it_is_enough(index: PostgresIndex) -> None:
    # the nearest half is not allowed: a walk that stops early would find nothing
    query = QUERIES[:1]
    order = ExactIndex(VECTORS).search(query, SIZE).rows[0]
    allowed = np.ones(SIZE, np.bool_)
    allowed[order[: SIZE // 2]] = False
    found = index.search(query, 10, allowed=allowed)
    assert found.rows[0].tolist() == order[SIZE // 2 : SIZE // 2 + 10].tolist()


def test_more_than_there_are_gives_all(index: PostgresIndex) -> None:
    allowed = np.arange(SIZE) < 3
    assert sorted(index.search(QUERIES[:1], 10, allowed=allowed).rows[0]) == [0, 1, 2]
    every = index.search(QUERIES[:1], SIZE + 5).rows[0]
    assert sorted(every) == list(range(SIZE))
    assert index.search(QUERIES[:1], 10, allowed=np.zeros(SIZE, np.bool_)).rows.shape == (1, 0)
    assert index.search(QUERIES[:0], 10).rows.shape == (0, 10)


def test_changes_that_are_not_written_are_searched_too(index: PostgresIndex) -> None:
    gone = ExactIndex(VECTORS).search(QUERIES, 3).rows.reshape(-1)
    gone = np.unique(gone)
    new = unit_vectors(30, seed=2)
    more = np.array([1, SIZE - len(gone) + 2])
    exact = ExactIndex(VECTORS).replace(gone, new).replace(more, new[:0])
    view = index.replace(gone, new).replace(more, new[:0])
    for queries in (QUERIES, new[:2]):
        assert recall(view.search(queries, 10), exact.search(queries, 10)) >= 0.99
    rows = np.array([0, 5, SIZE - len(gone), len(exact.vectors) - 1])
    assert np.allclose(view.take(rows), exact.vectors[rows], atol=1e-6)
    assert np.allclose(view.vectors, exact.vectors, atol=1e-6)
    everything = view.replace(np.arange(len(exact.vectors)), new)
    assert np.array_equal(everything.search(new[:2], 1).rows[:, 0], [0, 1])


def test_equals_come_in_the_order_of_their_rows(store: str) -> None:
    examples = [Example({"text": "same"}, str(at)) for at in range(5)]
    with created(store, examples, np.repeat(VECTORS[:1], 5, axis=0)) as made:
        index = PostgresExamples.read(made).vector_index
        assert index.search(VECTORS[:1], 3).rows.tolist() == [[0, 1, 2]]
        made.close()
