"""Pre-trained sentence encoders: texts to unit vectors, by weights of BERT or an ONNX file.

A folder as sentence-transformers writes it, or an ONNX file beside its tokenizer.json. All of it is
data: no code of a model is run, and nothing is downloaded. Needs the extra `encoders`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from redraft.config.ranges import Range, check_ranges, shown
from redraft.config.toml import build
from redraft.errors import ConfigError, MissingExtraError, ModelError
from redraft.models.bert import MAX_POSITIONS, BertConfig, BertNetwork
from redraft.models.onnx_network import OnnxNetwork
from redraft.storage.artifact import Artifact
from redraft.storage.checks import damaged, read_json, read_tensors
from redraft.types import Input

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SETTINGS, TOKENIZER = "encoder.json", "tokenizer.json"
WEIGHTS, GRAPH = "weights.safetensors", "network.onnx"

BATCH_TOKENS = 4_096
"""Tokens of a batch, padding included: bounds the memory of attention."""

LARGEST_WEIGHT = 1e4
LARGEST_TOKENIZER = 1 << 26

Vectors = NDArray[np.float32]


class SentenceNetwork(Protocol):
    """A network over token ids: of BERT's weights, or of an ONNX file."""

    def states(self, ids: NDArray[np.int64], mask: NDArray[np.bool_]) -> Vectors:
        """Return a state per token (B, T, D), or a vector per row (B, D)."""
        ...


@dataclass(frozen=True)
class SentenceConfig:
    """How states become a vector, and the tokens that are read of a text."""

    pooling: str = "mean"  # or "cls", the first token's state
    longest: Annotated[int, Range(2, MAX_POSITIONS)] = 256

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.pooling not in ("mean", "cls"):
            raise ConfigError(f"pooling is {shown(self.pooling)}; choose one of: mean, cls")


class SentenceEncoder:
    """A tokenizer and a network; the fields of an input are read as lines of one text."""

    def __init__(
        self, tokenizer: "Tokenizer", network: SentenceNetwork, config: SentenceConfig
    ) -> None:
        self.tokenizer = tokenizer
        self.network = network
        self.config = config
        tokenizer.no_padding()
        tokenizer.enable_truncation(config.longest)

    @cached_property
    def width(self) -> int:
        """The dimension of the vectors."""
        return len(self._embed([[]])[0])

    def encode(self, inputs: Sequence[Input]) -> Vectors:
        """Return the unit vector of each input: (B, D)."""
        # lone surrogates, which UTF-8 cannot encode, become question marks
        texts = ["\n".join(x.values()).encode(errors="replace").decode() for x in inputs]
        token_ids = [encoded.ids for encoded in self.tokenizer.encode_batch(texts)]
        # inputs of similar length share a batch, which saves padding
        by_length = sorted(range(len(token_ids)), key=lambda row: len(token_ids[row]))
        vectors: dict[int, Vectors] = {}
        start = 0
        while start < len(by_length):
            end = start + 1
            while end < len(by_length) and _size(token_ids, by_length, start, end) <= BATCH_TOKENS:
                end += 1
            rows = by_length[start:end]
            vectors.update(zip(rows, self._embed([token_ids[row] for row in rows]), strict=True))
            start = end
        if not vectors:
            return np.empty((0, self.width), np.float32)
        return np.stack([vectors[row] for row in range(len(inputs))])

    def _embed(self, token_ids: Sequence[Sequence[int]]) -> Vectors:
        """Return the unit vectors of a batch."""
        width = max(1, max(map(len, token_ids)))
        ids = np.zeros((len(token_ids), width), np.int64)
        mask = np.zeros((len(token_ids), width), np.bool_)
        for row, own in enumerate(token_ids):
            ids[row, : len(own)] = own
            mask[row, : max(1, len(own))] = True  # an empty text is a padding token
        states = self.network.states(ids, mask)
        if states.ndim not in (2, 3) or not np.isfinite(states).all():
            raise ModelError("the encoder gives no finite vector per text; export it again")
        if states.ndim == 3:  # otherwise the network has pooled them
            states = states[:, 0] if self.config.pooling == "cls" else _mean(states, mask)
        lengths = np.linalg.norm(states, axis=1, keepdims=True)
        return np.asarray(states / np.maximum(lengths, 1e-12), np.float32)

    def save(self, folder: Path) -> None:
        """Write the tokenizer, the settings, and the weights or the graph."""
        settings: dict[str, Any] = asdict(self.config)
        (folder / TOKENIZER).write_text(self.tokenizer.to_str(), encoding="utf-8")
        if isinstance(self.network, BertNetwork):
            from safetensors.numpy import save_file

            settings["bert"] = asdict(self.network.config)
            save_file(dict(self.network.weights), folder / WEIGHTS)
        elif isinstance(self.network, OnnxNetwork):
            (folder / GRAPH).write_bytes(self.network.graph)
        text = json.dumps(settings, indent=2) + "\n"
        (folder / SETTINGS).write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, artifact: Artifact) -> "SentenceEncoder":
        """Return a saved encoder; its settings must describe its weights."""
        path = artifact.path(SETTINGS)
        settings = read_json(path)
        if not isinstance(settings, dict):
            raise damaged(path, "not the settings of an encoder")
        sizes = settings.pop("bert", None)
        config = build(SentenceConfig, settings, where=str(path))
        tokenizer = read_tokenizer(artifact.path(TOKENIZER))
        if sizes is None:
            return cls(tokenizer, OnnxNetwork.read(artifact.path(GRAPH)), config)
        network = load_bert(artifact.path(WEIGHTS), build(BertConfig, sizes, where=str(path)))
        if config.longest > network.config.positions:
            raise damaged(path, "it reads more tokens than there are positions")
        check_words(artifact.path(TOKENIZER), tokenizer, network.config.words)
        return cls(tokenizer, network, config)


