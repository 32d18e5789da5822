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


def bucket(lengths: Sequence[Sequence[int]], batch_size: int, *, seed: int) -> list[list[int]]:
    """Row numbers in shuffled batches, every row once, alike in all lengths: little padding."""
    order = random.Random(seed)
    varied = [each for each in zip(*lengths, strict=True) if len(set(each)) > 1]
    # a little noise in the keys, so that not the same rows meet in every epoch
    keys = [[length * order.uniform(0.95, 1.05) for length in each] for each in varied]
    rows = _arrange(list(range(len(lengths))), keys, batch_size)
    cut = [rows[start : start + batch_size] for start in range(0, len(rows), batch_size)]
    order.shuffle(cut)
    return cut


def _arrange(rows: list[int], keys: Sequence[Sequence[float]], batch_size: int) -> list[int]:
    """The rows in strips of like first key, each of them arranged by the other keys."""
    if not keys:
        return rows
    first, *others = keys
    rows = sorted(rows, key=lambda row: first[row])
    batches = math.ceil(len(rows) / batch_size)
    strip = batch_size * max(1, math.ceil(batches ** (len(others) / len(keys))))
    return [
        row
        for start in range(0, len(rows), strip)
        for row in _arrange(rows[start : start + strip], others, batch_size)
    ]
