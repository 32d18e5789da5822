"""Bucketing: every row once per epoch, the same batches in every process, little padding."""

import math
import random
from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from redraft.models.batch import Sequences
from redraft.text.bucketing import PASS_COST, POOL, bucket, padded_size, split
from redraft.training.process_group import ProcessGroup

Lengths = list[tuple[int, ...]]
columns = st.integers(1, 4)
tables = columns.flatmap(
    lambda count: st.lists(st.tuples(*[st.integers(1, 200)] * count), max_size=120)
)
batch_sizes = st.integers(1, 20)
parts = st.integers(1, 4)
seeds = st.integers(0, (1 << 62) - 1)
"""The seeds of epochs, as the trainer derives them."""


def padding(lengths: Sequence[Sequence[int]], batches: Sequence[Sequence[int]]) -> float:
    """The share of padding among all positions."""
    positions = sum(padded_size([lengths[row] for row in batch]) for batch in batches)
    return 1 - sum(map(sum, lengths)) / positions


def split_all(
    lengths: Sequence[Sequence[int]], batches: Sequence[Sequence[int]]
) -> list[list[int]]:
    """The parts of all batches, as training computes them."""
    found = ((batch, split([lengths[row] for row in batch])) for batch in batches)
    return [[batch[i] for i in part] for batch, parts in found for part in parts]


def random_batches(rows: int, batch_size: int) -> list[list[int]]:
    shuffled = random.Random(0).sample(range(rows), rows)
    return [shuffled[start : start + batch_size] for start in range(0, rows, batch_size)]


@given(tables.filter(bool))
def test_the_padded_size_is_the_size_of_the_tensors(lengths: Lengths) -> None:
    tensors = [Sequences.pad([[1] * n for n in column]) for column in zip(*lengths, strict=True)]
    assert padded_size(lengths) == sum(tensor.ids.numel() for tensor in tensors)


@given(tables, batch_sizes, seeds, parts)
def test_every_row_occurs_once_in_an_epoch(
    lengths: Lengths, batch_size: int, seed: int, parts: int
) -> None:
    batches = bucket(lengths, batch_size, seed=seed, parts=parts)
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))


@given(tables, batch_sizes, seeds, parts)
def test_batches_are_full_but_for_one(
    lengths: Lengths, batch_size: int, seed: int, parts: int
) -> None:
    batches = bucket(lengths, batch_size, seed=seed, parts=parts)
    assert len(batches) == math.ceil(len(lengths) / batch_size)
    sizes = sorted((len(batch) for batch in batches), reverse=True)
    assert all(size == batch_size for size in sizes[:-1])


@given(tables.filter(bool))
def test_a_split_holds_every_row_once_and_saves_what_it_costs(lengths: Lengths) -> None:
    found = split(lengths)
    assert sorted(row for part in found for row in part) == list(range(len(lengths)))
    positions = sum(padded_size([lengths[row] for row in part]) for part in found)
    assert positions + PASS_COST * (len(found) - 1) <= padded_size(lengths)


def test_rows_of_one_length_are_not_split() -> None:
    assert split([(7, 300)] * 20) == [list(range(20))]


def test_the_two_groups_of_a_batch_are_found_again() -> None:
    lengths = [(100, 10)] * 8 + [(20, 40)] * 8
    mixed = random.Random(0).sample(range(16), 16)
    found = [sorted(mixed[i] for i in part) for part in split([lengths[row] for row in mixed])]
    assert sorted(found) == [list(range(8)), list(range(8, 16))]


@given(tables, batch_sizes, seeds, parts)
def test_the_seed_decides_the_batches(
    lengths: Lengths, batch_size: int, seed: int, parts: int
) -> None:
    first, second = (bucket(lengths, batch_size, seed=seed, parts=parts) for _ in range(2))
    assert first == second


class Rank(ProcessGroup):
    """One of several workers."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size


@given(tables, batch_sizes, seeds, st.integers(1, 5))
def test_the_ranks_derive_the_same_batches_and_share_every_row(
    lengths: Lengths, batch_size: int, seed: int, size: int
) -> None:
    ranks = [Rank(rank, size) for rank in range(size)]
    epochs = [bucket(lengths, batch_size, seed=seed) for _ in ranks]
    for batches in zip(*epochs, strict=True):
        shards = [rank.shard(batch) for rank, batch in zip(ranks, batches, strict=True)]
        assert sorted(row for shard in shards for row in shard) == sorted(batches[0])


def test_another_seed_gives_other_batches_in_another_order() -> None:
    lengths = [(length, length) for length in range(20, 60) for _ in range(10)]
    first, second = (bucket(lengths, 16, seed=seed) for seed in (1, 2))
    assert {frozenset(batch) for batch in first} != {frozenset(batch) for batch in second}
    lengths_in_order = [lengths[batch[0]] for batch in first]
    assert lengths_in_order != sorted(lengths_in_order)


def test_a_batch_of_two_parts_mixes_lengths() -> None:
    lengths = [(length,) for length in range(1, 401)]
    spreads = []
    for count in (1, 2):
        batches = bucket(lengths, 16, seed=0, parts=count)
        spreads.append(np.mean([max(batch) - min(batch) for batch in batches]))
    assert spreads[1] > 4 * spreads[0]


skews = st.tuples(st.floats(2.0, 4.5), st.floats(0.3, 0.6), st.floats(-0.9, 0.9))
"""Mean and deviation of the logarithm of lengths, and their correlation."""


@settings(max_examples=30)
@given(skews, st.integers(3_000, 4_000), seeds)
def test_two_skewed_lengths_leave_less_than_15_percent_padding(
    skew: tuple[float, float, float], rows: int, seed: int
) -> None:
    mean, deviation, correlation = skew
    normal = np.random.default_rng(seed).normal(size=(rows, 2))
    normal[:, 1] = correlation * normal[:, 0] + (1 - correlation**2) ** 0.5 * normal[:, 1]
    lengths = (1 + np.exp(mean + deviation * normal).clip(max=300)).astype(int).tolist()
    assert padding(lengths, bucket(lengths, 16, seed=seed)) < 0.15


@settings(max_examples=30)
@given(seeds, st.integers(400, 800))
def test_prototypes_that_half_of_few_rows_lack_leave_less_than_15_percent(
    seed: int, rows: int
) -> None:
    rng = np.random.default_rng(seed)
    outputs = 10 + np.exp(3 + 0.7 * rng.normal(size=rows)).clip(max=150)
    prototypes = np.where(rng.random(rows) < 0.5, outputs * rng.uniform(0.7, 1.4, rows), 1)
    table = np.stack([outputs, 4 + rng.integers(0, 10, rows), prototypes], 1)
    lengths = table.astype(int).tolist()
    batches = bucket(lengths, 16, seed=seed, parts=2)
    assert padding(lengths, split_all(lengths, batches)) < 0.15
    assert padding(lengths, random_batches(rows, 16)) > 0.3


def test_three_independent_lengths_leave_less_than_15_percent() -> None:
    normal = np.random.default_rng(0).normal(size=(8_000, 3))
    lengths = (1 + np.exp(3.5 + 0.7 * normal).clip(max=127)).astype(int).tolist()
    assert padding(lengths, split_all(lengths, bucket(lengths, 16, seed=0, parts=2))) < 0.15


def test_several_pools_hold_every_row_once_too() -> None:
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 100, (3 * POOL + 5, 2)).tolist()
    batches = bucket(lengths, 2, seed=0)
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    assert len(batches) == math.ceil(len(lengths) / 2)
