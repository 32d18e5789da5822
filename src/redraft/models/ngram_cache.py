"""An n-gram cache over retrieved outputs, with learned weights.

Every position of the cached outputs and of the current prefix votes for its token. The weight of a
vote depends on the length of the context match, which is the number of preceding tokens that equal
the end of the prefix, and on the retrieval rank of the output. A learned gate interpolates the
cache with the editor's distribution. Knows no text.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from redraft.models.batch import CachePositions
from redraft.text.vocabulary import BOS_ID, UNK_ID

LONGEST = 16
"""Longest context match, in tokens."""

RANKS = (1, 3, 10, 30)
"""Bucket boundaries of retrieval ranks; outputs in one bucket share a weight."""

OWN = len(RANKS) + 1
"""The bucket of the positions of the current prefix."""

KINDS = OWN + 1

_EPSILON = 1e-9


@dataclass(frozen=True)
class CacheState:
    """Cached positions and the length of the context match at each.

    Every row of a search has thousands of positions, hence the small integer types.
    """

    ids: Tensor  # (R, S) int32, no word up to BOS_ID
    kinds: Tensor  # (R, S) int8, rank bucket
    matches: Tensor  # (R, S) int8, length of the context match

    @property
    def is_word(self) -> Tensor:
        """True where the position holds a word or EOS: (R, S)."""
        return self.ids > BOS_ID

    @property
    def cells(self) -> Tensor:
        """Match length and rank bucket as one index: (R, S) int32."""
        return self.matches.int() * KINDS + self.kinds

    @property
    def longest(self) -> Tensor:
        """The longest context match of each row: (R,)."""
        return (self.matches * self.is_word).amax(1).long()

    def reorder(self, rows: Tensor) -> "CacheState":
        """Select `rows` of the state, which may repeat."""
        fields = (self.ids, self.kinds, self.matches)
        return CacheState(*(field.index_select(0, rows) for field in fields))


@dataclass(frozen=True)
class CachePrediction:
    """The next-token distribution of the cache."""

    probs: Tensor  # (R, W), all 0 if the cache is empty
    longest: Tensor  # (R,), the longest context match


class NoCache(nn.Module):
    """The null cache: leaves the editor's distribution unchanged."""

    def begin(self, positions: CachePositions) -> CacheState:
        """Return the state before the first token."""
        kinds = torch.bucketize(positions.ranks, positions.ranks.new_tensor(RANKS), right=True)
        kinds = kinds.to(torch.int8)
        return CacheState(positions.ids.int(), kinds, torch.zeros_like(kinds))

    def read(self, state: CacheState, tokens: Tensor) -> CacheState:  # noqa: ARG002
        """Return the state after `tokens` (R, T)."""
        return state

    def mix(self, log_probs: Tensor, state: CacheState) -> Tensor:  # noqa: ARG002
        """Return the editor's next-token log-probabilities (R, W), interpolated with the cache."""
        return log_probs


class NgramCache(NoCache):
    """Weights for each match length and each rank bucket, and the gate."""

    def __init__(self) -> None:
        super().__init__()
        self.lengths = nn.Parameter(torch.arange(LONGEST + 1.0))
        self.ranks = nn.Parameter(torch.zeros(KINDS))
        self.shares = nn.Parameter(torch.zeros(LONGEST + 1))
        self.evidence = nn.Parameter(torch.zeros(len(EVIDENCE)))

    def read(self, state: CacheState, tokens: Tensor) -> CacheState:
        """Return the state after `tokens` (R, T), which join the cache."""
        for i in range(tokens.shape[1]):
            token = tokens[:, i : i + 1].int()
            extended = ((state.matches + 1) * (state.ids == token)).clamp_(max=LONGEST)
            zero = torch.zeros_like(token, dtype=torch.int8)
            state = CacheState(
                torch.cat([state.ids, token], 1),
                torch.cat([state.kinds, zero + OWN], 1),
                torch.cat([zero, extended], 1),
            )
        return state

    def forward(self, state: CacheState, width: int) -> CachePrediction:
        """Return the distribution of the next token over `width` ids."""
        table = (self.lengths.exp()[:, None] * self.ranks.exp()).flatten()
        weights = table.index_select(0, state.cells.view(-1)).view_as(state.ids) * state.is_word
        probs = weights.new_zeros(len(weights), width)
        probs = probs.scatter_add_(1, state.ids.long(), weights)
        total = probs.sum(1, keepdim=True).clamp(min=_EPSILON)
        return CachePrediction(probs / total, state.longest)

    def mix(self, log_probs: Tensor, state: CacheState) -> Tensor:
        """Return the editor's next-token log-probabilities (R, W), interpolated with the cache."""
        predicted = self(state, log_probs.shape[1])
        share = self.share(predicted, evidence_of(log_probs, predicted))[:, None]
        mixed: Tensor = log_probs.exp() * (1 - share) + predicted.probs * share
        return mixed.log()

    def share(self, predicted: CachePrediction, evidence: Tensor) -> Tensor:
        """Return the interpolation weight of the cache, 0 where it is empty: (R,)."""
        is_empty = predicted.probs.amax(1) == 0
        return self.gate(predicted.longest, evidence).masked_fill(is_empty, 0.0)

    def gate(self, longest: Tensor, evidence: Tensor) -> Tensor:
        """Return the weight given the longest match (N,) and the evidence (N, E)."""
        return torch.sigmoid(self.shares[longest] + evidence @ self.evidence)


EVIDENCE = (
    "log p of the cache's first choice",
    "log p of the editor's first choice",
    "the editor's log p of UNK",
    "the cache's log p of the editor's first choice",
    "both have the same first choice",
)
"""Features of the gate, besides the longest match."""


def evidence_of(log_probs: Tensor, predicted: CachePrediction) -> Tensor:
    """Return the features of the gate: (R, E), in the order of `EVIDENCE`."""
    edited, cached = log_probs.max(1), predicted.probs.max(1)
    support = predicted.probs.gather(1, edited.indices[:, None])[:, 0]
    logs = [cached.values.log(), edited.values, log_probs[:, UNK_ID], support.log()]
    evidence = [log_prob.clamp(min=_UNLIKELY) for log_prob in logs]
    return torch.stack([*evidence, (edited.indices == cached.indices).float()], 1)


_UNLIKELY = -10.0
