"""Batches of sequences of similar length."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.training.bucketing import bucket

Lengths = list[tuple[int, int]]
pairs_of_lengths = st.lists(st.tuples(st.integers(1, 200), st.integers(1, 200)), max_size=60)


@given(pairs_of_lengths, st.integers(1, 20), st.integers())
def test_batches_hold_every_row_once(lengths: Lengths, batch_size: int, seed: int) -> None:
    batches = bucket(lengths, batch_size, seed=seed)
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))


@given(pairs_of_lengths, st.integers(1, 20), st.integers())
def test_batches_are_full_but_for_one(lengths: Lengths, batch_size: int, seed: int) -> None:
    sizes = sorted((len(batch) for batch in bucket(lengths, batch_size, seed=seed)), reverse=True)
    assert all(size == batch_size for size in sizes[:-1])
    assert all(0 < size <= batch_size for size in sizes)


@given(pairs_of_lengths, st.integers(1, 20), st.integers())
def test_the_seed_decides_the_batches(lengths: Lengths, batch_size: int, seed: int) -> None:
    assert bucket(lengths, batch_size, seed=seed) == bucket(lengths, batch_size, seed=seed)


def test_another_seed_gives_other_batches_in_another_order() -> None:
    lengths = [(length, length) for length in range(20, 60) for _ in range(10)]
    first, second = (bucket(lengths, 16, seed=seed) for seed in (1, 2))
    assert {frozenset(batch) for batch in first} != {frozenset(batch) for batch in second}
    lengths_in_order = [lengths[batch[0]] for batch in first]
    assert lengths_in_order != sorted(lengths_in_order)


def test_three_independent_lengths_leave_little_padding_too() -> None:
    normal = np.random.default_rng(0).normal(size=(8_000, 3))
    lengths = 1 + np.exp(3.5 + 0.7 * normal).clip(max=127).astype(int)
    batches = bucket([list(map(int, row)) for row in lengths], 32, seed=0)
    cells = sum(len(batch) * lengths[batch].max(axis=0) for batch in batches)
    assert 1 - lengths.sum() / cells.sum() < 0.25


def test_a_length_that_all_rows_share_does_not_count() -> None:
    lengths = [(length % 7, 5, length % 11) for length in range(400)]
    pairs = [(first, second) for first, _, second in lengths]
    assert bucket(lengths, 16, seed=3) == bucket(pairs, 16, seed=3)


@pytest.mark.parametrize("correlation", [0.0, 0.8])
@pytest.mark.parametrize(("mean", "deviation"), [(2.5, 0.5), (3.5, 0.7), (4.0, 1.0)])
def test_little_of_a_batch_is_padding_in_targets_and_in_inputs(
    mean: float, deviation: float, correlation: float
) -> None:
    normal = np.random.default_rng(0).normal(size=(4_000, 2))
    normal[:, 1] = correlation * normal[:, 0] + (1 - correlation**2) ** 0.5 * normal[:, 1]
    lengths = 1 + np.exp(mean + deviation * normal).clip(max=127).astype(int)
    batches = bucket([(int(target), int(x)) for target, x in lengths], 16, seed=0)
    cells = sum(len(batch) * lengths[batch].max(axis=0) for batch in batches)
    assert (1 - lengths.sum(axis=0) / cells < 0.15).all()
