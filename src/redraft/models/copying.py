"""Copying: scores of the places of a memory, in one softmax with the words of the vocabulary.

A token's copy slot tells tokens apart that the vocabulary does not: each embedded token is
[word ; slot]. What a slot stands for is the way of copying's own matter.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from redraft.models.memory import Memory, Sources

NEVER = -1e9
"""The log of no chance at all; finite, so that its gradient is 0 and not undefined."""


class Copying(nn.Module, ABC):
    """Scores of copying from each place, and the slots that tokens are embedded with."""

    def __init__(self, slots: int) -> None:
        super().__init__()
        self.slots = slots  # besides slot 0, that of a token without one

    @abstractmethod
    def slots_of(self, ids: Tensor, sources: Sources) -> Tensor:
        """The slot of each token: (B, T)."""

    @abstractmethod
    def prepare(self, memory: Memory) -> Tensor:
        """What is computed once of a memory: (B, S, …)."""

    @abstractmethod
    def forward(self, states: Tensor, prepared: Tensor) -> Tensor:
        """The score of each place in each state, whether it can be copied or not: (B, T, S)."""


class PositionalCopying(Copying):
    """The paper's: a copy token for every position, its score read from the state alone."""

    def __init__(self, limits: Sequence[int], width: int) -> None:
        super().__init__(sum(limits))
        self.limits = list(limits)  # how many positions of each source have a copy token
        self.score = nn.Linear(width, self.slots)

    def slots_of(self, ids: Tensor, sources: Sources) -> Tensor:
        """The first position at which the token stands among those that can be copied."""
        numbers = self._numbers(sources)
        found = (ids[:, :, None] == sources.ids[:, None]) & (numbers > 0)[:, None]  # (B, T, S)
        first = found.to(torch.uint8).argmax(2)  # 0 also where nothing was found
        return torch.where(found.any(2), numbers.gather(1, first), 0)

    def _numbers(self, sources: Sources) -> Tensor:
        """The number of each place's copy token, from 1; 0 where there is none: (B, S)."""
        limits = torch.tensor(self.limits, device=sources.ids.device)
        before = limits.cumsum(0) - limits  # copy tokens of the sources before each
        has_number = sources.copyable & (sources.places < limits[sources.roles])
        return torch.where(has_number, sources.places + before[sources.roles] + 1, 0)

    def prepare(self, memory: Memory) -> Tensor:
        """The number of each place's copy token."""
        return self._numbers(memory.sources)

    def forward(self, states: Tensor, prepared: Tensor) -> Tensor:
        """The score of the place's copy token."""
        numbers = prepared[:, None].expand(-1, states.shape[1], -1)
        scores: Tensor = self.score(states).gather(2, (numbers - 1).clamp(min=0))
        return scores.masked_fill(numbers == 0, NEVER)


class PointerCopying(Copying):
    """A pointer: the score is how well the state matches the memory at the place."""

    def __init__(self, slots: int, width: int, memory_width: int, *, known: int) -> None:
        super().__init__(slots)
        self.known = known
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(memory_width, width, bias=False)

    def slots_of(self, ids: Tensor, sources: Sources) -> Tensor:  # noqa: ARG002
        """The number of an unknown word; known words need none, and many share what there are."""
        return torch.where(ids < self.known, 0, (ids - self.known) % self.slots + 1)

    def prepare(self, memory: Memory) -> Tensor:
        """The keys of all places."""
        keys: Tensor = self.key(memory.states)
        return keys

    def forward(self, states: Tensor, prepared: Tensor) -> Tensor:
        """The scaled product of query and key."""
        scores: Tensor = self.query(states) @ prepared.transpose(1, 2)
        return scores / math.sqrt(prepared.shape[2])


class NoCopying(Copying):
    """Every word is written from the vocabulary."""

    def __init__(self) -> None:
        super().__init__(0)

    def slots_of(self, ids: Tensor, sources: Sources) -> Tensor:  # noqa: ARG002
        """No slot."""
        return torch.zeros_like(ids)

    def prepare(self, memory: Memory) -> Tensor:
        """Nothing but the places."""
        return memory.sources.ids

    def forward(self, states: Tensor, prepared: Tensor) -> Tensor:
        """No place can be copied from."""
        return states.new_full((*states.shape[:2], prepared.shape[1]), NEVER)
