"""Baselines that adapt a model to a project without training: an n-gram cache, a suffix match.

Both are n-gram caches with other weights than those that Retrieve+Edit learns.
"""

import torch

from redraft.models.ngram_cache import LONGEST, OWN, CachePrediction, CacheState, NgramCache

ORDER = 8
"""The longest context of the classic cache, in words."""

SURE = 7.0
"""The gate's logit where one expert is believed: a thousand to one, and the other breaks ties."""


class ClassicCache(NgramCache):
    """Counts over the project and the output so far, with Witten-Bell back-off."""

    @classmethod
    def alone(cls) -> "ClassicCache":
        """Return a cache that leaves next to nothing to the editor wherever it predicts a word."""
        cache = cls()
        with torch.no_grad():
            cache.shares.fill_(SURE)
        return cache

    def forward(self, state: CacheState, width: int) -> CachePrediction:
        """Return next-word probabilities; contexts back off by their number of followers."""
        probs = torch.zeros(len(state.ids), width, device=state.ids.device)
        ids = state.ids.long()
        for length in range(ORDER + 1):
            counted = (state.is_word & (state.matches >= length)).to(probs.dtype)
            counts = torch.zeros_like(probs).scatter_add_(1, ids, counted)
            total, kinds = counts.sum(1, keepdim=True), (counts > 0).sum(1, keepdim=True)
            left = kinds if length else 0  # nothing is shorter than no context
            mixed = (counts + left * probs) / (total + left).clamp(min=1)
            probs = torch.where(total > 0, mixed, probs)
        return CachePrediction(probs, state.longest)


def suffix_match(least: int) -> NgramCache:
    """Return a cache that follows its longest match of `least` words or more, else the editor."""
    cache = NgramCache()
    with torch.no_grad():
        cache.lengths.copy_(5.0 * torch.arange(LONGEST + 1))
        cache.ranks[OWN] = -torch.inf  # the prototypes alone
        cache.shares.fill_(-SURE)
        cache.shares[least:] = SURE
    return cache
