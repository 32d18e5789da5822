"""The EMA of the weights against its defining sum."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from redraft.training.ema import ExponentialMovingAverage, copy_weights

values = st.lists(st.floats(-10, 10), min_size=1, max_size=40)


class Single(nn.Module):
    """One weight, and a number that is none."""

    count: torch.Tensor

    def __init__(self, value: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([value]))
        self.register_buffer("count", torch.tensor(0))


@given(values, st.floats(0, 0.99))
def test_updates_follow_the_decay_and_the_weights_sum_to_one(
    weights: list[float], decay: float
) -> None:
    network = Single(weights[0])
    average = ExponentialMovingAverage(network, decay)
    expected = weights[0]
    for step, value in enumerate(weights, start=1):
        nn.init.constant_(network.weight, value)
        network.count.fill_(step)
        average.update(step)
        share = 1 - min(decay, step / (step + 10))
        expected = share * value + (1 - share) * expected
    assert average.weights["weight"].item() == pytest.approx(expected, abs=1e-4)
    assert average.weights["count"].item() == len(weights)


def test_without_decay_the_average_is_the_last_step() -> None:
    network = Single(1.0)
    average = ExponentialMovingAverage(network, 0.0)
    nn.init.constant_(network.weight, 5.0)
    average.update(1)
    assert average.weights["weight"].item() == 5.0


def test_the_averaged_weights_are_applied_and_restored() -> None:
    network = Single(1.0)
    average = ExponentialMovingAverage(network, 0.9)
    nn.init.constant_(network.weight, 3.0)
    average.update(100)
    before = copy_weights(network)
    with average.applied():
        assert network.weight.item() == pytest.approx(1.2)
    assert torch.equal(network.weight, before["weight"])
