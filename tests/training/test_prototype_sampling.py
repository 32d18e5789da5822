"""Training prototypes: never the example nor its output, determined by the seed."""

from collections.abc import Callable, Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from redraft.models.autoencoder import FieldsEncoder
from redraft.models.config import AutoencoderConfig
from redraft.retrieval.base import NoRetriever
from redraft.retrieval.bow import BowRetriever
from redraft.retrieval.dense import TaskRetriever
from redraft.retrieval.encoder import DenseEncoder
from redraft.text.token_encoder import TokenEncoder, TokenEncoderConfig
from redraft.training.prototype_sampling import (
    Draws,
    NoisyPrototypes,
    PrototypeSource,
    TopPrototypes,
    everywhere,
)
from redraft.types import Example

WORDS = ("draw", "a", "card", "deal", "damage")

corpora = st.lists(
    st.builds(
        lambda x, y: Example({"text": " ".join(x)}, y),
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=3),
        st.sampled_from(["y1", "y2", "y3"]),
    ),
    min_size=1,
    max_size=40,
)


def make_encoder(concentration: float) -> DenseEncoder:
    torch.manual_seed(0)
    encoding = TokenEncoder.learn(WORDS, TokenEncoderConfig(min_count=1))
    config = AutoencoderConfig(
        word_width=16, width=8, embedding_dim=16, encoder_layers=0, concentration=concentration
    )
    network = FieldsEncoder(len(encoding.vocabulary), 1, config).eval()
    return DenseEncoder(network, encoding, ["text"])


ENCODER = make_encoder(20.0)


Build = Callable[..., PrototypeSource]


def noisy(examples: Sequence[Example], *, count: int = 1) -> PrototypeSource:
    return NoisyPrototypes(TaskRetriever.build(examples, ENCODER), ENCODER, examples, count=count)


def top(examples: Sequence[Example], *, top: int = 3, count: int = 1) -> PrototypeSource:
    find = everywhere(BowRetriever.build(examples), examples)
    return TopPrototypes(find, top=top, count=count)


def draw(source: PrototypeSource, examples: Sequence[Example], *, seed: int) -> Draws:
    return source.draw(range(len(examples)), seed=seed)


@pytest.mark.parametrize("source", [noisy, top])
@settings(max_examples=25, deadline=None)
@given(examples=corpora, seed=st.integers(0, 1000), count=st.integers(1, 3))
def test_prototypes_are_never_the_example_nor_of_its_output_and_no_two_have_the_same(
    source: Build, examples: list[Example], seed: int, count: int
) -> None:
    drawn = draw(source(examples, count=count), examples, seed=seed)
    assert len(drawn) == len(examples)
    outputs = {example.y for example in examples}
    for example, prototypes in zip(examples, drawn, strict=True):
        found = {prototype.y for prototype in prototypes}
        assert len(found) == len(prototypes) == min(count, len(outputs) - 1)
        assert example.y not in found
        assert all(prototype in examples for prototype in prototypes)


@pytest.mark.parametrize("source", [noisy, top])
def test_the_same_seed_draws_the_same_and_another_one_something_else(
    source: Build, examples: list[Example]
) -> None:
    drawing = source(examples)
    drawn = [draw(drawing, examples, seed=seed) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] == draw(source(examples), examples, seed=1)
    assert drawn[0] != drawn[2]


@pytest.mark.parametrize("source", [noisy, top])
def test_prototypes_are_drawn_for_the_given_rows_in_their_order(
    source: Build, examples: list[Example]
) -> None:
    rows = [7, 3, 50]
    drawn = source(examples).draw(rows, seed=4)
    assert len(drawn) == 3
    for row, (prototype,) in zip(rows, drawn, strict=True):
        assert prototype.y != examples[row].y
    assert source(examples).draw([], seed=4) == []


def nearest(examples: Sequence[Example], k: int) -> list[list[Example]]:
    retriever = BowRetriever.build(examples)
    found = retriever.retrieve([example.x for example in examples], k, exclude=examples)
    return [[prototype.example for prototype in each] for each in found]


@pytest.mark.parametrize("count", [1, 2])
def test_the_nearest_alone_are_without_noise(examples: list[Example], count: int) -> None:
    drawing = top(examples, top=1, count=count)
    drawn = [draw(drawing, examples, seed=seed) for seed in (1, 2)]
    assert drawn[0] == drawn[1] == nearest(examples, count)


def test_each_of_the_nearest_is_drawn_as_often(examples: list[Example]) -> None:
    drawing = top(examples, top=3)
    first = [drawing.draw([0], seed=seed)[0][0] for seed in range(300)]
    counts = [sum(each == other for other in first) for each in nearest(examples, 3)[0]]
    assert sum(counts) == 300
    assert all(70 < count < 130 for count in counts)


def test_two_of_the_nearest_are_distinct_and_come_in_their_order(examples: list[Example]) -> None:
    drawing = top(examples, top=2, count=2)
    ranked = nearest(examples, 3)
    places = set()
    for seed in range(30):
        for own, pair in zip(ranked, draw(drawing, examples, seed=seed), strict=True):
            places.add(tuple(own.index(each) for each in pair))
    assert places == {(0, 1), (0, 2), (1, 2)}


def test_without_noise_in_the_directions_the_nearest_are_drawn() -> None:
    encoder = make_encoder(1e6)
    examples = [Example({"text": " ".join(WORDS[: at + 1])}, f"y{at}") for at in range(len(WORDS))]
    retriever = TaskRetriever.build(examples, encoder)
    for count in (1, 2):
        found = retriever.retrieve([example.x for example in examples], count, exclude=examples)
        drawing = NoisyPrototypes(retriever, encoder, examples, count=count)
        assert draw(drawing, examples, seed=3) == [[p.example for p in each] for each in found]


def test_where_nothing_is_retrieved_nothing_is_drawn(examples: list[Example]) -> None:
    drawing = TopPrototypes(everywhere(NoRetriever(examples), examples), top=3, count=2)
    assert draw(drawing, examples, seed=0) == [[]] * len(examples)
