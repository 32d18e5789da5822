"""The memory of a decoder: concatenated source sequences and their encoded states."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from redraft.models.batch import Sequences


@dataclass(frozen=True)
class Sources:
    """Several padded sequences, concatenated along the time axis."""

    ids: Tensor  # (B, S), OOVs by their extended ids
    mask: Tensor  # (B, S)
    copyable: Tensor  # (B, S), True where the token can be copied
    lengths: Tensor  # (B, R), of each of the R sequences
    source_ids: Tensor  # (B, S), index of the token's sequence
    positions: Tensor  # (B, S), the token's position in its sequence
    widths: tuple[int, ...]  # columns per sequence; per segment, if packed

    @classmethod
    def join(cls, sequences: list[Sequences], copyable: list[bool]) -> "Sources":
        """Concatenate `sequences`; the EOS token that ends each is never copyable."""
        ids = torch.cat([sequence.ids for sequence in sequences], 1)
        widths = tuple(sequence.ids.shape[1] for sequence in sequences)
        source_ids = torch.arange(len(widths)).repeat_interleave(torch.tensor(widths))
        source_ids = source_ids.to(ids.device)
        positions = torch.cat([torch.arange(width) for width in widths]).to(ids.device)
        lengths = torch.stack([sequence.lengths for sequence in sequences], 1)
        allowed = torch.tensor(copyable, device=ids.device)[source_ids]
        return cls(
            ids,
            positions < lengths[:, source_ids],
            (positions < lengths[:, source_ids] - 1) & allowed,
            lengths,
            source_ids.expand_as(ids),
            positions.expand_as(ids),
            widths,
        )

    def packed(self, fields: int) -> "Sources":
        """Move the padding between sequences to the end of each of the two segments."""
        widths = [segment.shape[1] for segment in self.segments(self.ids, fields)]
        parts = []
        for mask, start in zip(self.segments(self.mask, fields), (0, widths[0]), strict=False):
            order = (~mask).to(torch.uint8).argsort(dim=1, stable=True)
            parts.append(order[:, : int(mask.sum(1).max())] + start)
        columns = torch.cat(parts, 1)
        packed = self._select(lambda values: values.gather(1, columns))
        return replace(packed, widths=tuple(part.shape[1] for part in parts))

    def reorder(self, rows: Tensor) -> "Sources":
        """Select `rows` of the batch, which may repeat."""
        selected = self._select(lambda values: values.index_select(0, rows))
        return replace(selected, lengths=self.lengths.index_select(0, rows))

    def _select(self, select: Callable[[Tensor], Tensor]) -> "Sources":
        """Apply `select` to every tensor of positions (B, S)."""
        return replace(
            self,
            ids=select(self.ids),
            mask=select(self.mask),
            copyable=select(self.copyable),
            source_ids=select(self.source_ids),
            positions=select(self.positions),
        )

    def segments(self, values: Tensor, fields: int) -> tuple[Tensor, ...]:
        """Split `values` (B, S, …) into those of the fields of x and those of the prototype."""
        input_width = int((self.source_ids[0] < fields).sum())
        rest = self.ids.shape[1] - input_width
        return torch.split(values, [input_width, rest] if rest else [input_width], 1)

    def apart(self, values: Tensor) -> tuple[Tensor, ...]:
        """Split `values` (B, S, …) by sequence; only for sources that are not packed."""
        return torch.split(values, list(self.widths), 1)


@dataclass(frozen=True)
class BeamIndex:
    """Maps each row of a beam search to the memory of its input.

    A search has several rows per input. They share one memory: for attention they are folded into
    one row with more query tokens, so that keys and values are not repeated.
    """

    owners: Tensor  # (R,), the memory of each row
    memories: int  # number of memories M
    max_rows: int  # the most rows that share a memory
    slots: Tensor | None  # (R,), indices into (M * max_rows) slots; None for one row per memory

    @classmethod
    def one_row_each(cls, memories: int, device: torch.device) -> "BeamIndex":
        """Return the index of one row per memory."""
        return cls(torch.arange(memories, device=device), memories, 1, None)

    @classmethod
    def from_owners(cls, owners: Tensor, memories: int) -> "BeamIndex":
        """Return the index of rows that attend to the memories `owners` (R,)."""
        counts = torch.bincount(owners, minlength=memories)
        order = owners.argsort(stable=True)
        starts = counts.cumsum(0) - counts
        offsets = torch.empty_like(owners)
        offsets[order] = torch.arange(len(owners), device=owners.device) - starts[owners[order]]
        max_rows = int(counts.max())
        return cls(owners, memories, max_rows, owners * max_rows + offsets)

    def reorder(self, rows: Tensor) -> tuple["BeamIndex", Tensor | None]:
        """Select `rows`, which may repeat.

        The second value is the index of the memories to keep once half of them are unused, or None.
        """
        owners = self.owners[rows]
        used, renumbered = torch.unique(owners, return_inverse=True)
        if 2 * len(used) > self.memories:
            return BeamIndex.from_owners(owners, self.memories), None
        return BeamIndex.from_owners(renumbered, len(used)), used

    def fold(self, values: Tensor) -> Tensor:
        """Fold rows (R, T, D) into memories (M, max_rows * T, D); empty slots are 0."""
        if self.slots is None:
            return values
        padded = values.new_zeros(self.memories * self.max_rows, *values.shape[1:])
        padded[self.slots] = values
        return padded.view(self.memories, -1, values.shape[2])

    def expand(self, values: Tensor) -> Tensor:
        """Undo `fold`: expand memories (M, max_rows * T, D) to rows (R, T, D)."""
        if self.slots is None:
            return values
        by_slot = values.reshape(self.memories * self.max_rows, -1, values.shape[2])
        return by_slot[self.slots]


@dataclass(frozen=True)
class Memory:
    """The sources and their encoded states."""

    sources: Sources
    states: Tensor  # (B, S, D)
    summary: Tensor  # (B, D), one vector for all sources
