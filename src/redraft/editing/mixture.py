"""Several prototypes as one distribution: p(y | x) = Σ p_edit(y | x, prototype) · p_ret, stepwise.

After a prefix each prototype weighs p_ret times the likelihood that it gave the prefix. The
tokens' mixtures then multiply to the mixture of whole sequences: one walk serves completion and
prediction, and its log-probabilities are those of the sum. Each prototype's words are mixed with
those that followed like states before; an n-gram cache is one expert more.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from redraft.data.edit_numbers import Places
from redraft.data.vocabulary import UNKNOWN_NUMBER
from redraft.models.ensemble import EditDistribution
from redraft.models.ngram_cache import CacheState, NoCache
from redraft.models.state_cache import Remembered, StateCache


@dataclass(frozen=True)
class MixtureState:
    """A network state with P rows for each row of the search, and what each prototype weighs."""

    network: Any
    weights: Tensor  # (R, P), logarithms, normalised
    coming: Tensor  # (R, P, W), what each expects next; empty before anything was read
    cache: CacheState
    remembered: Remembered


class Mixture:
    """A walk over the outputs of an input, its prototypes mixed."""

    def __init__(self, network: EditDistribution, cache: NoCache, state_cache: StateCache) -> None:
        self.network = network
        self.cache = cache
        self.state_cache = state_cache

    def start(
        self, state: Any, weights: Tensor, places: Places, remembered: Remembered
    ) -> MixtureState:
        """The state before the first token; weights (R, P) are the logarithms of p_ret.

        What is remembered is that of each row, whatever its prototype.
        """
        rows, count = weights.shape
        nothing = weights.new_zeros(rows, count, 0)
        repeated = torch.arange(rows, device=weights.device).repeat_interleave(count)
        return MixtureState(
            state,
            weights.log_softmax(1),
            nothing,
            self.cache.begin(places),
            remembered.select(repeated) if count > 1 else remembered,
        )

    def advance(self, state: MixtureState, tokens: Tensor) -> tuple[Tensor, MixtureState]:
        """Read tokens (R, T): log-probabilities of the next one (R, W), and the state."""
        mixed, after = self.edit(state, tokens)
        cache = self.cache.read(state.cache, tokens)
        return self.cache.mix(mixed, cache), replace(after, cache=cache)

    def edit(self, state: MixtureState, tokens: Tensor) -> tuple[Tensor, MixtureState]:
        """The same without the cache, whose state is left as it was."""
        rows, count = state.weights.shape
        repeated = tokens.repeat_interleave(count, 0)
        read, after = self.network.read(state.network, repeated)
        if count == 1:
            expected = self._expect(read.last(), after, state.remembered)[:, 0]
            return expected, replace(state, network=after)
        each = self._expect(read, after, state.remembered)
        each = each.view(rows, count, tokens.shape[1], -1)
        weights = self._weigh(state, each, tokens)
        coming = each[:, :, -1]
        mixed = (weights[:, :, None] + coming).logsumexp(1)
        return mixed, replace(state, network=after, weights=weights, coming=coming)

    def _expect(self, read: Any, after: Any, remembered: Remembered) -> Tensor:
        """What each prototype expects after each token that was read: (R * P, T, W)."""
        return self.state_cache.mix(self.network.next_tokens(read, after), read.states, remembered)

    def follow(self, state: MixtureState, tokens: Tensor) -> Iterator[tuple[Tensor, CacheState]]:
        """After each of the tokens (R, T): what the prototypes expect (R, W), and the cache."""
        cache = state.cache
        for at, expected in enumerate(self._expect_each(state, tokens)):
            cache = self.cache.read(cache, tokens[:, at : at + 1])
            yield expected, cache

    def _expect_each(self, state: MixtureState, tokens: Tensor) -> Iterator[Tensor]:
        if state.weights.shape[1] == 1:  # all positions at once
            read, after = self.network.read(state.network, tokens)
            yield from self._expect(read, after, state.remembered).unbind(1)
            return
        for at in range(tokens.shape[1]):
            expected, state = self.edit(state, tokens[:, at : at + 1])
            yield expected

    def _weigh(self, state: MixtureState, each: Tensor, tokens: Tensor) -> Tensor:
        """The weights (R, P) after the tokens: what each prototype expected of them counts."""
        weights = state.weights
        if state.coming.shape[2]:
            weights = weights + _chosen(state.coming, tokens[:, 0])
        for at in range(1, tokens.shape[1]):
            weights = weights + _chosen(each[:, :, at - 1], tokens[:, at])
        # a token that others expected leaves a prototype with hardly any weight, fillers with none
        least = torch.where(state.weights.isneginf(), -torch.inf, _LEAST)
        return torch.maximum(weights, least).log_softmax(1)

    def select(self, state: MixtureState, rows: Tensor) -> MixtureState:
        """The state of some rows, which may repeat."""
        count = state.weights.shape[1]
        inner = (rows[:, None] * count + torch.arange(count, device=rows.device)).reshape(-1)
        return MixtureState(
            self.network.select(state.network, inner),
            state.weights[rows],
            state.coming[rows],
            state.cache.select(rows),
            state.remembered.select(inner),
        )


_LEAST = -1e9


def _chosen(expected: Tensor, tokens: Tensor) -> Tensor:
    """The log-probability of each row's token (R,) under each prototype (R, P, W): (R, P).

    A token that no prototype expects, such as a new word, counts as the unknown token.
    """
    found = expected.gather(2, tokens[:, None, None].expand(-1, expected.shape[1], 1))[:, :, 0]
    is_lost = found.isneginf().all(1, keepdim=True)
    return torch.where(is_lost, expected[:, :, UNKNOWN_NUMBER], found)
