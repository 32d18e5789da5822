"""Multi-head attention with keys and values that are projected once and can be cached."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Attended:
    """Projected keys and values of an attended sequence."""

    keys: Tensor  # (B, H, S, D/H)
    values: Tensor  # (B, H, S, D/H)

    def reorder(self, rows: Tensor) -> "Attended":
        """Select `rows` of the batch, which may repeat."""
        return Attended(self.keys.index_select(0, rows), self.values.index_select(0, rows))

    def join(self, *later: "Attended") -> "Attended":
        """Append the keys and values of later positions."""
        parts = (self, *later)
        keys = torch.cat([part.keys for part in parts], dim=2)
        return Attended(keys, torch.cat([part.values for part in parts], dim=2))


def rotate(vectors: Tensor, positions: Tensor | None) -> Tensor:
    """Apply rotary position embeddings (Su et al. 2021) to `vectors` (B, H, T, D).

    `positions` are (T,), or (B, T) if they differ between rows; None returns `vectors` unchanged.
    The product of two rotated vectors depends only on the distance of their positions.
    """
    if positions is None:
        return vectors
    half = vectors.shape[3] // 2
    steps = torch.arange(half, device=vectors.device) / half
    angles = positions.to(vectors.device)[..., None] * torch.exp(-math.log(_BASE) * steps)
    if positions.dim() == 2:
        angles = angles[:, None]  # the same for all heads
    cosine, sine = angles.cos(), angles.sin()  # (T, D/2) or (B, 1, T, D/2)
    left, right = vectors[..., :half], vectors[..., half:]
    return torch.cat([left * cosine - right * sine, right * cosine + left * sine], dim=3)


_BASE = 1_000.0
"""Base of the rotary frequencies: the slowest plane turns one radian in this many tokens."""


class Attention(nn.Module):
    """Scaled dot-product attention of states over a memory."""

    def __init__(self, width: int, memory_width: int, *, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(memory_width, 2 * width)
        self.out = nn.Linear(width, width)

    def project(self, memory: Tensor, positions: Tensor | None = None) -> Attended:
        """Project a memory (B, S, M) to keys and values; keys are rotated by `positions`."""
        keys, values = self.key_value(memory).chunk(2, dim=2)
        return Attended(rotate(self._split(keys), positions), self._split(values))

    def forward(
        self,
        states: Tensor,
        attended: Attended,
        mask: Tensor | None,
        positions: Tensor | None = None,
    ) -> Tensor:
        """Return the attention output of each state (B, T, D); `mask` broadcasts to (B, H, T, S).

        If the keys were rotated, pass the `positions` of the queries.
        """
        queries = rotate(self._split(self.query(states)), positions)
        context = functional.scaled_dot_product_attention(
            queries, attended.keys, attended.values, attn_mask=mask
        )
        rows, length, width = states.shape
        output: Tensor = self.out(context.transpose(1, 2).reshape(rows, length, width))
        return output

    def _split(self, values: Tensor) -> Tensor:
        rows, length, width = values.shape  # to (B, H, T, D/H)
        return values.view(rows, length, self.heads, width // self.heads).transpose(1, 2)
