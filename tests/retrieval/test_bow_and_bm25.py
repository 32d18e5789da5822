"""BOW and BM25 retrievers against an independent computation of the same scores."""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.retrieval.bm25 import Bm25Retriever
from redraft.retrieval.bow import BowRetriever
from redraft.retrieval.words import WordRetriever
from redraft.storage.artifact import open_artifact
from redraft.storage.artifact_writer import write_artifact
from redraft.text.words import words
from redraft.types import Example

RETRIEVERS: tuple[type[WordRetriever], ...] = (BowRetriever, Bm25Retriever)

sentences = st.lists(st.sampled_from(["draw", "a", "card", "deal", "damage"]), min_size=1)


def build(texts: Sequence[Sequence[str]]) -> list[Example]:
    return [Example({"text": " ".join(text)}, f"y{at}") for at, text in enumerate(texts)]


def cosine(left: Sequence[str], right: Sequence[str]) -> float:
    a, b = Counter(left), Counter(right)
    lengths = math.sqrt(sum(n * n for n in a.values()) * sum(n * n for n in b.values()))
    return sum(a[word] * b[word] for word in a) / lengths


def bm25(query: Sequence[str], texts: Sequence[Sequence[str]], at: int) -> float:
    """Lucene's formula, k1 = 1.5, b = 0.75."""
    mean = sum(map(len, texts)) / len(texts)
    total = 0.0
    for word in query:
        holding = sum(word in text for text in texts)
        count = texts[at].count(word)
        idf = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
        total += idf * count / (count + 1.5 * (0.25 + 0.75 * len(texts[at]) / mean))
    return total


@given(st.lists(sentences, min_size=1, max_size=8), sentences)
def test_bow_distance_is_one_minus_the_cosine(texts: list[list[str]], query: list[str]) -> None:
    distances = BowRetriever.build(build(texts)).distances([query])[0]
    assert distances == pytest.approx([1 - cosine(query, text) for text in texts], abs=1e-5)


@given(st.lists(sentences, min_size=1, max_size=8), sentences)
def test_bm25_distance_is_one_over_one_plus_lucenes_score(
    texts: list[list[str]], query: list[str]
) -> None:
    distances = Bm25Retriever.build(build(texts)).distances([query])[0]
    expected = [1 / (1 + bm25(query, texts, at)) for at in range(len(texts))]
    assert distances == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("retriever_type", RETRIEVERS)
def test_the_nearest_example_to_a_training_input_is_that_example(
    retriever_type: type[WordRetriever], examples: list[Example]
) -> None:
    retriever = retriever_type.build(examples)
    found = retriever.retrieve([example.x for example in examples], 1)
    assert [prototypes[0].example for prototypes in found] == examples


@pytest.mark.parametrize("retriever_type", RETRIEVERS)
@pytest.mark.parametrize("text", ["zzz", "", "¿…?", "\0"])
def test_an_input_of_unknown_words_still_gets_prototypes(
    retriever_type: type[WordRetriever], text: str, examples: list[Example]
) -> None:
    found = retriever_type.build(examples).retrieve([{"text": text}], 2)[0]
    assert len(found) == 2
    assert all(prototype.distance == pytest.approx(1) for prototype in found)


@pytest.mark.parametrize("retriever_type", RETRIEVERS)
def test_a_saved_retriever_finds_the_same(
    retriever_type: type[WordRetriever], tmp_path: Path, examples: list[Example]
) -> None:
    retriever = retriever_type.build(examples)
    with write_artifact(tmp_path / "model") as staging:
        retriever.save(staging)
    loaded = retriever_type.load(open_artifact(tmp_path / "model"), examples)
    assert isinstance(retriever, WordRetriever)
    assert isinstance(loaded, WordRetriever)
    queries = [words(example.x)[1:] for example in examples]
    np.testing.assert_array_equal(loaded.distances(queries), retriever.distances(queries))


def test_words_are_lower_case_tokens_of_all_fields() -> None:
    x = {"name": "BigGameHunter", "properties": "atk_4", "text": "Destroy  a\nminion."}
    assert words(x) == ["biggamehunter", "atk_4", "destroy", "a", "minion", "."]
