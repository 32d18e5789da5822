"""Sources to a memory: one LSTM for each source, or one Transformer over all of them."""

import torch
from torch import Tensor, nn

from redraft.models.dropout import dropout
from redraft.models.memory import Memory, Sources
from redraft.models.recurrent import BidirectionalLSTM
from redraft.models.transformer import EncoderLayer, initialise


class LSTMEncoder(nn.Module):
    """The paper's: a bidirectional LSTM of its own for every source."""

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
    """Layers over all sources at once; each place knows its source and its position there."""

    def __init__(
        self,
        roles: int,
        input_width: int,
        width: int,
        *,
        layers: int,
        heads: int,
        dropout_rate: float,
    ) -> None:
        super().__init__()
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
        places = torch.cat([torch.arange(each, device=embedded.device) for each in sources.widths])
        roles = self.roles.weight.repeat_interleave(
            torch.tensor(sources.widths, device=embedded.device), 0
        )
        states = self.read(embedded) + roles
        states = dropout(states, self.dropout_rate, generator=generator)
        for layer in self.layers:
            states = layer(states, sources.mask, places, generator=generator)
        states = self.norm(states)
        real = sources.mask[:, :, None]
        return Memory(sources, states, (states * real).sum(1) / real.sum(1))
