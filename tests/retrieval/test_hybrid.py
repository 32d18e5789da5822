"""The mixture against its two parts, and against its formula over all examples."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from redraft.artifact import open_artifact, write_artifact
from redraft.data.example import Example, Input
from redraft.data.numbering import Numbering, NumberingConfig
from redraft.models.noisy_autoencoder import AutoencoderConfig, FieldsEncoder
from redraft.retrieval import hybrid
from redraft.retrieval.encoder import DirectionEncoder
from redraft.retrieval.hybrid import WEIGHTS, HybridRetriever
from redraft.retrieval.learned import TaskRetriever
from redraft.retrieval.lexical import Bm25Retriever, words
from redraft.retrieval.retriever import Retriever

QUERIES: list[Input] = [
    {"text": "sum the first 2 players"},
    {"text": "max of all 5 decks"},
    {"text": "sorted minions first"},
    {"text": "4 cards the max"},
]


@pytest.fixture
def learned(examples: list[Example]) -> TaskRetriever:
    texts = [example.x["text"] for example in examples]
    numbering = Numbering.learn(texts, NumberingConfig(min_count=1))
    config = AutoencoderConfig(word_width=12, width=8, code_width=16, encoder_layers=1)
    torch.manual_seed(0)
    network = FieldsEncoder(len(numbering.vocabulary), 1, config).eval()
    return TaskRetriever.build(examples, DirectionEncoder(network, numbering, ["text"]))


@pytest.fixture
def lexical(examples: list[Example]) -> Bm25Retriever:
    return Bm25Retriever.build(examples)


@pytest.fixture
def mixture(learned: TaskRetriever, lexical: Bm25Retriever) -> HybridRetriever:
    return HybridRetriever(learned, lexical, 0.4)


def outputs(retriever: Retriever, k: int = 1) -> list[list[str]]:
    return [[p.example.y for p in found] for found in retriever.retrieve(QUERIES, k)]


def by_formula(mixture: HybridRetriever, x: Input) -> list[float]:
    """The distance to every example, ascending."""
    directions = mixture.learned.encoder.encode([e.x for e in mixture.examples])
    cosines = directions @ mixture.learned.encoder.encode([x])[0]
    scores = mixture.lexical.scores([words(x)])[0]
    weight = mixture.weight
    distances = 1 - (1 - weight) * cosines - weight * scores / scores.max()
    return sorted(distances.tolist())


def test_at_weight_zero_it_ranks_like_the_learned_retriever(
    learned: TaskRetriever, lexical: Bm25Retriever
) -> None:
    alone = HybridRetriever(learned, lexical, 0.0)
    assert outputs(alone, 10) == outputs(learned, 10)


def test_at_weight_one_it_ranks_like_bm25(learned: TaskRetriever, lexical: Bm25Retriever) -> None:
    alone = HybridRetriever(learned, lexical, 1.0)
    assert outputs(alone) == outputs(lexical)
    best = [found[0].distance for found in alone.retrieve(QUERIES)]
    assert best == pytest.approx([0] * len(QUERIES), abs=1e-6)


@pytest.mark.parametrize("weight", WEIGHTS)
def test_distances_are_those_of_the_formula(
    learned: TaskRetriever, lexical: Bm25Retriever, weight: float
) -> None:
    mixture = HybridRetriever(learned, lexical, weight)
    found = mixture.search(QUERIES, 60)
    for x, rows, distances in zip(QUERIES, found.rows, found.distances, strict=True):
        assert sorted(rows.tolist()) == list(range(60))
        assert distances.tolist() == pytest.approx(by_formula(mixture, x), abs=1e-5)


def test_batches_give_what_single_inputs_give(mixture: HybridRetriever) -> None:
    together = mixture.retrieve(QUERIES, 3)
    for x, found in zip(QUERIES, together, strict=True):
        alone = mixture.retrieve([x], 3)[0]
        assert [p.example for p in alone] == [p.example for p in found]


def test_the_best_of_a_small_pool_are_near_to_one_of_the_two(
    mixture: HybridRetriever, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hybrid, "POOL", 6)
    found = mixture.search(QUERIES, 6)
    assert found.rows.shape == (len(QUERIES), 6)
    near = [part.search(QUERIES, 6).rows for part in (mixture.learned, mixture.lexical)]
    for at, rows in enumerate(found.rows):
        assert set(rows.tolist()) <= {row for each in near for row in each[at].tolist()}
    # asked for more than the pool, it looks farther
    assert mixture.search(QUERIES, 20).rows.shape == (len(QUERIES), 20)


def liking(preferred: float) -> Callable[[Retriever], float]:
    def judge(retriever: Retriever) -> float:
        assert isinstance(retriever, HybridRetriever)
        return -abs(retriever.weight - preferred)

    return judge


@pytest.mark.parametrize("weight", WEIGHTS)
def test_the_weight_the_judge_likes_best_is_chosen(
    learned: TaskRetriever, lexical: Bm25Retriever, weight: float
) -> None:
    assert HybridRetriever.choose(learned, lexical, liking(weight)).weight == weight


def test_of_equals_the_learned_retriever_is_chosen(
    learned: TaskRetriever, lexical: Bm25Retriever
) -> None:
    assert HybridRetriever.choose(learned, lexical, lambda _: 1.0).weight == 0


def test_filters_and_leave_one_out_hold(mixture: HybridRetriever, examples: list[Example]) -> None:
    inputs = [example.x for example in examples]
    found = mixture.retrieve(inputs, 3, where={"verb": "max"}, exclude=examples)
    for example, prototypes in zip(examples, found, strict=True):
        assert len(prototypes) == 3
        assert all(p.example.meta["verb"] == "max" for p in prototypes)
        assert example.y not in [p.example.y for p in prototypes]
    assert mixture.retrieve(inputs[:2], where={"verb": "min"}) == [[], []]


@pytest.mark.parametrize("text", ["", "zzz", "Ω"])
def test_an_input_of_unknown_words_still_gets_prototypes(
    mixture: HybridRetriever, text: str
) -> None:
    found = mixture.retrieve([{"text": text}], 3)[0]
    assert len(found) == 3
    assert all(np.isfinite(p.distance) for p in found)


def assert_alike(left: HybridRetriever, right: HybridRetriever) -> None:
    assert list(left.examples) == list(right.examples)
    assert left.weight == right.weight
    assert outputs(left) == outputs(right)
    distances = [
        [p.distance for found in each.retrieve(QUERIES, 5) for p in found] for each in (left, right)
    ]
    assert distances[0] == pytest.approx(distances[1], abs=1e-5)


def build(examples: list[Example], like: HybridRetriever) -> HybridRetriever:
    learned = TaskRetriever.build(examples, like.learned.encoder)
    return HybridRetriever(learned, Bm25Retriever.build(examples), like.weight)


def test_adding_and_removing_equal_building_from_scratch(
    mixture: HybridRetriever, examples: list[Example]
) -> None:
    new = Example({"text": "sum the first 2 players twice"}, "new")
    grown = mixture.add([new])
    assert_alike(grown, build([*examples, new], mixture))
    assert grown.retrieve([new.x])[0][0].example == new
    assert_alike(grown.remove([60]), mixture)
    kept = [example for row, example in enumerate(examples) if row not in (0, 7, 59)]
    assert_alike(mixture.remove([59, 0, 7]), build(kept, mixture))
    assert_alike(mixture.replace(range(60), [new]), build([new], mixture))


def test_a_saved_mixture_finds_the_same(
    mixture: HybridRetriever, examples: list[Example], tmp_path: Path
) -> None:
    with write_artifact(tmp_path / "model") as staging:
        mixture.save(staging)
    loaded = HybridRetriever.load(open_artifact(tmp_path / "model"), examples)
    assert loaded.weight == mixture.weight
    assert loaded.retrieve(QUERIES, 5) == mixture.retrieve(QUERIES, 5)
