"""Padded tensors of token ids: sequences, edit examples and cached outputs."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from redraft.text.edit_encoder import EncodedEdit
from redraft.text.vocabulary import BOS_ID


@dataclass(frozen=True)
class Sequences:
    """Token ids, right-padded with 0."""

    ids: Tensor  # (B, T)
    lengths: Tensor  # (B,)

    @classmethod
    def pad(cls, rows: Sequence[Sequence[int]]) -> "Sequences":
        """Pad the rows to the length of the longest."""
        ids = [torch.tensor(row, dtype=torch.long) for row in rows]
        return cls(pad_sequence(ids, batch_first=True), torch.tensor([len(row) for row in rows]))

    @property
    def mask(self) -> Tensor:
        """Boolean mask (B, T), True for real tokens."""
        positions = torch.arange(self.ids.shape[1], device=self.ids.device)
        return positions < self.lengths[:, None]

    def to(self, device: torch.device) -> "Sequences":
        """Copy the tensors to `device`."""
        return Sequences(self.ids.to(device), self.lengths.to(device))


@dataclass(frozen=True)
class EditBatch:
    """Edit examples as padded tensors; ids beyond the vocabulary are OOV words of the row."""

    sources: list[Sequences]
    target: Sequences
    width: int  # size of the extended vocabulary: the largest number of OOVs included

    @classmethod
    def pad(cls, rows: Sequence[EncodedEdit], *, vocab_size: int) -> "EditBatch":
        """Pad edit examples to tensors; `vocab_size` is that of the vocabulary."""
        sources = [
            Sequences.pad(column) for column in zip(*(row.sources for row in rows), strict=True)
        ]
        oovs = max(len(row.unknown) for row in rows)
        return cls(sources, Sequences.pad([row.target for row in rows]), vocab_size + oovs)


@dataclass(frozen=True)
class CachePositions:
    """The token positions of the cached outputs, concatenated, each output after a start token."""

    ids: Tensor  # (B, S), padded with 0
    ranks: Tensor  # (B, S), the retrieval rank of the output at each position, from 0

    @classmethod
    def pad(cls, rows: Sequence[EncodedEdit]) -> "CachePositions":
        """Return the token positions of the cached outputs of edit examples."""
        ids = [[i for output in row.cached for i in (BOS_ID, *output)] for row in rows]
        ranks = [
            [rank for rank, output in enumerate(row.cached) for _ in range(1 + len(output))]
            for row in rows
        ]
        return cls(Sequences.pad(ids).ids, Sequences.pad(ranks).ids)

    def to(self, device: torch.device) -> "CachePositions":
        """Copy the tensors to `device`."""
        return CachePositions(self.ids.to(device), self.ranks.to(device))
