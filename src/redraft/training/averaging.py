"""The mean of the weights of the last steps: steadier than any of them, at the cost of a copy."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

Weights = dict[str, Tensor]

_EARLY = 10
"""At first the mean is over all steps so far, or the weights before training would stay in it."""


def copy_weights(network: nn.Module) -> Weights:
    """The weights as they are now."""
    return {name: tensor.detach().clone() for name, tensor in network.state_dict().items()}


class AveragedWeights:
    """A running mean in which each step counts `decay` times the step after it; 0: the last one."""

    def __init__(self, network: nn.Module, decay: float) -> None:
        self.network = network
        self.decay = decay
        self.weights = copy_weights(network)

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the weights after a step, the first being number 1."""
        decay = min(self.decay, step / (step + _EARLY))
        for name, tensor in self.network.state_dict().items():
            if tensor.is_floating_point():
                self.weights[name].lerp_(tensor, 1 - decay)
            else:
                self.weights[name].copy_(tensor)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Within it the network has the mean in place of its own weights."""
        own = copy_weights(self.network)
        self.network.load_state_dict(self.weights)
        try:
            yield
        finally:
            self.network.load_state_dict(own)
