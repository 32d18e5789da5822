"""LSTMs over padded sequences in fused kernels, without packing or a loop over time.

Padding is at the end, so a forward LSTM never reads it before a real token. For the same reason the
backward direction reads each sequence reversed within its length.
"""

import torch
from torch import Tensor, nn

from redraft.models.dropout import dropout


def reversal(lengths: Tensor, width: int) -> Tensor:
    """Return the index that reverses the real tokens and leaves padding in place: (B, T)."""
    positions = torch.arange(width, device=lengths.device).expand(len(lengths), width)
    mirrored = lengths[:, None] - 1 - positions
    return torch.where(mirrored >= 0, mirrored, positions)


def rearrange(states: Tensor, order: Tensor) -> Tensor:
    """Reorder the positions of `states` (B, T, D) by `order` (B, T)."""
    return states.gather(1, order[:, :, None].expand_as(states))


def last_states(states: Tensor, lengths: Tensor) -> Tensor:
    """Return the state at the last real token of each sequence: (B, D)."""
    rows = torch.arange(len(states), device=states.device)
    return states[rows, lengths - 1]


class BidirectionalLSTM(nn.Module):
    """Stacked bidirectional LSTM layers; each layer reads both directions of the one below."""

    def __init__(self, input_width: int, width: int, *, layers: int, dropout_rate: float) -> None:
        super().__init__()
        widths = [input_width] + [2 * width] * (layers - 1)
        self.forwards = nn.ModuleList(nn.LSTM(w, width, batch_first=True) for w in widths)
        self.backwards = nn.ModuleList(nn.LSTM(w, width, batch_first=True) for w in widths)
        self.dropout_rate = dropout_rate

    def forward(
        self, inputs: Tensor, lengths: Tensor, *, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor]:
        """Return the states of all positions (B, T, 2W) and the last of both directions (B, 2W)."""
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
    """Forward LSTM layers with residual connections, conditioned on a code vector.

    Four layers hardly learn without the residual connections. Each layer reads the code at every
    position, so that none has to carry it through time.
    """

    def __init__(self, width: int, embedding_dim: int, *, layers: int, dropout_rate: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.LSTM(width, width, batch_first=True) for _ in range(layers))
        self.codes = nn.ModuleList(nn.Linear(embedding_dim, width) for _ in range(layers))
        self.dropout_rate = dropout_rate

    def forward(
        self,
        inputs: Tensor,
        code: Tensor,
        *,
        state: tuple[Tensor, ...] = (),
        generator: torch.Generator | None,
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return states (B, T, W) and the new recurrent state: (hidden, cell) per layer, (B, W)."""
        states = inputs
        new_state: list[Tensor] = []
        for i, (layer, project) in enumerate(zip(self.layers, self.codes, strict=True)):
            layer_inputs = states + project(code)[:, None]
            layer_inputs = dropout(layer_inputs, self.dropout_rate, generator=generator)
            initial = (state[2 * i][None], state[2 * i + 1][None]) if state else None
            layer_outputs, (hidden, cell) = layer(layer_inputs, initial)
            new_state += [hidden[0], cell[0]]
            states = states + layer_outputs
        return states, tuple(new_state)
