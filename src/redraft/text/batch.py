"""Padded tensors of token ids."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Sequences:
    """Token ids, right-padded with 0."""

    ids: Tensor  # (B, T)
    lengths: Tensor  # (B,)

    @classmethod
    def pad(cls, rows: Sequence[Sequence[int]]) -> "Sequences":
        """Pad the rows to the length of the longest."""
        lengths = torch.tensor([len(row) for row in rows])
        ids = torch.zeros(len(rows), int(lengths.max()), dtype=torch.long)
        for i, row in enumerate(rows):
            ids[i, : len(row)] = torch.tensor(row)
        return cls(ids, lengths)

    @property
    def mask(self) -> Tensor:
        """Boolean mask (B, T), True for real tokens."""
        positions = torch.arange(self.ids.shape[1], device=self.ids.device)
        return positions < self.lengths[:, None]

    def to(self, device: torch.device) -> "Sequences":
        """Copy the tensors to `device`."""
        return Sequences(self.ids.to(device), self.lengths.to(device))
