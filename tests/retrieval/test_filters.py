"""Filters of every retriever against filtering all results."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from redraft.retrieval.base import Retriever
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.retrieval.bow import BowRetriever
from redraft.retrieval.dense import TaskRetriever
from redraft.types import Example, Input

WORDS = ("draw", "a", "card", "deal", "damage")


class CountingEncoder:
    """An input's direction is how often it has each word."""

    def encode(self, inputs: Sequence[Input]) -> NDArray[np.float32]:
        counts = [[1 + x["text"].split().count(word) for word in WORDS] for x in inputs]
        vectors = np.array(counts, np.float32)
        unit: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit


def learned(examples: Sequence[Example]) -> Retriever:
    return TaskRetriever.build(examples, CountingEncoder())


every = pytest.mark.parametrize("build", [Bm25Retriever.build, BowRetriever.build, learned])
Build = Callable[[Sequence[Example]], Retriever]

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
metas = st.fixed_dictionaries(
    {}, optional={"package": st.sampled_from(["p", "q", 1]), "file": st.sampled_from(["f", "g"])}
)
filters = st.none() | st.dictionaries(
    st.sampled_from(["package", "file"]), st.sampled_from(["p", "q", "1", "f", "g", "None"])
)
corpora = st.lists(st.tuples(texts, metas), min_size=1, max_size=25).map(
    lambda rows: [Example({"text": x}, f"y{at}", meta) for at, (x, meta) in enumerate(rows)]
)


def has(example: Example, values: Mapping[str, Any]) -> bool:
    return all(str(example.meta.get(key)) == value for key, value in values.items())


@every
@settings(max_examples=50, deadline=None)
@given(examples=corpora, query=texts, where=filters, without=filters, k=st.integers(1, 6))
def test_filtered_search_equals_filtering_all_results(
    build: Build,
    examples: list[Example],
    query: str,
    where: dict[str, str] | None,
    without: dict[str, str] | None,
    k: int,
) -> None:
    retriever = build(examples)
    (ranked,) = retriever.retrieve([{"text": query}], len(examples))
    left = [
        each
        for each in ranked
        if has(each.example, where or {}) and not (without and has(each.example, without))
    ]
    (found,) = retriever.retrieve([{"text": query}], k, where=where, without=without)
    assert [each.example for each in found] == [each.example for each in left[:k]]
    assert [each.distance for each in found] == pytest.approx(
        [each.distance for each in left[:k]], abs=1e-6
    )


@every
def test_filters_apply_to_sampling_and_leave_one_out(build: Build) -> None:
    examples = [
        Example({"text": f"draw a card {at}"}, f"y{at}", {"package": "pq"[at % 2]})
        for at in range(12)
    ]
    retriever = build(examples)
    inputs: list[Input] = [examples[0].x, examples[1].x]
    drawn = retriever.retrieve(
        inputs, 20, exclude=examples[:2], without={"package": "p"}, rng=np.random.default_rng(0)
    )
    outputs = [{each.example.y for each in found} for found in drawn]
    odd = {f"y{at}" for at in range(1, 12, 2)}
    assert outputs == [odd, odd - {"y1"}]


@every
def test_a_filter_that_excludes_everything_finds_nothing(build: Build) -> None:
    examples = [Example({"text": "draw"}, "y", {"package": "p"})]
    retriever = build(examples)
    assert retriever.retrieve([{"text": "draw"}], 2, without={"package": "p"}) == [[]]
    (kept,) = retriever.retrieve([{"text": "draw"}], 2, without={"package": "p", "file": "f"})
    assert [each.example for each in kept] == examples
