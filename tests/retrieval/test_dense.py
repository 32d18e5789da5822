"""Dense retrieval: invariances of the encoder, and the retriever with any encoder."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from redraft import RetrieveAndEdit
from redraft.editing.base import VerbatimEditor
from redraft.errors import ModelError
from redraft.index.base import ExactIndex
from redraft.models.autoencoder import FieldsEncoder
from redraft.models.config import AutoencoderConfig
from redraft.retrieval.dense import InputRetriever, LearnedRetriever, TaskRetriever
from redraft.retrieval.encoder import LONGEST_FIELD, DenseEncoder
from redraft.retrieval.vectors import TextEncoder
from redraft.storage.artifact import Artifact, open_artifact
from redraft.storage.artifact_writer import write_artifact
from redraft.text.token_encoder import TokenEncoder, TokenEncoderConfig
from redraft.types import Example, Input

Vectors = NDArray[np.float32]

TINY = AutoencoderConfig(
    word_width=12, width=8, embedding_dim=16, encoder_layers=1, concentration=42
)
WORDS = ("draw", "a", "card", "deal", "damage", "cardinal", "2")

texts = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
inputs_of_two_fields = st.lists(
    st.fixed_dictionaries({"name": texts, "text": texts}), min_size=1, max_size=9
)


def untrained(fields: Sequence[str], learned_from: Sequence[str] = WORDS) -> DenseEncoder:
    """An encoder to directions that nobody trained, but whose LSTMs matter."""
    torch.manual_seed(0)
    encoding = TokenEncoder.learn(learned_from, TokenEncoderConfig(min_count=1))
    network = FieldsEncoder(len(encoding.vocabulary), len(fields), TINY).eval()
    torch.nn.init.normal_(network.combine.weight, std=0.5)
    return DenseEncoder(network, encoding, fields)


def saved_embedder(examples: Sequence[Example], folder: Path) -> Path:
    """A model of examples with text, whose vectors are those of such an encoder."""
    encoder = untrained(["text"], [each.x["text"] for each in examples])
    RetrieveAndEdit(TaskRetriever.build(examples, encoder), VerbatimEditor()).save(folder)
    return folder


ENCODER = untrained(["name", "text"])


def save(part: DenseEncoder | LearnedRetriever, folder: Path) -> Artifact:
    with write_artifact(folder) as staging:
        part.save(staging)
    return open_artifact(folder)


@pytest.fixture
def encoder(examples: list[Example]) -> DenseEncoder:
    return untrained(["text"], [example.x["text"] for example in examples])


class CompassEncoder:
    """Inputs are degrees; their directions, the compass's."""

    def encode(self, inputs: Sequence[Input]) -> Vectors:
        angles = np.radians([float(x["text"]) for x in inputs])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def test_any_encoder_to_unit_vectors_can_drive_the_search() -> None:
    compass: TextEncoder = CompassEncoder()
    examples = [Example({"text": str(degrees)}, f"y{degrees}") for degrees in (0, 90, 180, 350)]
    index = ExactIndex(compass.encode([example.x for example in examples]))
    retriever = TaskRetriever(examples, compass, index)
    found = retriever.retrieve([{"text": "10"}, {"text": "200"}], 4)
    assert [[p.example.y for p in prototypes] for prototypes in found] == [
        ["y0", "y350", "y90", "y180"],
        ["y180", "y90", "y350", "y0"],
    ]
    # the squared chord of an angle is 2 − 2 cos
    assert found[0][1].distance == pytest.approx(2 - 2 * np.cos(np.radians(20)), abs=1e-6)


def test_a_custom_encoder_cannot_be_saved_and_leaves_no_files(tmp_path: Path) -> None:
    retriever = TaskRetriever.build([Example({"text": "0"}, "y")], CompassEncoder())
    with (
        pytest.raises(ModelError, match=r"custom encoder \(CompassEncoder\) cannot be saved"),
        write_artifact(tmp_path / "model") as staging,
    ):
        retriever.save(staging)
    assert not (tmp_path / "model").exists()


@settings(deadline=None, max_examples=30)
@given(inputs_of_two_fields, st.integers(1, 5), st.randoms(use_true_random=False))
def test_vectors_do_not_depend_on_order_or_batch_size(
    inputs: list[dict[str, str]], batch_size: int, order: Random
) -> None:
    together = ENCODER.encode(inputs)
    np.testing.assert_allclose(ENCODER.encode(inputs, batch_size=batch_size), together, atol=1e-6)
    shuffled = order.sample(range(len(inputs)), len(inputs))
    again = ENCODER.encode([inputs[row] for row in shuffled])
    np.testing.assert_allclose(again, together[shuffled], atol=1e-6)


@settings(deadline=None, max_examples=30)
@given(inputs_of_two_fields)
def test_vectors_have_length_one(inputs: list[dict[str, str]]) -> None:
    vectors = ENCODER.encode(inputs)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_no_inputs_give_no_vectors() -> None:
    assert ENCODER.encode([]).shape == (0, TINY.embedding_dim)


def test_a_missing_field_is_an_empty_one_and_an_unknown_field_is_not_read() -> None:
    missing, empty, more = ENCODER.encode(
        [{"text": "draw"}, {"name": "", "text": "draw"}, {"text": "draw", "other": "card"}]
    )
    np.testing.assert_allclose(missing, empty, atol=1e-6)
    np.testing.assert_allclose(missing, more, atol=1e-6)


