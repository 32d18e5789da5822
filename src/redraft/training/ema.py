"""Exponential moving average (EMA) of the weights."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

Weights = dict[str, Tensor]

_WARMUP = 10
"""The decay rises with step / (step + 10), so that the initial weights fade out early."""


def copy_weights(network: nn.Module) -> Weights:
    """Return a copy of the current weights."""
    return {name: tensor.detach().clone() for name, tensor in network.state_dict().items()}


class ExponentialMovingAverage:
    """The EMA of a network's weights; a `decay` of 0 keeps only the last step."""

    def __init__(self, network: nn.Module, decay: float) -> None:
        self.network = network
        self.decay = decay
        self.weights = copy_weights(network)

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Update the average after `step`, counted from 1."""
        decay = min(self.decay, step / (step + _WARMUP))
        for name, tensor in self.network.state_dict().items():
            if tensor.is_floating_point():
                self.weights[name].lerp_(tensor, 1 - decay)
            else:
                self.weights[name].copy_(tensor)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Give the network the averaged weights within the context."""
        trained = copy_weights(self.network)
        self.network.load_state_dict(self.weights)
        try:
            yield
        finally:
            self.network.load_state_dict(trained)
