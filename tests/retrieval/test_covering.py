"""A covering set has the words of the input among its prototypes, not copies of the nearest."""

import pytest

from redraft import Example
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.retrieval.covering import covering_set

ASKED = {"text": "cheapest direct morning flight to Oslo with breakfast"}
HOTEL = "a hotel near the harbour that has three quiet rooms and a garden with breakfast"
TEXTS = (
    "cheapest direct morning flight to Oslo",
    "cheapest direct morning flight to Oslo today",
    "cheapest direct morning flight to Oslo now",
    HOTEL,
    "rent a car",
)


@pytest.fixture
def retriever() -> Bm25Retriever:
    return Bm25Retriever.build(
        [Example({"text": text}, f"y{i}", {"odd": i % 2}) for i, text in enumerate(TEXTS)]
    )


def texts(retriever: Bm25Retriever, k: int, **options: object) -> list[str]:
    found = covering_set(retriever, ASKED, k, **options)  # type: ignore[arg-type]
    return [prototype.example.x["text"] for prototype in found]


def test_the_second_has_the_words_that_the_nearest_lacks(retriever: Bm25Retriever) -> None:
    nearest = retriever.retrieve([ASKED], 2)[0]
    assert "breakfast" not in nearest[1].example.x["text"]
    assert texts(retriever, 2) == [nearest[0].example.x["text"], HOTEL]


def test_when_all_is_covered_coverage_starts_again(retriever: Bm25Retriever) -> None:
    found = texts(retriever, 9)
    assert sorted(found) == sorted(TEXTS)  # no more than there are, none twice
    assert found[2].startswith("cheapest direct morning flight to Oslo")
    assert found[-1] == "rent a car"


def test_only_selected_examples_are_taken(retriever: Bm25Retriever) -> None:
    assert set(texts(retriever, 9, where={"odd": 1})) == {TEXTS[1], TEXTS[3]}
    assert texts(retriever, 9, where={"odd": 2}) == []


def test_an_input_without_a_known_word_gets_the_nearest(retriever: Bm25Retriever) -> None:
    unknown = {"text": "zzz"}
    found = covering_set(retriever, unknown, 3)
    assert found == retriever.retrieve([unknown], 3)[0]
