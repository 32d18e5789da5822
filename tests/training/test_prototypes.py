"""Prototypes of a training: never the example nor its output, and the same for the same seed."""

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from redraft.data.example import Example
from redraft.data.numbering import Numbering, NumberingConfig
from redraft.models.noisy_autoencoder import AutoencoderConfig, FieldsEncoder
from redraft.retrieval.encoder import DirectionEncoder
from redraft.retrieval.learned import TaskRetriever
from redraft.retrieval.lexical import LexicalRetriever
from redraft.retrieval.retriever import NoRetriever
from redraft.training.prototypes import NoisyPrototypes, PrototypeSource, TopPrototypes

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


def make_encoder(concentration: float) -> DirectionEncoder:
    torch.manual_seed(0)
    numbering = Numbering.learn(WORDS, NumberingConfig(min_count=1))
    config = AutoencoderConfig(
        word_width=16, width=8, code_width=16, encoder_layers=0, concentration=concentration
    )
    network = FieldsEncoder(len(numbering.vocabulary), 1, config).eval()
    return DirectionEncoder(network, numbering, ["text"])


ENCODER = make_encoder(20.0)


def noisy(examples: Sequence[Example], encoder: DirectionEncoder = ENCODER) -> PrototypeSource:
    return NoisyPrototypes(TaskRetriever.build(examples, encoder), encoder, examples)


def top(examples: Sequence[Example], k: int = 3) -> PrototypeSource:
    return TopPrototypes(LexicalRetriever.build(examples), examples, k)


@pytest.mark.parametrize("source", [noisy, top])
@settings(max_examples=25, deadline=None)
@given(examples=corpora, seed=st.integers(0, 1000))
def test_a_prototype_is_never_the_example_nor_one_of_its_output(
    source: "type[PrototypeSource]", examples: list[Example], seed: int
) -> None:
    drawn = source(examples).draw(seed=seed)  # type: ignore[call-arg]
    assert len(drawn) == len(examples)
    outputs = {example.y for example in examples}
    for example, prototype in zip(examples, drawn, strict=True):
        if prototype is None:
            assert outputs == {example.y}
        else:
            assert prototype.y != example.y
            assert prototype in examples


@pytest.mark.parametrize("source", [noisy, top])
def test_the_same_seed_draws_the_same_and_another_one_something_else(
    source: "type[PrototypeSource]", examples: list[Example]
) -> None:
    drawing = source(examples)  # type: ignore[call-arg]
    drawn = [drawing.draw(seed=seed) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] == source(examples).draw(seed=1)  # type: ignore[call-arg]
    assert drawn[0] != drawn[2]


def test_the_nearest_one_alone_is_without_noise(examples: list[Example]) -> None:
    drawing = top(examples, 1)
    retriever = LexicalRetriever.build(examples)
    found = retriever.retrieve([example.x for example in examples], 1, exclude=examples)
    assert drawing.draw(seed=1) == drawing.draw(seed=2) == [each[0].example for each in found]


def test_each_of_the_nearest_is_drawn_as_often(examples: list[Example]) -> None:
    drawing = top(examples, 3)
    first = [drawing.draw(seed=seed)[0] for seed in range(300)]
    counts = [
        sum(each == other for other in first)
        for each in {e.identity: e for e in first if e}.values()
    ]
    assert len(counts) == 3
    assert all(70 < count < 130 for count in counts)


def test_without_noise_in_the_directions_the_nearest_is_drawn() -> None:
    encoder = make_encoder(1e6)
    examples = [Example({"text": " ".join(WORDS[: at + 1])}, f"y{at}") for at in range(len(WORDS))]
    retriever = TaskRetriever.build(examples, encoder)
    found = retriever.retrieve([example.x for example in examples], 1, exclude=examples)
    assert noisy(examples, encoder).draw(seed=3) == [each[0].example for each in found]


def test_where_nothing_is_retrieved_nothing_is_drawn(examples: list[Example]) -> None:
    drawn = TopPrototypes(NoRetriever(examples), examples, 3).draw(seed=0)
    assert drawn == [None] * len(examples)
