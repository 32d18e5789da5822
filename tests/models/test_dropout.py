"""Dropout: what it keeps, what it scales, what it never touches."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from redraft.models.dropout import drop_tokens, dropout
from redraft.text.vocabulary import UNK_ID

seeds = st.integers(0, 2**31)
rates = st.floats(0.05, 0.95)


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def tokens(seed: int) -> Tensor:
    """Numbers of real tokens, then padding."""
    ids = torch.randint(2, 50, (8, 12), generator=generator(seed))
    lengths = torch.randint(1, 13, (8, 1), generator=generator(seed + 1))
    return torch.where(torch.arange(12) < lengths, ids, 0)


@settings(deadline=None)
@given(rates, seeds)
def test_without_a_generator_nothing_is_dropped(rate: float, seed: int) -> None:
    values, ids = torch.randn(4, 5, generator=generator(seed)), tokens(seed)
    assert torch.equal(dropout(values, rate, generator=None), values)
    assert torch.equal(drop_tokens(ids, rate, generator=None), ids)


@settings(deadline=None)
@given(seeds)
def test_at_rate_zero_nothing_is_dropped_and_no_randomness_used(seed: int) -> None:
    values, ids, used = torch.randn(4, 5), tokens(seed), generator(seed)
    assert torch.equal(dropout(values, 0.0, generator=used), values)
    assert torch.equal(drop_tokens(ids, 0.0, generator=used), ids)
    assert torch.equal(used.get_state(), generator(seed).get_state())


@settings(deadline=None)
@given(rates, seeds)
def test_a_value_is_zero_or_scaled_by_one_over_the_share_kept(rate: float, seed: int) -> None:
    values = torch.randn(20, 30, generator=generator(seed)) + 10  # none is 0
    dropped = dropout(values, rate, generator=generator(seed + 1))
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], values[kept] / (1 - rate))


@settings(deadline=None, max_examples=20)
@given(rates, seeds)
def test_the_mean_is_preserved(rate: float, seed: int) -> None:
    count = 40_000
    mean = float(dropout(torch.ones(count), rate, generator=generator(seed)).mean())
    deviation = (rate / (1 - rate) / count) ** 0.5  # of the mean of scaled Bernoulli draws
    assert mean == pytest.approx(1, abs=6 * deviation)


@settings(deadline=None)
@given(rates, seeds)
def test_the_same_seed_drops_the_same(rate: float, seed: int) -> None:
    values, ids = torch.ones(50), tokens(seed)
    first, second = (dropout(values, rate, generator=generator(seed)) for _ in range(2))
    assert torch.equal(first, second)
    first, second = (drop_tokens(ids, rate, generator=generator(seed)) for _ in range(2))
    assert torch.equal(first, second)


@settings(deadline=None)
@given(rates, seeds)
def test_a_token_stays_or_becomes_unknown_and_padding_stays(rate: float, seed: int) -> None:
    ids = tokens(seed)
    dropped = drop_tokens(ids, rate, generator=generator(seed + 2))
    assert ((dropped == ids) | (dropped == UNK_ID)).all()
    assert torch.equal(dropped == 0, ids == 0)
    assert dropped.dtype == ids.dtype


@settings(deadline=None, max_examples=20)
@given(rates, seeds)
def test_the_share_of_tokens_dropped_is_the_rate(rate: float, seed: int) -> None:
    ids = torch.full((200, 200), 7)
    dropped = drop_tokens(ids, rate, generator=generator(seed))
    share = float((dropped == UNK_ID).float().mean())
    assert share == pytest.approx(rate, abs=6 * (rate * (1 - rate) / ids.numel()) ** 0.5)
