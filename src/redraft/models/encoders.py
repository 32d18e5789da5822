"""Encoders of the sources: one LSTM per source, or one Transformer over all of them."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from redraft.models.dropout import dropout
from redraft.models.lstm import BidirectionalLSTM
from redraft.models.memory import Memory, Sources
from redraft.models.transformer import EncoderLayer, initialise


class Encoder(nn.Module, ABC):
    """Encodes the embedded tokens of all sources."""

    packs: bool  # accepts sources without padding between them
    width: int  # size of a state

    @abstractmethod
    def forward(
        self, embedded: Tensor, sources: Sources, *, generator: torch.Generator | None
    ) -> Memory:
        """Return the states of all sources (B, S, W) and their summary (B, W)."""


class LSTMEncoder(Encoder):
    """The paper's encoder: one bidirectional LSTM per source."""

    packs = False

    def __init__(
        self, source_ids: int, input_width: int, width: int, *, layers: int, dropout_rate: float
    ) -> None:
        super().__init__()
        self.readers = nn.ModuleList(
            BidirectionalLSTM(input_width, width // 2, layers=layers, dropout_rate=dropout_rate)
            for _ in range(source_ids)
        )
        self.width = width  # of both directions together
        self.combine = nn.Linear(source_ids * self.width, self.width)

    def forward(
        self, embedded: Tensor, sources: Sources, *, generator: torch.Generator | None
    ) -> Memory:
        """Return the states of each source (B, S, W) and a projection of their last states."""
        encoded = [
            reader(part, sources.lengths[:, source_id], generator=generator)
            for source_id, (reader, part) in enumerate(
                zip(self.readers, sources.apart(embedded), strict=True)
            )
        ]
        states = torch.cat([states for states, _ in encoded], 1)
        return Memory(sources, states, self.combine(torch.cat([last for _, last in encoded], 1)))


class TransformerEncoder(Encoder):
    """Self-attention within two segments: all fields of x, and the whole prototype.

    Tokens carry a source embedding and their position in the source, so that no padding is needed
    between sources.
    """

    packs = True

    def __init__(
        self,
        fields: int,
        source_ids: int,
        input_width: int,
        width: int,
        *,
        layers: int,
        heads: int,
        dropout_rate: float,
    ) -> None:
        super().__init__()
        self.fields = fields
        self.width = width
        self.read = nn.Linear(input_width, width)
        self.source_ids = nn.Embedding(source_ids, width)
        self.layers = nn.ModuleList(
            EncoderLayer(width, heads=heads, dropout_rate=dropout_rate) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        self.dropout_rate = dropout_rate
        initialise(self)

    def forward(
        self, embedded: Tensor, sources: Sources, *, generator: torch.Generator | None
    ) -> Memory:
        """Return the states of all positions (B, S, W) and their mean."""
        states = self.read(embedded) + self.source_ids(sources.source_ids)
        states = dropout(states, self.dropout_rate, generator=generator)
        segments = zip(
            sources.segments(states, self.fields),
            sources.segments(sources.mask, self.fields),
            sources.segments(sources.positions, self.fields),
            strict=True,
        )
        encoded = []
        for segment, mask, positions in segments:
            for layer in self.layers:
                segment = layer(segment, mask, positions, generator=generator)
            encoded.append(self.norm(segment))
        states, is_real = torch.cat(encoded, 1), sources.mask[:, :, None]
        return Memory(sources, states, (states * is_real).sum(1) / is_real.sum(1))
