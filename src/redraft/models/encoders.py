"""Encoders of the sources: one LSTM per source, or one Transformer over all of them."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from redraft.models.config import ENCODER_LAYERS, HEADS, EditNetworkConfig
from redraft.models.dropout import dropout
from redraft.models.lstm import BidirectionalLSTM
from redraft.models.memory import Memory, Sources
from redraft.models.transformer import EncoderLayer, initialise

if TYPE_CHECKING:
    from redraft.models.edit_network import EditSizes


class Encoder(nn.Module, ABC):
    """Encodes the embedded tokens of all sources."""

    packs: bool  # accepts sources without padding between them

    @abstractmethod
    def forward(
        self, embedded: Tensor, sources: Sources, *, generator: torch.Generator | None
    ) -> Memory:
        """Return the states of all sources (B, S, W) and their summary (B, W)."""


class LSTMEncoder(Encoder):
    """The paper's encoder: one bidirectional LSTM per source."""

    packs = False

    def __init__(self, sizes: "EditSizes", input_width: int, config: EditNetworkConfig) -> None:
        super().__init__()
        half, layers = config.width // 2, ENCODER_LAYERS
        self.readers = nn.ModuleList(
            BidirectionalLSTM(input_width, half, layers=layers, dropout_rate=config.dropout)
            for _ in sizes.copyable
        )
        self.combine = nn.Linear(len(self.readers) * config.width, config.width)

    def forward(
        self, embedded: Tensor, sources: Sources, *, generator: torch.Generator | None
    ) -> Memory:
        """Return the states of each source (B, S, W) and a projection of their last states."""
        parts = zip(sources.apart(embedded), sources.lengths.unbind(1), strict=True)
        encoded = [
            reader(part, lengths, generator=generator)
            for reader, (part, lengths) in zip(self.readers, parts, strict=True)
        ]
        states = torch.cat([states for states, _ in encoded], 1)
        return Memory(sources, states, self.combine(torch.cat([last for _, last in encoded], 1)))


class TransformerEncoder(Encoder):
    """Self-attention within two segments: all fields of x, and the whole prototype.

    Tokens carry a source embedding and their position in the source, so that no padding is needed
    between sources.
    """

    packs = True

    def __init__(self, sizes: "EditSizes", input_width: int, config: EditNetworkConfig) -> None:
        super().__init__()
        self.fields, self.dropout_rate = sizes.fields, config.dropout
        self.read = nn.Linear(input_width, config.width)
        self.source_ids = nn.Embedding(len(sizes.copyable), config.width)
        self.layers = nn.ModuleList(
            EncoderLayer(config.width, heads=HEADS, dropout_rate=config.dropout)
            for _ in range(ENCODER_LAYERS)
        )
        self.norm = nn.LayerNorm(config.width)
        initialise(self)

    def forward(
        self, embedded: Tensor, sources: Sources, *, generator: torch.Generator | None
    ) -> Memory:
        """Return the states of all positions (B, S, W) and their mean."""
        states = self.read(embedded) + self.source_ids(sources.source_ids)
        states = dropout(states, self.dropout_rate, generator=generator)
        parts = (states, sources.mask, sources.positions)
        segments = (sources.segments(part, self.fields) for part in parts)
        encoded = []
        for segment, mask, positions in zip(*segments, strict=True):
            for layer in self.layers:
                segment = layer(segment, mask, positions, generator=generator)
            encoded.append(self.norm(segment))
        states, is_real = torch.cat(encoded, 1), sources.mask[:, :, None]
        return Memory(sources, states, (states * is_real).sum(1) / is_real.sum(1))
