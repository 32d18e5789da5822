"""Inputs to unit vectors: the protocol of any text encoder, and the learned one."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file

from redraft import config as settings
from redraft.artifact import Artifact
from redraft.data.example import Input
from redraft.data.numbering import Numbering
from redraft.data.sequences import Sequences
from redraft.models.noisy_autoencoder import AutoencoderConfig, FieldsEncoder

LONGEST_FIELD = 128

Vectors = NDArray[np.float32]


class Encoder(Protocol):
    """Anything that turns inputs into vectors of length 1: a sentence encoder will do."""

    def encode(self, inputs: Sequence[Input]) -> Vectors:
        """The direction of each input: (B, D)."""
        ...


class DirectionEncoder:
    """The learned mu(x), with the numbering of its words and the order of its fields."""

    def __init__(self, network: FieldsEncoder, numbering: Numbering, fields: Sequence[str]) -> None:
        self.network = network
        self.numbering = numbering
        self.fields = list(fields)

    @property
    def concentration(self) -> float:
        """The kappa it was trained with."""
        return self.network.config.concentration

    def numbers(self, x: Input) -> list[list[int]]:
        """The fields of an input as token numbers."""
        return [self.numbering.numbers(x.get(f, ""), longest=LONGEST_FIELD) for f in self.fields]

    @torch.inference_mode()
    def encode(self, inputs: Sequence[Input], *, batch_size: int = 64) -> Vectors:
        """The direction of each input, without noise: (B, D)."""
        numbered = [self.numbers(x) for x in inputs]
        device = self.network.embedding.weight.device
        vectors = np.empty((len(inputs), self.network.config.code_width), np.float32)
        by_length = sorted(range(len(numbered)), key=lambda row: sum(map(len, numbered[row])))
        for start in range(0, len(numbered), batch_size):
            rows = by_length[start : start + batch_size]
            batch = [each.to(device) for each in stack_fields([numbered[row] for row in rows])]
            vectors[rows] = self.network(batch, generator=None).cpu().numpy()
        return vectors

    def save(self, folder: Path) -> None:
        """Write vocabulary, settings and weights."""
        self.numbering.save(folder / "vocabulary.txt")
        save_file(self.network.state_dict(), folder / "weights.safetensors")
        described = {"fields": self.fields, "network": settings.values_of(self.network.config)}
        text = json.dumps(described, indent=2) + "\n"
        (folder / "encoder.json").write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, artifact: Artifact) -> "DirectionEncoder":
        """The encoder that was saved."""
        described = artifact.json("encoder.json")
        where = f"{artifact.folder}: encoder.json"
        config = settings.build(AutoencoderConfig, described["network"], where=where)
        numbering = Numbering.load(artifact.path("vocabulary.txt"))
        network = FieldsEncoder(len(numbering.vocabulary), len(described["fields"]), config)
        network.load_state_dict(load_file(artifact.path("weights.safetensors")))
        return cls(network.eval(), numbering, described["fields"])


def stack_fields(rows: Sequence[Sequence[Sequence[int]]]) -> list[Sequences]:
    """Fields of examples (example, field, token) as one padded batch a field."""
    return [Sequences.pad(field) for field in zip(*rows, strict=True)]
