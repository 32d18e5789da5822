"""How little would have to change: counted by hand, and bounded by the oracle."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from redraft.index.neighbours import Neighbours
from redraft.metrics.bleu import bleu_yin
from redraft.metrics.retrieval_quality import (
    ORACLE_POOL,
    RetrievalQuality,
    first_prototypes,
    mean_bleu,
    oracle_prototypes,
    token_edit_distance,
)
from redraft.retrieval.base import NoRetriever, Retriever
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.retrieval.bow import BowRetriever
from redraft.storage.artifact import Artifact
from redraft.types import Example, Input, Prototype

codes = st.lists(st.sampled_from(["sum", "max", "(", ")", "cards", "+", "1"]), max_size=9)


def programme(left: Sequence[str], right: Sequence[str]) -> int:
    """Levenshtein's distance, by its table."""
    table = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i in range(len(left) + 1):
        for j in range(len(right) + 1):
            if i == 0 or j == 0:
                table[i][j] = i + j
                continue
            replaced = table[i - 1][j - 1] + (left[i - 1] != right[j - 1])
            table[i][j] = min(table[i - 1][j] + 1, table[i][j - 1] + 1, replaced)
    return table[-1][-1]


class RandomRetriever(Retriever):
    """Finds anything."""

    name = "random"

    def __init__(self, examples: Sequence[Example], seed: int = 0) -> None:
        self.examples = examples
        self.random = np.random.default_rng(seed)

    def search(
        self, inputs: Sequence[Input], k: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> Neighbours:
        assert allowed is None
        rows = np.stack([self.random.permutation(len(self.examples))[:k] for _ in inputs])
        return Neighbours(rows, np.zeros(rows.shape, np.float32))

    def add(self, examples: Sequence[Example]) -> "RandomRetriever":
        raise NotImplementedError

    def remove(self, rows: Sequence[int]) -> "RandomRetriever":
        raise NotImplementedError

    def save(self, folder: Path) -> None:
        raise NotImplementedError

    @classmethod
    def load(cls, artifact: Artifact, examples: Sequence[Example]) -> "RandomRetriever":
        raise NotImplementedError


@pytest.fixture
def candidates(examples: list[Example]) -> list[Example]:
    return examples[::2]


@pytest.fixture
def asked(examples: list[Example]) -> list[Example]:
    return examples[1::2]


def scores(examples: Sequence[Example], found: Sequence[Prototype | None]) -> NDArray[np.float64]:
    return np.array(RetrievalQuality.of(examples, found).bleu_yin)


@settings(deadline=None)
@given(codes, codes)
def test_the_edit_distance_is_that_of_the_dynamic_programme(
    left: list[str], right: list[str]
) -> None:
    assert token_edit_distance(" ".join(left), " ".join(right)) == programme(left, right)


def test_the_edit_distance_counts_bleus_tokens_and_not_characters() -> None:
    assert token_edit_distance("sum(cards[:2])", "max(cards[:2])") == 1
    assert token_edit_distance("a = b", "a=b") == 0
    assert token_edit_distance("maxCards", "maxDecks") == 1
    assert token_edit_distance("", "f(x)") == 4


def test_perfect_prototypes_need_no_editing(examples: list[Example]) -> None:
    found = RetrievalQuality.of(examples, [Prototype(example, 0) for example in examples])
    assert found.means() == {
        "bleu_yin": pytest.approx(100),
        "bleu_paper": pytest.approx(100),
        "edit_distance": 0,
    }
    assert mean_bleu(BowRetriever.build(examples), examples) == pytest.approx(100)


def test_a_missing_prototype_counts_as_an_empty_output(examples: list[Example]) -> None:
    some = examples[:2]
    found = RetrievalQuality.of(some, [Prototype(some[0], 0), None])
    assert found.bleu_yin == pytest.approx([1, 0])
    assert found.bleu_paper == pytest.approx([1, 0])
    assert found.edit_distance == [0, len(["sum", "(", "players", "[", ":", "1", "]", ")"])]
    assert mean_bleu(NoRetriever(examples), examples) == 0
    assert first_prototypes(NoRetriever(examples), some) == [None, None]


def test_mean_bleu_is_the_mean_of_the_first_outputs_bleu(
    candidates: list[Example], asked: list[Example]
) -> None:
    retriever = BowRetriever.build(candidates)
    first = [retriever.retrieve([example.x])[0][0].example.y for example in asked]
    expected = [bleu_yin(example.y, y) for example, y in zip(asked, first, strict=True)]
    assert mean_bleu(retriever, asked) == pytest.approx(100 * sum(expected) / len(expected))
    assert RetrievalQuality.of(asked, first_prototypes(retriever, asked)).means()[
        "bleu_yin"
    ] == pytest.approx(mean_bleu(retriever, asked))


def test_every_example_gets_its_own_prototype_across_batches(examples: list[Example]) -> None:
    many = [*examples, *examples[::-1]]  # more than a batch
    found = first_prototypes(BowRetriever.build(examples), many)
    assert [prototype.example if prototype else None for prototype in found] == many


@pytest.mark.parametrize("retriever_type", [BowRetriever, Bm25Retriever])
def test_no_retriever_beats_the_oracle(
    retriever_type: type[BowRetriever], candidates: list[Example], asked: list[Example]
) -> None:
    assert len(candidates) <= ORACLE_POOL
    oracle = scores(asked, oracle_prototypes(candidates, asked))
    found = scores(asked, first_prototypes(retriever_type.build(candidates), asked))
    assert (found <= oracle).all()


@pytest.mark.parametrize("seed", range(3))
def test_no_luck_beats_the_oracle_either(
    candidates: list[Example], asked: list[Example], seed: int
) -> None:
    lucky = RandomRetriever(candidates, seed)
    oracle = scores(asked, oracle_prototypes(candidates, asked))
    assert (scores(asked, first_prototypes(lucky, asked)) <= oracle).all()


def test_the_oracle_finds_the_best_of_all_candidates(
    candidates: list[Example], asked: list[Example]
) -> None:
    best = [max(bleu_yin(example.y, each.y) for each in candidates) for example in asked]
    assert scores(asked, oracle_prototypes(candidates, asked)).tolist() == pytest.approx(best)


def test_with_the_truth_among_its_candidates_the_oracle_finds_it(examples: list[Example]) -> None:
    found = oracle_prototypes(examples, examples)
    assert [each.example.y for each in found if each] == [example.y for example in examples]


def test_leaving_out_never_returns_the_same_output(examples: list[Example]) -> None:
    twice = [*examples, *(Example({"text": "other words"}, each.y) for each in examples)]
    everything = [
        first_prototypes(BowRetriever.build(twice), twice, leave_out=True),
        first_prototypes(RandomRetriever(twice), twice, leave_out=True),
        oracle_prototypes(twice, examples, leave_out=True),
    ]
    for found in everything:
        for example, prototype in zip(twice, found, strict=False):
            assert prototype is not None
            assert prototype.example.y != example.y


def test_where_nothing_else_is_left_nothing_is_found() -> None:
    only = [Example({"text": "a"}, "same"), Example({"text": "b"}, "same")]
    assert first_prototypes(BowRetriever.build(only), only, leave_out=True) == [None, None]
    assert oracle_prototypes(only, only, leave_out=True) == [None, None]
