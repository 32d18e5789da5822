"""What a decoder attends to and copies from: the sources side by side, and their states."""

from dataclasses import dataclass

import torch
from torch import Tensor

from redraft.data.sequences import Sequences


@dataclass(frozen=True)
class Sources:
    """Several padded sequences, one beside the other."""

    ids: Tensor  # (B, S), unknown words by their own numbers
    mask: Tensor  # (B, S)
    copyable: Tensor  # (B, S), True where a token can be copied from
    lengths: Tensor  # (B, R), of each sequence
    widths: tuple[int, ...]  # columns of each sequence

    @classmethod
    def join(cls, sequences: list[Sequences], copyable: list[bool]) -> "Sources":
        """The sequences of a batch; an end token closes each and is never copied."""
        masks = [each.mask for each in sequences]
        places = [torch.arange(each.ids.shape[1], device=each.ids.device) for each in sequences]
        copied = [
            (place < each.lengths[:, None] - 1) & allowed
            for place, each, allowed in zip(places, sequences, copyable, strict=True)
        ]
        return cls(
            torch.cat([each.ids for each in sequences], 1),
            torch.cat(masks, 1),
            torch.cat(copied, 1),
            torch.stack([each.lengths for each in sequences], 1),
            tuple(each.ids.shape[1] for each in sequences),
        )

    def select(self, rows: Tensor) -> "Sources":
        """Those of some rows."""
        return Sources(
            self.ids.index_select(0, rows),
            self.mask.index_select(0, rows),
            self.copyable.index_select(0, rows),
            self.lengths.index_select(0, rows),
            self.widths,
        )

    def columns(self) -> tuple[Tensor, Tensor]:
        """The sequence that each column belongs to, and its place there: both (S,)."""
        widths = torch.tensor(self.widths)
        roles = torch.arange(len(widths)).repeat_interleave(widths)
        places = torch.cat([torch.arange(width) for width in self.widths])
        return roles.to(self.ids.device), places.to(self.ids.device)

    def sides(self, values: Tensor, fields: int) -> tuple[Tensor, ...]:
        """Values of all places as those of the first sequences, the fields of x, and the rest."""
        own = sum(self.widths[:fields])
        rest = sum(self.widths[fields:])
        return torch.split(values, [own, rest] if rest else [own], 1)

    def apart(self, values: Tensor, dim: int = 1) -> tuple[Tensor, ...]:
        """Values of all places as those of each sequence."""
        return torch.split(values, list(self.widths), dim)


@dataclass(frozen=True)
class Memory:
    """The sources and their encoded states."""

    sources: Sources
    states: Tensor  # (B, S, D)
    summary: Tensor  # (B, D), all sources in one vector

    def select(self, rows: Tensor) -> "Memory":
        """The memory of some rows."""
        return Memory(
            self.sources.select(rows),
            self.states.index_select(0, rows),
            self.summary.index_select(0, rows),
        )
