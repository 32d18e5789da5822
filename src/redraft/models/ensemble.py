"""p_edit as a search walks over it: of one network, or the mean of several.

What a distribution keeps between two tokens is its own matter: others only hand it back.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from redraft.data.edit_numbers import EditBatch


class EditDistribution(nn.Module, ABC):
    """The next token after what was read, for each of several edit examples."""

    config: Any  # of each network
    size = 1  # how many networks it is made of

    @property
    @abstractmethod
    def device(self) -> torch.device:
        """Where it computes."""

    @abstractmethod
    def encode(self, batch: EditBatch, *, generator: torch.Generator | None) -> Any:
        """The state before the first token."""

    @abstractmethod
    def read(self, state: Any, tokens: Tensor) -> tuple[Any, Any]:
        """Read tokens (B, T): what was read, and the state after it.

        What was read has its own `states` (B, T, D), and a `last` part.
        """

    @abstractmethod
    def next_tokens(self, read: Any, state: Any) -> Tensor:
        """Log-probabilities of the token after each that was read: (B, T, W)."""

    @abstractmethod
    def likeliest(self, read: Any, state: Any) -> Tensor:
        """The token that `next_tokens` would put first after each that was read: (B, T)."""

    @abstractmethod
    def select(self, state: Any, rows: Tensor) -> Any:
        """The state of some rows, which may repeat."""

    @abstractmethod
    def log_likelihoods(
        self, batch: EditBatch, *, generator: torch.Generator | None = None
    ) -> Tensor:
        """log p of each token of the target after the first: (B, T), 0 at padding."""

    @abstractmethod
    def origins(self, batch: EditBatch) -> Tensor:
        """Logs of the chance that a token is written, or copied from each source: (B, T, 1+R)."""


@dataclass(frozen=True)
class _Reads:
    """What each member read."""

    members: tuple[Any, ...]

    @property
    def states(self) -> Tensor:
        return torch.cat([each.states for each in self.members], 2)

    def last(self) -> "_Reads":
        return _Reads(tuple(each.last() for each in self.members))


class Ensemble(EditDistribution):
    """Several networks of the same words, each trained from another seed: their mean.

    It takes as many times as long, and as much memory, as one of them.
    """

    def __init__(self, members: Sequence[EditDistribution]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.config, self.size = members[0].config, len(members)

    @property
    def _all(self) -> list[EditDistribution]:
        return [cast(EditDistribution, each) for each in self.members]

    @property
    def device(self) -> torch.device:
        """That of the first."""
        return self._all[0].device

    def encode(self, batch: EditBatch, *, generator: torch.Generator | None) -> tuple[Any, ...]:
        """The state of each."""
        return tuple(each.encode(batch, generator=generator) for each in self._all)

    def read(self, state: Any, tokens: Tensor) -> tuple[_Reads, tuple[Any, ...]]:
        """Read tokens by each."""
        found = [each.read(own, tokens) for each, own in zip(self._all, state, strict=True)]
        return _Reads(tuple(read for read, _ in found)), tuple(after for _, after in found)

    def next_tokens(self, read: Any, state: Any) -> Tensor:
        """The mean of the chances."""
        asked = zip(self._all, read.members, state, strict=True)
        return _mean([each.next_tokens(own, after) for each, own, after in asked])

    def likeliest(self, read: Any, state: Any) -> Tensor:
        """The first by the mean."""
        return self.next_tokens(read, state).argmax(2)

    def select(self, state: Any, rows: Tensor) -> tuple[Any, ...]:
        """Some rows of each."""
        return tuple(each.select(own, rows) for each, own in zip(self._all, state, strict=True))

    def log_likelihoods(
        self, batch: EditBatch, *, generator: torch.Generator | None = None
    ) -> Tensor:
        """The mean of the chances of each token."""
        return _mean([each.log_likelihoods(batch, generator=generator) for each in self._all])

    def origins(self, batch: EditBatch) -> Tensor:
        """The mean of the chances of each origin."""
        return _mean([each.origins(batch) for each in self._all])


def _mean(log_probs: list[Tensor]) -> Tensor:
    """The logarithm of the mean of probabilities."""
    return torch.stack(log_probs).logsumexp(0) - torch.tensor(float(len(log_probs))).log()
