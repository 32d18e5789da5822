"""BERT in NumPy: equal to PyTorch's layers, and blind to padding."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from redraft.errors import ConfigError
from redraft.models.bert import BertConfig, BertNetwork
from tests.sentence_encoders import CONFIG

IDS = np.array([[2, 5, 9, 7, 3], [2, 4, 3, 0, 0]])
MASK = np.array([[True] * 5, [True] * 3 + [False] * 2])


@pytest.fixture
def network() -> BertNetwork:
    generator = np.random.default_rng(3)
    shapes = CONFIG.shapes().items()
    weights = {name: generator.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes}
    return BertNetwork(weights, CONFIG)


def reference(network: BertNetwork) -> Tensor:
    """Return the states by PyTorch's own encoder layers with the same weights."""
    weights = {name: torch.tensor(weight) for name, weight in network.weights.items()}
    embedded = (
        weights["embeddings.word_embeddings.weight"][torch.tensor(IDS)]
        + weights["embeddings.position_embeddings.weight"][: IDS.shape[1]]
        + weights["embeddings.token_type_embeddings.weight"][0]
    )
    names = ("embeddings.LayerNorm.weight", "embeddings.LayerNorm.bias")
    scale, shift = (weights[name] for name in names)
    states = nn.functional.layer_norm(embedded, (CONFIG.width,), scale, shift, CONFIG.epsilon)
    for i in range(CONFIG.layers):
        layer = nn.TransformerEncoderLayer(
            CONFIG.width,
            CONFIG.heads,
            CONFIG.inner_width,
            dropout=0.0,
            activation="gelu",
            layer_norm_eps=CONFIG.epsilon,
            batch_first=True,
        ).eval()
        own = {
            name.removeprefix(f"encoder.layer.{i}."): weight
            for name, weight in weights.items()
            if name.startswith(f"encoder.layer.{i}.")
        }
        loaded = {}
        for kind in ("weight", "bias"):
            parts = [own[f"attention.self.{name}.{kind}"] for name in ("query", "key", "value")]
            loaded[f"self_attn.in_proj_{kind}"] = torch.cat(parts)
            loaded[f"self_attn.out_proj.{kind}"] = own[f"attention.output.dense.{kind}"]
            loaded[f"norm1.{kind}"] = own[f"attention.output.LayerNorm.{kind}"]
            loaded[f"linear1.{kind}"] = own[f"intermediate.dense.{kind}"]
            loaded[f"linear2.{kind}"] = own[f"output.dense.{kind}"]
            loaded[f"norm2.{kind}"] = own[f"output.LayerNorm.{kind}"]
        layer.load_state_dict(loaded)
        states = layer(states, src_key_padding_mask=torch.tensor(~MASK))
    return states


def test_states_are_those_of_pytorchs_layers(network: BertNetwork) -> None:
    states = network.states(IDS, MASK)
    with torch.no_grad():
        expected = reference(network).numpy()
    assert states.dtype == np.float32
    assert np.allclose(states[MASK], expected[MASK], atol=1e-4)


def test_padding_does_not_change_the_states(network: BertNetwork) -> None:
    alone = network.states(IDS[1:, :3], MASK[1:, :3])
    assert np.allclose(network.states(IDS, MASK)[1, :3], alone[0], atol=1e-5)


def test_a_width_that_the_heads_do_not_divide_is_an_error() -> None:
    with pytest.raises(ConfigError, match="width is 10; make it a multiple of the 4 heads"):
        BertConfig(width=10, heads=4)
