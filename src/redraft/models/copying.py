"""Copy mechanisms: logits over memory positions, which share one softmax with the vocabulary.

Each token is embedded as [word ; slot]. The slot embedding tells apart tokens that have the same id
in the vocabulary, such as OOVs; each copy mechanism defines its own slots.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from redraft.models.memory import Memory, Sources

NEVER = -1e9
"""Log-probability of impossible events; finite, so that its gradient is 0 and not NaN."""


class Copying(nn.Module, ABC):
    """Logits of copying from each memory position, and the slot ids of tokens."""

    def __init__(self, slots: int) -> None:
        super().__init__()
        self.slots = slots  # excluding slot 0, which means "no slot"

    @abstractmethod
    def slots_of(self, ids: Tensor, sources: Sources) -> Tensor:
        """Return the slot id of each token: (B, T)."""

    @abstractmethod
    def prepare(self, memory: Memory) -> Tensor:
        """Return the part that is computed once per memory: (B, S, …)."""

    @abstractmethod
    def forward(self, states: Tensor, prepared: Tensor) -> Tensor:
        """Return the copy logit of each position for each state, before masking: (B, T, S)."""


class PositionalCopying(Copying):
    """The paper's copying: a copy token per position, scored from the decoder state alone."""

    def __init__(self, limits: Sequence[int], width: int) -> None:
        super().__init__(sum(limits))
        self.limits = list(limits)  # positions per source that have a copy token
        self.score = nn.Linear(width, self.slots)

    def slots_of(self, ids: Tensor, sources: Sources) -> Tensor:
        """Return the copy token of the first copyable position that holds each token."""
        copy_ids = self._copy_ids(sources)
        matches = (ids[:, :, None] == sources.ids[:, None]) & (copy_ids > 0)[:, None]  # (B, T, S)
        first = matches.to(torch.uint8).argmax(2)  # 0 also where nothing matches
        return torch.where(matches.any(2), copy_ids.gather(1, first), 0)

    def _copy_ids(self, sources: Sources) -> Tensor:
        """Return the copy token of each position, counted from 1; 0 means none: (B, S)."""
        limits = torch.tensor(self.limits, device=sources.ids.device)
        offsets = limits.cumsum(0) - limits
        has_id = sources.copyable & (sources.positions < limits[sources.source_ids])
        return torch.where(has_id, sources.positions + offsets[sources.source_ids] + 1, 0)

    def prepare(self, memory: Memory) -> Tensor:
        """Return the copy token of each position."""
        return self._copy_ids(memory.sources)

    def forward(self, states: Tensor, prepared: Tensor) -> Tensor:
        """Look up the logit of each position's copy token."""
        copy_ids = prepared[:, None].expand(-1, states.shape[1], -1)
        scores: Tensor = self.score(states).gather(2, (copy_ids - 1).clamp(min=0))
        return scores.masked_fill(copy_ids == 0, NEVER)


class PointerCopying(Copying):
    """A pointer network: the logit is the match of the decoder state and the memory state."""

    def __init__(self, slots: int, width: int, memory_width: int, *, vocab_size: int) -> None:
        super().__init__(slots)
        self.vocab_size = vocab_size
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(memory_width, width, bias=False)

    def slots_of(self, ids: Tensor, sources: Sources) -> Tensor:  # noqa: ARG002
        """Return the slot of each OOV, modulo the number of slots; 0 for words."""
        return torch.where(ids < self.vocab_size, 0, (ids - self.vocab_size) % self.slots + 1)

    def prepare(self, memory: Memory) -> Tensor:
        """Return the keys of all positions."""
        keys: Tensor = self.key(memory.states)
        return keys

    def forward(self, states: Tensor, prepared: Tensor) -> Tensor:
        """Return the scaled product of query and key."""
        scores: Tensor = self.query(states) @ prepared.transpose(1, 2)
        return scores / math.sqrt(prepared.shape[2])


class NoCopying(Copying):
    """No copying: every token is generated from the vocabulary."""

    def __init__(self) -> None:
        super().__init__(0)

    def slots_of(self, ids: Tensor, sources: Sources) -> Tensor:  # noqa: ARG002
        """Return 0 for every token."""
        return torch.zeros_like(ids)

    def prepare(self, memory: Memory) -> Tensor:
        """Return the source ids, of which only the shape is used."""
        return memory.sources.ids

    def forward(self, states: Tensor, prepared: Tensor) -> Tensor:
        """Return logits that exclude every position."""
        return states.new_full((*states.shape[:2], prepared.shape[1]), NEVER)