def _size(token_ids: Sequence[Sequence[int]], rows: Sequence[int], start: int, end: int) -> int:
    """Return the tokens of the batch of rows `start` to `end`, padding included."""
    return (end - start + 1) * len(token_ids[rows[end]])


def _mean(states: Vectors, mask: NDArray[np.bool_]) -> Vectors:
    weights = mask.astype(np.float32)
    mean: Vectors = np.einsum("btd,bt->bd", states, weights) / weights.sum(1, keepdims=True)
    return mean


def read_tokenizer(path: Path) -> "Tokenizer":
    """Return the tokenizer of a tokenizer.json."""
    try:
        from tokenizers import Tokenizer
    except ModuleNotFoundError as error:
        raise MissingExtraError("tokenizers", extra="encoders", purpose=str(path)) from error
    if path.stat().st_size > LARGEST_TOKENIZER:
        raise damaged(path, f"more than {LARGEST_TOKENIZER:,} bytes")
    try:
        return Tokenizer.from_str(path.read_text(encoding="utf-8"))
    except Exception as error:  # tokenizers raises bare exceptions
        raise damaged(path, "not a tokenizer") from error


def check_words(path: Path, tokenizer: "Tokenizer", words: int) -> None:
    """Raise unless every token has a row among the `words` of a network."""
    if max(tokenizer.get_vocab(with_added_tokens=True).values(), default=0) >= words:
        raise damaged(path, "it has more tokens than the network")


def load_bert(path: Path, config: BertConfig) -> BertNetwork:
    """Return the network of saved weights, which must have the shapes of `config`."""
    expected = {name: (np.float32, shape) for name, shape in config.shapes().items()}
    return checked_bert(path, read_tensors(path, expected), config)


def checked_bert(
    path: Path, weights: Mapping[str, NDArray[np.float32]], config: BertConfig
) -> BertNetwork:
    """Return the network of `weights`; raise unless all are finite and of usual size."""
    for name, weight in weights.items():
        if not bool((np.abs(weight) <= LARGEST_WEIGHT).all()):  # False for NaN as well
            raise damaged(path, f"{name} has a weight that is not finite, or above 10,000")
    return BertNetwork(weights, config)
