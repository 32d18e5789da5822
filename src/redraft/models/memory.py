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
    roles: Tensor  # (B, S), the sequence that a token is of
    places: Tensor  # (B, S), its place there
    widths: tuple[int, ...]  # columns of each sequence; of each side, if packed

    @classmethod
    def join(cls, sequences: list[Sequences], copyable: list[bool]) -> "Sources":
        """The sequences of a batch; an end token closes each and is never copied."""
        ids = torch.cat([each.ids for each in sequences], 1)
        widths = tuple(each.ids.shape[1] for each in sequences)
        roles = torch.arange(len(widths)).repeat_interleave(torch.tensor(widths)).to(ids.device)
        places = torch.cat([torch.arange(width) for width in widths]).to(ids.device)
        lengths = torch.stack([each.lengths for each in sequences], 1)
        allowed = torch.tensor(copyable, device=ids.device)[roles]
        return cls(
            ids,
            places < lengths[:, roles],
            (places < lengths[:, roles] - 1) & allowed,
            lengths,
            roles.expand_as(ids),
            places.expand_as(ids),
            widths,
        )

    def packed(self, fields: int) -> "Sources":
        """The same tokens without the padding between sequences, the fields of x and the rest."""
        widths = [side.shape[1] for side in self.sides(self.ids, fields)]
        kept = []
        for side, start in zip(self.sides(self.mask, fields), (0, widths[0]), strict=False):
            order = (~side).to(torch.uint8).argsort(dim=1, stable=True)
            kept.append(order[:, : int(side.sum(1).max())] + start)
        columns = torch.cat(kept, 1)
        return Sources(
            self.ids.gather(1, columns),
            self.mask.gather(1, columns),
            self.copyable.gather(1, columns),
            self.lengths,
            self.roles.gather(1, columns),
            self.places.gather(1, columns),
            tuple(each.shape[1] for each in kept),
        )

    def select(self, rows: Tensor) -> "Sources":
        """Those of some rows."""
        return Sources(
            self.ids.index_select(0, rows),
            self.mask.index_select(0, rows),
            self.copyable.index_select(0, rows),
            self.lengths.index_select(0, rows),
            self.roles.index_select(0, rows),
            self.places.index_select(0, rows),
            self.widths,
        )

    def sides(self, values: Tensor, fields: int) -> tuple[Tensor, ...]:
        """Values of all places as those of the first sequences, the fields of x, and the rest."""
        own = int((self.roles[0] < fields).sum())
        rest = self.ids.shape[1] - own
        return torch.split(values, [own, rest] if rest else [own], 1)

    def apart(self, values: Tensor) -> tuple[Tensor, ...]:
        """Values of all places as those of each sequence; not if packed."""
        return torch.split(values, list(self.widths), 1)


@dataclass(frozen=True)
class Sharing:
    """Which row of a memory each row attends to.

    A search has several rows for one input. Their memory is held once, and they attend to it side
    by side, as if they were one row with more tokens.
    """

    owners: Tensor  # (R,)
    memories: int
    most: int  # rows of one memory
    slots: Tensor | None  # (R,), where rows stand if each memory had the most; None: one each

    @classmethod
    def plain(cls, memories: int, device: torch.device) -> "Sharing":
        """A row for each memory."""
        return cls(torch.arange(memories, device=device), memories, 1, None)

    @classmethod
    def of(cls, owners: Tensor, memories: int) -> "Sharing":
        """Of rows whose memories are these."""
        counts = torch.bincount(owners, minlength=memories)
        order = owners.argsort(stable=True)
        starts = counts.cumsum(0) - counts
        places = torch.empty_like(owners)
        places[order] = torch.arange(len(owners), device=owners.device) - starts[owners[order]]
        most = int(counts.max())
        return cls(owners, memories, most, owners * most + places)

    def select(self, rows: Tensor) -> tuple["Sharing", Tensor | None]:
        """That of some rows, and the memories to keep once most of them are of no more use."""
        owners = self.owners[rows]
        used, renumbered = torch.unique(owners, return_inverse=True)
        if 2 * len(used) > self.memories:
            return Sharing.of(owners, self.memories), None
        return Sharing.of(renumbered, len(used)), used

    def gather(self, values: Tensor) -> Tensor:
        """Values of rows (R, T, D) as those of memories (M, most * T, D), 0 where no row is."""
        if self.slots is None:
            return values
        padded = values.new_zeros(self.memories * self.most, *values.shape[1:])
        padded[self.slots] = values
        return padded.view(self.memories, -1, values.shape[2])

    def spread(self, values: Tensor) -> Tensor:
        """Values of memories (M, most * T, D) as those of rows (R, T, D)."""
        if self.slots is None:
            return values
        apart = values.reshape(self.memories * self.most, -1, values.shape[2])
        return apart[self.slots]


@dataclass(frozen=True)
class Memory:
    """The sources and their encoded states."""

    sources: Sources
    states: Tensor  # (B, S, D)
    summary: Tensor  # (B, D), all sources in one vector
