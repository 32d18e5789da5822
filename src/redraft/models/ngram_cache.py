"""What followed the last words wherever else they stand: an n-gram cache whose weights are learned.

Every place of the cached outputs, and of the output so far, foresees the word that stands there.
It weighs by how many words before it agree with those read last, and by the rank of its output.
A gate then mixes what the cache foresees with what an editor does. Knows no text.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from redraft.data.edit_numbers import Places
from redraft.data.vocabulary import START_NUMBER, UNKNOWN_NUMBER

LONGEST = 16
"""Words before a place that are compared."""

RANKS = (1, 3, 10, 30)
"""Outputs of ranks between two of these weigh alike; so do the places of the output so far."""

OWN = len(RANKS) + 1
KINDS = OWN + 1

_LEAST = 1e-9


@dataclass(frozen=True)
class CacheState:
    """Places, and how many words before each agree with those that were read last.

    There are thousands of places for every row of a search, so their types are the smallest.
    """

    ids: Tensor  # (R, S) int32, no word where it is at most that of the start
    kinds: Tensor  # (R, S) int8, which of the ranks a place has
    matches: Tensor  # (R, S) int8

    @property
    def is_word(self) -> Tensor:
        """True where a place foresees a word or the end: (R, S)."""
        return self.ids > START_NUMBER

    @property
    def cells(self) -> Tensor:
        """The length of the match and the rank of each place as one number: (R, S) int32."""
        return self.matches.int() * KINDS + self.kinds

    @property
    def longest(self) -> Tensor:
        """The most words that agree before any place with a word: (R,)."""
        return (self.matches * self.is_word).amax(1).long()

    def select(self, rows: Tensor) -> "CacheState":
        """The state of some rows, which may repeat."""
        fields = (self.ids, self.kinds, self.matches)
        return CacheState(*(each.index_select(0, rows) for each in fields))


@dataclass(frozen=True)
class Foreseen:
    """What the cache expects next."""

    chances: Tensor  # (R, W), all 0 where nothing was cached or read
    longest: Tensor  # (R,), the most words that agree before any place


class NoCache(nn.Module):
    """Foresees nothing: what the editor expects stands."""

    def begin(self, places: Places) -> CacheState:
        """The state before anything was read."""
        kinds = torch.bucketize(places.ranks, places.ranks.new_tensor(RANKS), right=True)
        kinds = kinds.to(torch.int8)
        return CacheState(places.ids.int(), kinds, torch.zeros_like(kinds))

    def read(self, state: CacheState, tokens: Tensor) -> CacheState:  # noqa: ARG002
        """The state after tokens (R, T)."""
        return state

    def mix(self, log_probs: Tensor, state: CacheState) -> Tensor:  # noqa: ARG002
        """An editor's log-probabilities (R, W) of the next word with those of the cache."""
        return log_probs


class NgramCache(NoCache):
    """The weight of every length of match and of every rank, and the gate."""

    def __init__(self) -> None:
        super().__init__()
        self.lengths = nn.Parameter(torch.arange(LONGEST + 1.0))
        self.ranks = nn.Parameter(torch.zeros(KINDS))
        self.shares = nn.Parameter(torch.zeros(LONGEST + 1))
        self.evidence = nn.Parameter(torch.zeros(len(EVIDENCE)))

    def read(self, state: CacheState, tokens: Tensor) -> CacheState:
        """The state after tokens (R, T), which become places themselves."""
        for at in range(tokens.shape[1]):
            token = tokens[:, at : at + 1].int()
            agreed = ((state.matches + 1) * (state.ids == token)).clamp_(max=LONGEST)
            nothing = torch.zeros_like(token, dtype=torch.int8)
            state = CacheState(
                torch.cat([state.ids, token], 1),
                torch.cat([state.kinds, nothing + OWN], 1),
                torch.cat([nothing, agreed], 1),
            )
        return state

    def forward(self, state: CacheState, width: int) -> Foreseen:
        """What is expected after what was read, of so many words."""
        table = (self.lengths.exp()[:, None] * self.ranks.exp()).flatten()
        weights = table.index_select(0, state.cells.view(-1)).view_as(state.ids) * state.is_word
        chances = weights.new_zeros(len(weights), width)
        chances = chances.scatter_add_(1, state.ids.long(), weights)
        total = chances.sum(1, keepdim=True).clamp(min=_LEAST)
        return Foreseen(chances / total, state.longest)

    def mix(self, log_probs: Tensor, state: CacheState) -> Tensor:
        """An editor's log-probabilities (R, W) of the next word, mixed with those of the cache."""
        foreseen = self(state, log_probs.shape[1])
        share = self.share(foreseen, evidence_of(log_probs, foreseen))[:, None]
        mixed: Tensor = log_probs.exp() * (1 - share) + foreseen.chances * share
        return mixed.log()

    def share(self, foreseen: Foreseen, evidence: Tensor) -> Tensor:
        """The weight of the cache against the editor: (R,)."""
        is_empty = foreseen.chances.amax(1) == 0
        return self.gate(foreseen.longest, evidence).masked_fill(is_empty, 0.0)

    def gate(self, longest: Tensor, evidence: Tensor) -> Tensor:
        """The same from the longest match (N,) and the evidence (N, E) alone."""
        return torch.sigmoid(self.shares[longest] + evidence @ self.evidence)


EVIDENCE = (
    "how sure the cache is",
    "how sure the editor is",
    "the editor expects no known word",
    "what the cache thinks of the editor's first choice",
    "both have the same first choice",
)


def evidence_of(log_probs: Tensor, foreseen: Foreseen) -> Tensor:
    """What the gate is told besides the longest match: (R, E)."""
    edited, cached = log_probs.max(1), foreseen.chances.max(1)
    support = foreseen.chances.gather(1, edited.indices[:, None])[:, 0]
    logs = [
        cached.values.log(),
        edited.values,
        log_probs[:, UNKNOWN_NUMBER],
        support.log(),
    ]
    evidence = [each.clamp(min=_UNLIKELY) for each in logs]
    return torch.stack([*evidence, (edited.indices == cached.indices).float()], 1)


_UNLIKELY = -10.0
