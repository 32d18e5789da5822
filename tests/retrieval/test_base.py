"""The base class of retrievers, tested with given distances."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from redraft.index.neighbours import Neighbours, nearest
from redraft.retrieval.base import NoRetriever, Retriever
from redraft.storage.artifact import Artifact
from redraft.storage.examples import replaced
from redraft.types import Example, Input


class LineRetriever(Retriever):
    """Inputs are numbers; the distance is how far apart they are. Counts its searches."""

    name = "line"

    def __init__(self, examples: Sequence[Example]) -> None:
        self.examples = examples
        self.widths: list[int] = []

    def search(
        self, inputs: Sequence[Input], k: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> Neighbours:
        self.widths.append(k)
        places = np.array([float(example.x["text"]) for example in self.examples], np.float32)
        queries = np.array([float(x["text"]) for x in inputs], np.float32)
        return nearest(np.abs(queries[:, None] - places), k, allowed=allowed)

    def add(self, examples: Sequence[Example]) -> "LineRetriever":
        return LineRetriever([*self.examples, *examples])

    def remove(self, rows: Sequence[int]) -> "LineRetriever":
        return LineRetriever(replaced(self.examples, rows, []))

    def save(self, folder: Path) -> None:
        raise NotImplementedError

    @classmethod
    def load(cls, artifact: Artifact, examples: Sequence[Example]) -> "LineRetriever":
        raise NotImplementedError


def at(place: float, y: str | None = None, **meta: str) -> Example:
    return Example({"text": str(place)}, y or f"y{place}", meta)


def places(retriever: Retriever, query: float, k: int, **options: object) -> list[float]:
    found = retriever.retrieve([{"text": str(query)}], k, **options)[0]  # type: ignore[arg-type]
    return [float(prototype.example.x["text"]) for prototype in found]


def test_prototypes_come_nearest_first_with_their_distances() -> None:
    retriever = LineRetriever([at(5), at(1), at(3)])
    found = retriever.retrieve([{"text": "0"}], 3)[0]
    assert [(p.example.y, p.distance) for p in found] == [("y1", 1), ("y3", 3), ("y5", 5)]


def test_no_two_prototypes_have_the_same_output() -> None:
    retriever = LineRetriever([at(1, "a"), at(2, "a"), at(3, "b"), at(4, "c")])
    assert places(retriever, 0, 3) == [1, 3, 4]


def test_duplicate_outputs_do_not_hide_farther_examples() -> None:
    retriever = LineRetriever([*(at(place, "same") for place in range(1, 50)), at(99, "other")])
    assert places(retriever, 0, 2) == [1, 99]
    assert retriever.widths[-1] >= 50


def test_leave_one_out_never_returns_the_example_nor_one_of_its_output() -> None:
    examples = [at(1), at(1), at(2), at(3), at(3.1, "y2")]
    retriever = LineRetriever(examples)
    found = retriever.retrieve([example.x for example in examples], 1, exclude=examples)
    assert [prototypes[0].example.y for prototypes in found] == ["y2", "y2", "y1", "y2", "y3"]


def test_a_filter_keeps_the_examples_whose_meta_matches() -> None:
    retriever = LineRetriever([at(1, package="a"), at(2, package="b"), at(3, package="b")])
    assert places(retriever, 0, 5, where={"package": "b"}) == [2, 3]
    assert places(retriever, 0, 5, where={"package": "c"}) == []
    assert places(retriever, 0, 5, where={"unknown": "b"}) == []


def test_a_k_above_the_number_of_examples_returns_all() -> None:
    assert places(LineRetriever([at(1), at(2)]), 0, 10) == [1, 2]


def test_batches_give_what_single_inputs_give() -> None:
    retriever = LineRetriever([at(place, f"y{place % 3}") for place in range(20)])
    queries: list[Input] = [{"text": str(q)} for q in (0.2, 7.7, 19)]
    together = retriever.retrieve(queries, 3)
    assert together == [retriever.retrieve([query], 3)[0] for query in queries]


def test_the_null_retriever_retrieves_nothing() -> None:
    assert NoRetriever([at(1)]).retrieve([{"text": "0"}, {"text": "1"}], 3) == [[], []]


@given(
    arrays.arrays(np.float32, (3, 12), elements=st.sampled_from([0.0, 0.25, 0.5, 1.0])),
    st.integers(1, 15),
    arrays.arrays(np.bool_, 12),
)
def test_nearest_is_a_stable_sort_of_the_allowed_rows(
    distances: NDArray[np.float32], k: int, allowed: NDArray[np.bool_]
) -> None:
    found = nearest(distances, k, allowed=allowed)
    for row, rows, values in zip(distances, found.rows, found.distances, strict=True):
        expected = [i for i in np.argsort(row, kind="stable") if allowed[i]][:k]
        assert rows.tolist() == expected
        assert values.tolist() == row[expected].tolist()


@pytest.mark.parametrize("count", [0, 3])
def test_nearest_of_nothing_is_nothing(count: int) -> None:
    found = nearest(np.zeros((2, count), np.float32), 4, allowed=np.zeros(count, np.bool_))
    assert found.rows.shape == (2, 0)


def test_the_weight_of_a_prototype_falls_with_its_distance() -> None:
    retriever = LineRetriever([at(0.1), at(0.5)])
    near, far = retriever.retrieve([{"text": "0"}], 2)[0]
    assert near.log_weight == pytest.approx(-retriever.inverse_temperature * near.distance)
    assert near.log_weight - far.log_weight == pytest.approx(
        retriever.inverse_temperature * 0.4, rel=1e-5
    )


def test_stochastic_retrieval_draws_by_p_ret_without_replacement() -> None:
    places = np.array([0.02, 0.1, 0.17, 0.3])
    retriever = LineRetriever([at(float(place)) for place in places])
    p_ret = np.exp(-retriever.inverse_temperature * places)
    p_ret /= p_ret.sum()
    count = 4000
    drawn = retriever.retrieve([{"text": "0"}] * count, 2, rng=np.random.default_rng(0))
    ranks = {f"y{place}": rank for rank, place in enumerate(places)}
    pairs = np.zeros((4, 4))
    for first, second in drawn:
        pairs[ranks[first.example.y], ranks[second.example.y]] += 1 / count
    # the second is drawn from what the first has left
    expected = p_ret[:, None] * p_ret[None] / (1 - p_ret[:, None])
    np.fill_diagonal(expected, 0)
    deviation = np.sqrt(expected * (1 - expected) / count)
    assert (np.abs(pairs - expected) <= 4.5 * deviation).all()
    assert (np.abs(pairs.sum(1) - p_ret) <= 4.5 * np.sqrt(p_ret * (1 - p_ret) / count)).all()


def test_a_seed_draws_the_same_prototypes_and_all_of_them_if_few() -> None:
    retriever = LineRetriever([at(place) for place in range(6)])
    queries: list[Input] = [{"text": "1"}, {"text": "4"}]
    one, other = (
        retriever.retrieve(queries, 3, rng=np.random.default_rng(seed)) for seed in (7, 7)
    )
    assert one == other
    (everything,) = retriever.retrieve(queries[:1], 50, rng=np.random.default_rng(0))
    assert {found.example.y for found in everything} == {f"y{place}" for place in range(6)}
    assert NoRetriever().retrieve(queries, 2, rng=np.random.default_rng(0)) == [[], []]
