"""BERT (Devlin et al. 2019) in NumPy: token ids to states; for sentence encoders, not trained here.

The names of the weights are those of published BERT models. Knows no text.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

from redraft.config.ranges import LAYERS, WIDTH, Range, check_ranges
from redraft.errors import ConfigError

Floats = NDArray[np.float32]
Weights = Mapping[str, Floats]

MAX_WIDTH, MAX_WORDS, MAX_POSITIONS = 16_384, 2_000_000, 65_536


@dataclass(frozen=True)
class BertConfig:
    """Sizes of the network; the names are ours, the meaning that of a published config.json."""

    words: Annotated[int, Range(1, MAX_WORDS)] = 30_522
    positions: Annotated[int, Range(1, MAX_POSITIONS)] = 512
    segments: Annotated[int, Range(1, 64)] = 2
    width: Annotated[int, Range(1, MAX_WIDTH)] = 384
    inner_width: Annotated[int, Range(1, MAX_WIDTH)] = 1_536
    layers: Annotated[int, LAYERS] = 6
    heads: Annotated[int, Range(1, WIDTH.high)] = 12
    epsilon: Annotated[float, Range(0.0, 1.0)] = 1e-12

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.width % self.heads:
            raise ConfigError(
                f"width is {self.width}; make it a multiple of the {self.heads} heads"
            )

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of each weight, by name."""
        tables = {"word": self.words, "position": self.positions, "token_type": self.segments}
        shapes: dict[str, tuple[int, ...]] = {
            f"embeddings.{name}_embeddings.weight": (size, self.width)
            for name, size in tables.items()
        }
        shapes |= _norm("embeddings.LayerNorm", self.width)
        for i in range(self.layers):
            layer = f"encoder.layer.{i}"
            for name in ("query", "key", "value"):
                shapes |= _linear(f"{layer}.attention.self.{name}", self.width, self.width)
            shapes |= _linear(f"{layer}.attention.output.dense", self.width, self.width)
            shapes |= _norm(f"{layer}.attention.output.LayerNorm", self.width)
            shapes |= _linear(f"{layer}.intermediate.dense", self.inner_width, self.width)
            shapes |= _linear(f"{layer}.output.dense", self.width, self.inner_width)
            shapes |= _norm(f"{layer}.output.LayerNorm", self.width)
        return shapes


def _linear(name: str, outputs: int, inputs: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


def _norm(name: str, width: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


class BertNetwork:
    """The encoder; weights are arrays with the shapes of `BertConfig.shapes`."""

    def __init__(self, weights: Weights, config: BertConfig) -> None:
        self.weights = weights
        self.config = config

    def states(self, ids: NDArray[np.int64], mask: NDArray[np.bool_]) -> Floats:
        """Return the last layer's state of each token (B, T, D); `mask` is True for real tokens."""
        states = self.weights["embeddings.word_embeddings.weight"][ids]
        states += self.weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
        states += self.weights["embeddings.token_type_embeddings.weight"][0]
        states = self._normalise("embeddings.LayerNorm", states)
        for layer in self._layers():
            attended = self._attend(layer, states, mask)
            states = self._normalise(f"{layer}.attention.output.LayerNorm", states + attended)
            inner = _gelu(self._apply(f"{layer}.intermediate.dense", states))
            outer = self._apply(f"{layer}.output.dense", inner)
            states = self._normalise(f"{layer}.output.LayerNorm", states + outer)
        return states

    def _layers(self) -> Iterator[str]:
        return (f"encoder.layer.{i}" for i in range(self.config.layers))

    def _attend(self, layer: str, states: Floats, mask: NDArray[np.bool_]) -> Floats:
        """Return multi-head attention of the states to each other: (B, T, D)."""
        rows, length, width = states.shape
        heads = (rows, length, self.config.heads, width // self.config.heads)
        query, key, value = (
            self._apply(f"{layer}.attention.self.{name}", states).reshape(heads).swapaxes(1, 2)
            for name in ("query", "key", "value")
        )  # (B, H, T, D / H)
        scores = query @ key.swapaxes(2, 3) / np.float32(np.sqrt(heads[3]))
        scores = np.where(mask[:, None, None], scores, np.float32(-1e9))
        scores = np.exp(scores - scores.max(3, keepdims=True))
        scores /= scores.sum(3, keepdims=True)
        attended = (scores @ value).swapaxes(1, 2).reshape(states.shape)
        return self._apply(f"{layer}.attention.output.dense", attended)

    def _apply(self, name: str, states: Floats) -> Floats:
        """Return the linear layer `name` of the states, as one product of matrices."""
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        flat = states.reshape(-1, states.shape[-1]) @ weight.T + bias
        return flat.reshape(*states.shape[:-1], len(weight))

    def _normalise(self, name: str, states: Floats) -> Floats:
        centred = states - states.mean(-1, keepdims=True)
        variance = (centred**2).mean(-1, keepdims=True)
        scaled = centred / np.sqrt(variance + np.float32(self.config.epsilon))
        normal: Floats = scaled * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]
        return normal


def _gelu(states: Floats) -> Floats:
    half = np.float32(0.5)
    gated: Floats = half * states * (1 + erf(states * np.float32(np.sqrt(0.5))))
    return gated
