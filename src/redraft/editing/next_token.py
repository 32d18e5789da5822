"""Next-token model of equation 1: p(y | x) = Σ p_edit(y | x, prototype) · p_ret, token by token.

The weight of a prototype after a prefix is its posterior: p_ret times the likelihood of the prefix
under it. The product of the next-token mixtures is then the mixture over whole sequences, so that
completion and prediction share one model. An n-gram cache is mixed in as another expert.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from redraft.models.batch import CachePositions
from redraft.models.edit_network import EditNetwork, EditState
from redraft.models.ngram_cache import CacheState, NoCache
from redraft.text.vocabulary import UNK_ID


@dataclass(frozen=True)
class MixtureState:
    """The state of the network, with P rows per search row, and the posterior of the prototypes."""

    network: EditState
    weights: Tensor  # (R, P), log posterior of the prototypes
    predictions: Tensor  # (R, P, W), next-token log-probabilities; empty before the first token
    cache: CacheState


class Mixture:
    """A next-token model that mixes the predictions from several prototypes."""

    def __init__(self, network: EditNetwork, cache: NoCache) -> None:
        self.network = network
        self.cache = cache

    def start(self, state: EditState, weights: Tensor, positions: CachePositions) -> MixtureState:
        """Return the state before the first token; `weights` (R, P) are log p_ret."""
        empty = weights.new_zeros(*weights.shape, 0)
        return MixtureState(state, weights.log_softmax(1), empty, self.cache.begin(positions))

    def step(self, state: MixtureState, tokens: Tensor) -> tuple[Tensor, MixtureState]:
        """Append tokens (R, T); return next-token log-probabilities (R, W) and the new state."""
        mixed, after = self.edit(state, tokens)
        cache = self.cache.read(state.cache, tokens)
        return self.cache.mix(mixed, cache), replace(after, cache=cache)

    def edit(self, state: MixtureState, tokens: Tensor) -> tuple[Tensor, MixtureState]:
        """Like `step` without the cache: its state is not advanced."""
        rows, count = state.weights.shape
        repeated = tokens.repeat_interleave(count, 0)
        states, after = self.network.read(state.network, repeated)
        if count == 1:
            expected = self.network.next_tokens(states[:, -1:], after)[:, 0]
            return expected, replace(state, network=after)
        log_probs = self.network.next_tokens(states, after)
        log_probs = log_probs.view(rows, count, tokens.shape[1], -1)  # (R, P, T, W)
        weights = self._posterior(state, log_probs, tokens)
        predictions = log_probs[:, :, -1]
        mixed = (weights[:, :, None] + predictions).logsumexp(1)
        return mixed, replace(state, network=after, weights=weights, predictions=predictions)

    def follow(self, state: MixtureState, tokens: Tensor) -> Iterator[tuple[Tensor, CacheState]]:
        """Yield the mixture without the cache (R, W), and the cache state, after each token.

        `tokens` (R, T) are given, as in teacher forcing.
        """
        cache = state.cache
        for t, expected in enumerate(self._follow_network(state, tokens)):
            cache = self.cache.read(cache, tokens[:, t : t + 1])
            yield expected, cache

    def _follow_network(self, state: MixtureState, tokens: Tensor) -> Iterator[Tensor]:
        if state.weights.shape[1] == 1:  # all positions at once
            states, after = self.network.read(state.network, tokens)
            yield from self.network.next_tokens(states, after).unbind(1)
            return
        for t in range(tokens.shape[1]):
            expected, state = self.edit(state, tokens[:, t : t + 1])
            yield expected

    def _posterior(self, state: MixtureState, log_probs: Tensor, tokens: Tensor) -> Tensor:
        """Update the weights (R, P) by the likelihood of the tokens under each prototype."""
        weights = state.weights
        if state.predictions.shape[2]:
            weights = weights + _token_log_probs(state.predictions, tokens[:, 0])
        for t in range(1, tokens.shape[1]):
            weights = weights + _token_log_probs(log_probs[:, :, t - 1], tokens[:, t])
        # a prototype that ruled a token out keeps a tiny weight; padding keeps none
        least = torch.where(state.weights.isneginf(), -torch.inf, _MIN_LOG_WEIGHT)
        return torch.maximum(weights, least).log_softmax(1)

    def reorder(self, state: MixtureState, rows: Tensor) -> MixtureState:
        """Select the rows of a state; `rows` may repeat or drop some."""
        count = state.weights.shape[1]
        inner = (rows[:, None] * count + torch.arange(count, device=rows.device)).reshape(-1)
        return MixtureState(
            self.network.reorder(state.network, inner),
            state.weights[rows],
            state.predictions[rows],
            state.cache.reorder(rows),
        )


_MIN_LOG_WEIGHT = -1e9


def _token_log_probs(log_probs: Tensor, tokens: Tensor) -> Tensor:
    """Select the log-probability of each row's token (R,) under each prototype (R, P, W): (R, P).

    A token that is impossible under all prototypes, such as a new word, counts as unknown.
    """
    index = tokens[:, None, None].expand(-1, log_probs.shape[1], 1)
    chosen = log_probs.gather(2, index)[:, :, 0]
    is_impossible = chosen.isneginf().all(1, keepdim=True)
    return torch.where(is_impossible, log_probs[:, :, UNK_ID], chosen)
