"""Intervals of clusters and of pairs behave as intervals, and agree with SciPy's."""

import math

import numpy as np
import pytest
from scipy import stats

from experiments.lib.intervals import mean_interval, paired_interval, ratio_interval

VALUES = np.random.default_rng(7).beta(2, 5, size=66)
OTHERS = np.clip(VALUES + np.random.default_rng(8).normal(-0.05, 0.05, size=66), 0, 1)
GROUPS = [str(i // 6) for i in range(66)]


def test_resampling_whole_clusters_widens_the_interval_when_they_agree_within() -> None:
    values = np.repeat(VALUES[:10], 20)
    clusters = [str(at // 20) for at in range(200)]
    by_cluster, by_example = mean_interval(values, clusters=clusters), mean_interval(values)
    assert by_cluster[1] - by_cluster[0] > 2 * (by_example[1] - by_example[0])
    assert by_cluster == pytest.approx(mean_interval(VALUES[:10]), abs=0.02)


def test_the_interval_of_a_difference_agrees_with_scipy() -> None:
    expected = stats.bootstrap(
        (VALUES, OTHERS),
        lambda one, other, axis: one.mean(axis) - other.mean(axis),
        paired=True,
        method="percentile",
        n_resamples=20_000,
        random_state=1,
    ).confidence_interval
    found = paired_interval(VALUES, OTHERS)
    assert found == pytest.approx((expected.low, expected.high), abs=0.002)


def test_the_interval_of_a_ratio_agrees_with_scipy() -> None:
    expected = stats.bootstrap(
        (VALUES, OTHERS),
        lambda one, other, axis: one.mean(axis) / other.mean(axis),
        paired=True,
        method="percentile",
        n_resamples=20_000,
        random_state=1,
    ).confidence_interval
    found = ratio_interval(VALUES, OTHERS)
    assert found == pytest.approx((expected.low, expected.high), abs=0.02)


def test_pairs_tell_more_than_the_two_means_apart() -> None:
    alone = mean_interval(VALUES)
    low, high = paired_interval(VALUES, OTHERS)
    assert high - low < 0.5 * (alone[1] - alone[0])


def test_whole_clusters_are_resampled_for_pairs_too() -> None:
    generator = np.random.default_rng(3)
    blocks = [np.flatnonzero(np.array(GROUPS) == name) for name in dict.fromkeys(GROUPS)]
    draws = [
        np.concatenate([blocks[at] for at in generator.integers(len(blocks), size=len(blocks))])
        for _ in range(10_000)
    ]
    differences = [VALUES[rows].mean() - OTHERS[rows].mean() for rows in draws]
    ratios = [VALUES[rows].mean() / OTHERS[rows].mean() for rows in draws]
    found = paired_interval(VALUES, OTHERS, clusters=GROUPS)
    assert found == pytest.approx(tuple(np.quantile(differences, [0.025, 0.975])), abs=0.002)
    found = ratio_interval(VALUES, OTHERS, clusters=GROUPS)
    assert found == pytest.approx(tuple(np.quantile(ratios, [0.025, 0.975])), abs=0.02)


def test_the_difference_changes_its_sign_and_the_ratio_turns_over_with_the_order() -> None:
    low, high = paired_interval(VALUES, OTHERS)
    assert paired_interval(OTHERS, VALUES) == pytest.approx((-high, -low))
    low, high = ratio_interval(VALUES, OTHERS)
    assert ratio_interval(OTHERS, VALUES) == pytest.approx((1 / high, 1 / low), rel=1e-3)


def test_alike_is_a_difference_of_none_and_a_ratio_of_one() -> None:
    assert paired_interval(VALUES, VALUES) == (0, 0)
    assert ratio_interval(VALUES, VALUES) == (1, 1)
    assert ratio_interval([0, 0], [0, 0]) == (1, 1)


def test_a_ratio_to_what_may_be_nothing_has_no_upper_end() -> None:
    low, high = ratio_interval([1.0] * 6, [0, 0, 0, 0, 0, 1.0])
    assert 1 < low < 6
    assert high == math.inf
    assert ratio_interval([1.0, 1.0], [0.0, 0.0]) == (math.inf, math.inf)


def test_pairs_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="the first has 2, the second 1"):
        paired_interval([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="the first has 2, the second 1"):
        ratio_interval([1.0, 2.0], [1.0])
