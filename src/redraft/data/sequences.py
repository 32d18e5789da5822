"""Token numbers as padded tensors, in batches of like lengths."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Sequences:
    """Token numbers, padded at the end with 0."""

    ids: Tensor  # (B, T)
    lengths: Tensor  # (B,)

    @classmethod
    def pad(cls, rows: Sequence[Sequence[int]]) -> "Sequences":
        """The rows as one tensor, as wide as the longest."""
        lengths = torch.tensor([len(row) for row in rows])
        ids = torch.zeros(len(rows), int(lengths.max()), dtype=torch.long)
        for at, row in enumerate(rows):
            ids[at, : len(row)] = torch.tensor(row)
        return cls(ids, lengths)

    @property
    def mask(self) -> Tensor:
        """True where a real token stands: (B, T)."""
        positions = torch.arange(self.ids.shape[1], device=self.ids.device)
        return positions < self.lengths[:, None]

    def to(self, device: torch.device) -> "Sequences":
        """The same sequences on a device."""
        return Sequences(self.ids.to(device), self.lengths.to(device))


def bucket(lengths: Sequence[tuple[int, int]], batch_size: int, *, seed: int) -> list[list[int]]:
    """Row numbers in shuffled batches, every row once, alike in both lengths: little padding."""
    order = random.Random(seed)
    # a little noise in the keys, so that not the same rows meet in every epoch
    keys = [tuple(length * order.uniform(0.95, 1.05) for length in pair) for pair in lengths]
    rows = sorted(range(len(keys)), key=lambda row: keys[row][0])
    batches = max(1, math.ceil(len(rows) / batch_size))
    # strips of like first length, each sorted by the second and cut into batches
    strip = batch_size * math.ceil(math.sqrt(batches))
    for start in range(0, len(rows), strip):
        rows[start : start + strip] = sorted(
            rows[start : start + strip], key=lambda row: keys[row][1]
        )
    cut = [rows[start : start + batch_size] for start in range(0, len(rows), batch_size)]
    order.shuffle(cut)
    return cut
