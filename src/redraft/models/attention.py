"""Attention with several heads, whose keys and values are projected once and can be kept."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Attended:
    """Projected keys and values of what is attended to."""

    keys: Tensor  # (B, H, S, D/H)
    values: Tensor  # (B, H, S, D/H)

    def select(self, rows: Tensor) -> "Attended":
        """Those of some rows."""
        return Attended(self.keys.index_select(0, rows), self.values.index_select(0, rows))

    def join(self, *later: "Attended") -> "Attended":
        """These, and later ones after them."""
        keys = torch.cat([self.keys, *(each.keys for each in later)], dim=2)
        return Attended(keys, torch.cat([self.values, *(each.values for each in later)], dim=2))


def rotate(vectors: Tensor, places: Tensor | None) -> Tensor:
    """Vectors (B, H, T, D) turned in their planes by angles that grow with the place.

    Places are (T,), or (B, T) where each row has its own.

    The product of two turned vectors depends on how far apart their places are, and on nothing
    else of them (Su et al. 2021): what stands a few tokens back looks alike everywhere.
    """
    if places is None:
        return vectors
    half = vectors.shape[3] // 2
    steps = torch.arange(half, device=vectors.device) / half
    angles = places.to(vectors.device)[..., None] * torch.exp(-math.log(_SLOWEST) * steps)
    if places.dim() == 2:
        angles = angles[:, None]  # the same for all heads
    cosine, sine = angles.cos(), angles.sin()  # (T, D/2) or (B, 1, T, D/2)
    left, right = vectors[..., :half], vectors[..., half:]
    return torch.cat([left * cosine - right * sine, right * cosine + left * sine], dim=3)


_SLOWEST = 1_000.0
"""Tokens for a radian in the slowest plane."""


class Attention(nn.Module):
    """Scaled dot products of states with a memory."""

    def __init__(self, width: int, memory_width: int, *, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(memory_width, 2 * width)
        self.out = nn.Linear(width, width)

    def project(self, memory: Tensor, places: Tensor | None = None) -> Attended:
        """Keys and values of a memory (B, S, M), the keys turned by their places."""
        keys, values = self.key_value(memory).chunk(2, dim=2)
        return Attended(rotate(self._split(keys), places), self._split(values))

    def forward(
        self,
        states: Tensor,
        attended: Attended,
        mask: Tensor | None,
        places: Tensor | None = None,
    ) -> Tensor:
        """What each state (B, T, D) gathers; the mask broadcasts to (B, H, T, S).

        Where keys were turned by their places, the queries must be turned by theirs.
        """
        queries = rotate(self._split(self.query(states)), places)
        gathered = functional.scaled_dot_product_attention(
            queries, attended.keys, attended.values, attn_mask=mask
        )
        rows, length, width = states.shape
        read: Tensor = self.out(gathered.transpose(1, 2).reshape(rows, length, width))
        return read

    def _split(self, values: Tensor) -> Tensor:
        rows, length, width = values.shape  # to (B, H, T, D/H)
        return values.view(rows, length, self.heads, width // self.heads).transpose(1, 2)
