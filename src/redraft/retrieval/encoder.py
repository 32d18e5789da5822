"""The learned encoder of inputs as unit vectors."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file

from redraft.config import toml as settings
from redraft.models.autoencoder import FieldsEncoder
from redraft.models.batch import Sequences
from redraft.models.config import AutoencoderConfig
from redraft.models.weights import load_weights
from redraft.storage.artifact import Artifact
from redraft.storage.checks import entry, names, read_json, tensor_shapes, whole
from redraft.text.token_encoder import TokenEncoder
from redraft.types import Input

LONGEST_FIELD = 128

Vectors = NDArray[np.float32]


class DenseEncoder:
    """The learned mu(x), with its token encoder and the order of its fields."""

    def __init__(
        self, network: FieldsEncoder, encoding: TokenEncoder, fields: Sequence[str]
    ) -> None:
        self.network = network
        self.encoding = encoding
        self.fields = list(fields)

    @property
    def concentration(self) -> float:
        """The kappa of training."""
        return self.network.config.concentration

    def token_ids(self, x: Input) -> list[list[int]]:
        """Return the token ids of each field of an input."""
        return [self.encoding.encode(x.get(f, ""), longest=LONGEST_FIELD) for f in self.fields]

    @torch.inference_mode()
    def encode(self, inputs: Sequence[Input], *, batch_size: int = 64) -> Vectors:
        """Return mu(x) of each input, without noise: (B, D)."""
        token_ids = [self.token_ids(x) for x in inputs]
        device = self.network.embedding.weight.device
        vectors = np.empty((len(inputs), self.network.config.embedding_dim), np.float32)
        # inputs of similar length share a batch, which saves padding
        by_length = sorted(range(len(token_ids)), key=lambda row: sum(map(len, token_ids[row])))
        for start in range(0, len(token_ids), batch_size):
            rows = by_length[start : start + batch_size]
            batch = [field.to(device) for field in stack_fields([token_ids[row] for row in rows])]
            vectors[rows] = self.network(batch, generator=None).cpu().numpy()
        return vectors

    def save(self, folder: Path) -> None:
        """Write vocabulary, settings and weights."""
        self.encoding.save(folder / "vocabulary.txt")
        save_file(self.network.state_dict(), folder / "weights.safetensors")
        described = {"fields": self.fields, "network": asdict(self.network.config)}
        text = json.dumps(described, indent=2) + "\n"
        (folder / "encoder.json").write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, artifact: Artifact) -> "DenseEncoder":
        """Return a saved encoder; its settings must describe its weights."""
        path, weights = artifact.path("encoder.json"), artifact.path("weights.safetensors")
        described = read_json(path)
        network = entry(path, described, "network", dict)
        config = settings.build(AutoencoderConfig, network, where=str(path))
        fields = names(path, "fields", described.get("fields"))
        # before the network is built: each layer of each field has tensors of its own
        layers = len(fields) * config.encoder_layers
        most = len(tensor_shapes(weights))
        whole(path, "the number of fields and layers", layers, least=0, most=most)
        encoding = TokenEncoder.load(artifact.path("vocabulary.txt"))
        size = len(encoding.vocabulary)
        return cls(
            load_weights(lambda: FieldsEncoder(size, len(fields), config), weights),
            encoding,
            fields,
        )


def stack_fields(rows: Sequence[Sequence[Sequence[int]]]) -> list[Sequences]:
    """Pad token ids (example, field, token) to one batch per field."""
    return [Sequences.pad(field) for field in zip(*rows, strict=True)]
