"""Examples with the input that is asked for come first, newest first."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from redraft.retrieval.base import NoRetriever, Retriever
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.retrieval.bow import BowRetriever
from redraft.storage.disk import spool_examples
from redraft.types import Example


def pair(x: str, y: str, **meta: str) -> Example:
    return Example({"text": x}, y, meta)


EXAMPLES = [
    pair("open orders", "old", year="1"),
    pair("open open orders orders today", "longer"),
    pair("Open  orders ?", "new", year="2"),
    pair("closed orders", "closed"),
    pair("open orders", "old", year="3"),
]


def retrievers(examples: Sequence[Example]) -> list[Retriever]:
    return [BowRetriever.build(examples), Bm25Retriever.build(examples)]


@pytest.mark.parametrize("kind", range(2))
@pytest.mark.parametrize("asked", ["open orders", "OPEN ORDERS!", " open\torders "])
def test_equal_inputs_come_first_newest_first(kind: int, asked: str) -> None:
    retriever = retrievers(EXAMPLES)[kind]
    [prototypes] = retriever.retrieve([{"text": asked}], 3, distinct=False)
    assert [prototype.example.meta.get("year") for prototype in prototypes[:3]] == ["3", "2", "1"]
    assert [prototype.distance for prototype in prototypes[:3]] == [0.0] * 3
    [prototypes] = retriever.retrieve([{"text": asked}], 2)
    assert [prototype.example.y for prototype in prototypes] == ["old", "new"]


def test_the_null_retriever_finds_nothing() -> None:
    assert NoRetriever(EXAMPLES).retrieve([{"text": "open orders"}], 3) == [[]]


def test_filters_and_leave_one_out_hold_for_equal_inputs_too() -> None:
    retriever = Bm25Retriever.build(EXAMPLES)
    x = {"text": "open orders"}
    [prototypes] = retriever.retrieve([x], 1, where={"year": "2"})
    assert [prototype.example.y for prototype in prototypes] == ["new"]
    [prototypes] = retriever.retrieve([x], 1, exclude=[EXAMPLES[0]])
    assert [prototype.example.y for prototype in prototypes] == ["new"]


def test_no_example_is_retrieved_twice() -> None:
    [prototypes] = Bm25Retriever.build(EXAMPLES).retrieve(
        [{"text": "open orders"}], 9, distinct=False
    )
    assert len(prototypes) == len({id(prototype.example) for prototype in prototypes})


def test_examples_on_disk_are_found_by_their_input(tmp_path: Path) -> None:
    on_disk = spool_examples([EXAMPLES], tmp_path / "many")
    assert on_disk.with_input({"text": "OPEN orders."}) == [0, 2, 4]
    assert on_disk.with_input({"text": "closed orders"}) == [3]
    assert on_disk.with_input({"text": "orders"}) == []
    assert on_disk[1:].with_input({"text": "open orders"}) == [1, 3]
    assert list(on_disk.identities) == [example.identity for example in EXAMPLES]


def test_fields_are_compared_one_by_one() -> None:
    examples = [Example({"a": "x y", "b": "z"}, "1"), Example({"a": "x", "b": "y z"}, "2")]
    [prototypes] = Bm25Retriever.build(examples).retrieve([{"a": "X", "b": "Y Z"}], 1)
    assert prototypes[0].example.y == "2"