def test_fields_are_distinguished_by_name_not_by_order() -> None:
    one, same, swapped = ENCODER.encode(
        [
            {"name": "draw", "text": "deal damage"},
            {"text": "deal damage", "name": "draw"},
            {"name": "deal damage", "text": "draw"},
        ]
    )
    np.testing.assert_allclose(one, same, atol=1e-6)
    assert np.abs(one - swapped).max() > 1e-3


def test_a_long_field_is_truncated() -> None:
    long = "draw a card " * LONGEST_FIELD
    whole, longer = ENCODER.encode([{"text": long}, {"text": long + "deal"}])
    np.testing.assert_allclose(whole, longer, atol=1e-6)
    assert all(len(field) <= LONGEST_FIELD + 1 for field in ENCODER.token_ids({"text": long}))


def test_a_saved_encoder_gives_the_same_vectors(tmp_path: Path) -> None:
    loaded = DenseEncoder.load(save(ENCODER, tmp_path / "model"))
    inputs: list[Input] = [{"name": "a", "text": "draw a cardinal Ω"}, {"text": ""}, {"name": "2"}]
    np.testing.assert_array_equal(loaded.encode(inputs), ENCODER.encode(inputs))
    assert loaded.fields == ENCODER.fields
    assert loaded.network.config == ENCODER.network.config
    assert loaded.encoding == ENCODER.encoding
    assert loaded.concentration == 42
    assert not loaded.network.training


def test_the_nearest_example_to_a_training_input_is_that_example(
    examples: list[Example], encoder: DenseEncoder
) -> None:
    retriever = TaskRetriever.build(examples, encoder)
    found = retriever.retrieve([example.x for example in examples], 1)
    assert [prototypes[0].example for prototypes in found] == examples
    assert all(prototypes[0].distance < 1e-5 for prototypes in found)


def assert_alike(left: LearnedRetriever, right: LearnedRetriever) -> None:
    """Both hold the same examples and find the same."""
    assert list(left.examples) == list(right.examples)
    np.testing.assert_allclose(left.index.vectors, right.index.vectors, atol=1e-6)
    inputs = [example.x for example in right.examples]
    for a, b in zip(left.retrieve(inputs, 3), right.retrieve(inputs, 3), strict=True):
        assert [p.distance for p in a] == pytest.approx([p.distance for p in b], abs=1e-5)
        assert a[0].example == b[0].example


def test_adding_equals_building_from_scratch(
    examples: list[Example], encoder: DenseEncoder
) -> None:
    grown = TaskRetriever.build(examples[:40], encoder).add(examples[40:])
    assert isinstance(grown, TaskRetriever)
    assert_alike(grown, TaskRetriever.build(examples, encoder))


def test_removing_equals_building_from_scratch(
    examples: list[Example], encoder: DenseEncoder
) -> None:
    removed = [3, 59, 0, 31]
    kept = [example for row, example in enumerate(examples) if row not in removed]
    whole = TaskRetriever.build(examples, encoder)
    assert_alike(whole.remove(removed), TaskRetriever.build(kept, encoder))
    assert_alike(whole.remove([]), whole)


def test_replacing_equals_building_from_scratch(
    examples: list[Example], encoder: DenseEncoder
) -> None:
    begun = TaskRetriever.build(examples[:40], encoder)
    changed = begun.replace([0, 7, 39], examples[40:])
    kept = [example for row, example in enumerate(examples) if row not in (0, 7, 39)]
    assert_alike(changed, TaskRetriever.build(kept, encoder))
    assert_alike(
        begun.replace(range(40), examples[40:]), TaskRetriever.build(examples[40:], encoder)
    )


def test_removed_examples_are_not_found(examples: list[Example], encoder: DenseEncoder) -> None:
    retriever = TaskRetriever.build(examples, encoder)
    smaller = retriever.remove(retriever.matching({"verb": "sum"}))
    found = smaller.retrieve([example.x for example in examples], 5)
    assert {p.example.meta["verb"] for each in found for p in each} == {"max", "sorted"}
    assert smaller.remove(range(len(smaller.examples))).retrieve([examples[0].x]) == [[]]


def test_filters_and_leave_one_out_are_respected(
    examples: list[Example], encoder: DenseEncoder
) -> None:
    retriever = TaskRetriever.build(examples, encoder)
    inputs = [example.x for example in examples]
    found = retriever.retrieve(inputs, 2, where={"verb": "max"}, exclude=examples)
    for example, prototypes in zip(examples, found, strict=True):
        assert len(prototypes) == 2
        assert all(p.example.meta["verb"] == "max" for p in prototypes)
        assert example.y not in [p.example.y for p in prototypes]


@pytest.mark.parametrize("retriever_type", [TaskRetriever, InputRetriever])
def test_a_saved_retriever_finds_the_same(
    retriever_type: type[LearnedRetriever],
    examples: list[Example],
    encoder: DenseEncoder,
    tmp_path: Path,
) -> None:
    retriever = retriever_type.build(examples, encoder)
    loaded = retriever_type.load(save(retriever, tmp_path / "model"), examples)
    queries: list[Input] = [{"text": "sum of all cards"}, {"text": "Ω"}, {"text": ""}]
    assert loaded.retrieve(queries, 5) == retriever.retrieve(queries, 5)
    assert isinstance(loaded.index.vectors, np.memmap)
    assert_alike(loaded.add(examples[:1]).remove([60]), retriever)


def test_task_and_input_retriever_have_different_names() -> None:
    assert (TaskRetriever.name, InputRetriever.name) == ("task", "input")
