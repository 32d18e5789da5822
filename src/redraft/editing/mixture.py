"""Several prototypes as one distribution: p(y | x) = Σ p_edit(y | x, prototype) · p_ret, stepwise.

After a prefix each prototype weighs p_ret times the likelihood that it gave the prefix. The
tokens' mixtures then multiply to the mixture of whole sequences: one walk serves completion and
prediction, and its log-probabilities are those of the sum.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from redraft.models.edit_network import EditNetwork, EditState


@dataclass(frozen=True)
class MixtureState:
    """A network state with P rows for each row of the search, and what each prototype weighs."""

    network: EditState
    weights: Tensor  # (R, P), logarithms, normalised
    coming: Tensor  # (R, P, W), what each expects next; empty before anything was read


class Mixture:
    """A walk over the outputs of an input, its prototypes mixed."""

    def __init__(self, network: EditNetwork) -> None:
        self.network = network

    def start(self, state: EditState, weights: Tensor) -> MixtureState:
        """The state before the first token; weights (R, P) are the logarithms of p_ret."""
        nothing = weights.new_zeros(*weights.shape, 0)
        return MixtureState(state, weights.log_softmax(1), nothing)

    def advance(self, state: MixtureState, tokens: Tensor) -> tuple[Tensor, MixtureState]:
        """Read tokens (R, T): log-probabilities of the next one (R, W), and the state."""
        rows, count = state.weights.shape
        repeated = tokens.repeat_interleave(count, 0)
        read, after = self.network.read(state.network, repeated)
        if count == 1:
            expected = self.network.next_tokens(read.last(), after)[:, 0]
            return expected, MixtureState(after, state.weights, state.coming)
        each = self.network.next_tokens(read, after).view(rows, count, tokens.shape[1], -1)
        weights = self._weigh(state, each, tokens)
        coming = each[:, :, -1]
        mixed = (weights[:, :, None] + coming).logsumexp(1)
        return mixed, MixtureState(after, weights, coming)

    def _weigh(self, state: MixtureState, each: Tensor, tokens: Tensor) -> Tensor:
        """The weights (R, P) after the tokens: what each prototype expected of them counts."""
        weights = state.weights
        if state.coming.shape[2]:
            weights = weights + _chosen(state.coming, tokens[:, 0])
        for at in range(1, tokens.shape[1]):
            weights = weights + _chosen(each[:, :, at - 1], tokens[:, at])
        # a token that no prototype expected leaves them with the same weight, fillers with none
        least = torch.where(state.weights.isneginf(), -torch.inf, _LEAST)
        return torch.maximum(weights, least).log_softmax(1)

    def select(self, state: MixtureState, rows: Tensor) -> MixtureState:
        """The state of some rows, which may repeat."""
        count = state.weights.shape[1]
        inner = (rows[:, None] * count + torch.arange(count, device=rows.device)).reshape(-1)
        return MixtureState(
            self.network.select(state.network, inner), state.weights[rows], state.coming[rows]
        )


_LEAST = -1e9


def _chosen(expected: Tensor, tokens: Tensor) -> Tensor:
    """The log-probability of each row's token (R,) under each prototype (R, P, W): (R, P)."""
    return expected.gather(2, tokens[:, None, None].expand(-1, expected.shape[1], 1))[:, :, 0]
