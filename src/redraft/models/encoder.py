"""Sources to a memory: one LSTM for each source, or one Transformer over all of them."""

import torch
from torch import Tensor, nn

from redraft.models.dropout import dropout
from redraft.models.memory import Memory, Sources
from redraft.models.recurrent import BidirectionalLSTM
from redraft.models.transformer import EncoderLayer, initialise


class LSTMEncoder(nn.Module):
    """The paper's: a bidirectional LSTM of its own for every source."""

    packs = False

    def __init__(
        self, roles: int, input_width: int, width: int, *, layers: int, dropout_rate: float
    ) -> None:
        super().__init__()
        self.readers = nn.ModuleList(
            BidirectionalLSTM(input_width, width // 2, layers=layers, dropout_rate=dropout_rate)
            for _ in range(roles)
        )
        self.width = width  # half of it each direction
        self.combine = nn.Linear(roles * self.width, self.width)

    def forward(
        self, embedded: Tensor, sources: Sources, *, generator: torch.Generator | None
    ) -> Memory:
        """The states of each source (B, S, W), and their last ones combined."""
        read = [
            reader(part, sources.lengths[:, role], generator=generator)
            for role, (reader, part) in enumerate(
                zip(self.readers, sources.apart(embedded), strict=True)
            )
        ]
        states = torch.cat([states for states, _ in read], 1)
        return Memory(sources, states, self.combine(torch.cat([last for _, last in read], 1)))


class TransformerEncoder(nn.Module):
    """Layers over all fields of x at once and, apart from them, over all of the prototype.

    Each place knows its source and its position there: sources can stand without gaps.
    """

    packs = True

    def __init__(
        self,
        fields: int,
        roles: int,
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
        self.roles = nn.Embedding(roles, width)
        self.layers = nn.ModuleList(
            EncoderLayer(width, heads=heads, dropout_rate=dropout_rate) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        self.dropout_rate = dropout_rate
        initialise(self)

    def forward(
        self, embedded: Tensor, sources: Sources, *, generator: torch.Generator | None
    ) -> Memory:
        """The states of all places (B, S, W), and their mean."""
        states = self.read(embedded) + self.roles(sources.roles)
        states = dropout(states, self.dropout_rate, generator=generator)
        sides = zip(
            sources.sides(states, self.fields),
            sources.sides(sources.mask, self.fields),
            sources.sides(sources.places, self.fields),
            strict=True,
        )
        read = []
        for side, mask, place in sides:
            for layer in self.layers:
                side = layer(side, mask, place, generator=generator)
            read.append(self.norm(side))
        states, real = torch.cat(read, 1), sources.mask[:, :, None]
        return Memory(sources, states, (states * real).sum(1) / real.sum(1))
