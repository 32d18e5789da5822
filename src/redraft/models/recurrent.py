"""LSTMs over padded sequences, in fused kernels: no loop over time, and no packing.

Padding stands at the end, so a forward LSTM never sees it before a real token. The backward
direction runs over the sequence reversed within its own length, for the same reason.
"""

import torch
from torch import Tensor, nn

from redraft.models.dropout import dropout


def reversal(lengths: Tensor, width: int) -> Tensor:
    """Where each position goes when the real tokens are reversed: (B, T)."""
    positions = torch.arange(width, device=lengths.device).expand(len(lengths), width)
    mirrored = lengths[:, None] - 1 - positions
    return torch.where(mirrored >= 0, mirrored, positions)


def rearrange(states: Tensor, order: Tensor) -> Tensor:
    """States (B, T, D) in another order of positions (B, T)."""
    return states.gather(1, order[:, :, None].expand_as(states))


def last_states(states: Tensor, lengths: Tensor) -> Tensor:
    """The state at each sequence's last real token: (B, D)."""
    rows = torch.arange(len(states), device=states.device)
    return states[rows, lengths - 1]


class BidirectionalLSTM(nn.Module):
    """Layers of a forward and a backward LSTM, each reading both directions of the last."""

    def __init__(self, input_width: int, width: int, *, layers: int, dropout_rate: float) -> None:
        super().__init__()
        widths = [input_width] + [2 * width] * (layers - 1)
        self.forwards = nn.ModuleList(nn.LSTM(w, width, batch_first=True) for w in widths)
        self.backwards = nn.ModuleList(nn.LSTM(w, width, batch_first=True) for w in widths)
        self.dropout_rate = dropout_rate
        self.width = 2 * width

    def forward(
        self, inputs: Tensor, lengths: Tensor, *, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor]:
        """States of all positions (B, T, 2W), and the last ones of both directions (B, 2W)."""
        order = reversal(lengths, inputs.shape[1])
        states = inputs
        for forward, backward in zip(self.forwards, self.backwards, strict=True):
            states = dropout(states, self.dropout_rate, generator=generator)
            there = forward(states)[0]
            back = backward(rearrange(states, order))[0]
            last = torch.cat([last_states(there, lengths), last_states(back, lengths)], dim=1)
            states = torch.cat([there, rearrange(back, order)], dim=2)
        return states, last


class ResidualLSTM(nn.Module):
    """Forward LSTM layers that each add to what they read, and read a code besides.

    Without the residual connections four layers hardly learn; with the code given to each layer
    none has to carry it through time.
    """

    def __init__(self, width: int, code_width: int, *, layers: int, dropout_rate: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.LSTM(width, width, batch_first=True) for _ in range(layers))
        self.codes = nn.ModuleList(nn.Linear(code_width, width) for _ in range(layers))
        self.dropout_rate = dropout_rate

    def forward(
        self,
        inputs: Tensor,
        code: Tensor,
        *,
        state: tuple[Tensor, ...] = (),
        generator: torch.Generator | None,
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """States of all positions (B, T, W), and what to go on with: of each layer two (B, W)."""
        states = inputs
        after: list[Tensor] = []
        for at, (layer, project) in enumerate(zip(self.layers, self.codes, strict=True)):
            read = states + project(code)[:, None]  # the code is the same at every position
            read = dropout(read, self.dropout_rate, generator=generator)
            before = (state[2 * at][None], state[2 * at + 1][None]) if state else None
            written, (hidden, cell) = layer(read, before)
            after += [hidden[0], cell[0]]
            states = states + written
        return states, tuple(after)
