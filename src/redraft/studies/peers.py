"""What a user might add to a model that knows nothing of their project: a cache, a suffix match.

Both are n-gram caches with other weights than those that Retrieve+Edit learns.
"""

import torch

from redraft.models.ngram_cache import LONGEST, OWN, CacheState, Foreseen, NgramCache

ORDER = 8
"""Words of context that the classic cache backs off from."""

SURE = 7.0
"""The gate's logit where one expert is believed: a thousand to one, and the other breaks ties."""


class ClassicCache(NgramCache):
    """Counts over the whole project and the output so far, shorter contexts as Witten and Bell."""

    @classmethod
    def alone(cls) -> "ClassicCache":
        """A cache that leaves next to nothing to the editor wherever it expects anything."""
        cache = cls()
        with torch.no_grad():
            cache.shares.fill_(SURE)
        return cache

    def forward(self, state: CacheState, width: int) -> Foreseen:
        """A context leaves as much to the next shorter one as it was followed by kinds of words."""
        chances = torch.zeros(len(state.ids), width, device=state.ids.device)
        ids = state.ids.long()
        for length in range(ORDER + 1):
            counted = (state.is_word & (state.matches >= length)).to(chances.dtype)
            counts = torch.zeros_like(chances).scatter_add_(1, ids, counted)
            total, kinds = counts.sum(1, keepdim=True), (counts > 0).sum(1, keepdim=True)
            left = kinds if length else 0  # nothing is shorter than no context
            mixed = (counts + left * chances) / (total + left).clamp(min=1)
            chances = torch.where(total > 0, mixed, chances)
        return Foreseen(chances, state.longest)


def suffix_match(least: int) -> NgramCache:
    """A cache that believes its longest match if it has so many words, and else the editor."""
    cache = NgramCache()
    with torch.no_grad():
        cache.lengths.copy_(5.0 * torch.arange(LONGEST + 1))
        cache.ranks[OWN] = -torch.inf  # the prototypes alone
        cache.shares.fill_(-SURE)
        cache.shares[least:] = SURE
    return cache
