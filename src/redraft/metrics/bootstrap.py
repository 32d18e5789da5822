"""Bootstrap intervals of means, of paired differences and ratios, and of functions of sums."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000
SEED = 2018
_CELLS = 1 << 24
"""Maximum number of counts in memory at once."""

Interval = tuple[float, float]


def bootstrap(
    values: NDArray[np.float64] | NDArray[np.int64],
    statistic: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    *,
    clusters: Sequence[str] | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Interval:
    """Return the 95 % percentile interval of a statistic of column sums.

    `values` is (N, C), one row per example; `statistic` maps the sums of the resamples (R, C) to
    values (R,). With `clusters`, whole clusters are resampled instead of examples.
    """
    rows = np.asarray(values, np.float64)
    if clusters is not None:
        _, membership = np.unique(np.asarray(clusters), return_inverse=True)
        rows = np.stack([np.bincount(membership, weights=column) for column in rows.T], axis=1)
    generator = np.random.default_rng(seed)
    share = np.full(len(rows), 1 / len(rows))
    sums = np.empty((resamples, rows.shape[1]))
    for start in range(0, resamples, chunk := max(1, _CELLS // len(rows))):
        size = min(chunk, resamples - start)
        # a resample is determined by the counts of its rows: a multinomial draw and a product
        sums[start : start + size] = generator.multinomial(len(rows), share, size=size) @ rows
    low, high = np.quantile(statistic(sums), [0.025, 0.975])
    return float(low), float(high)


def mean_interval(
    values: Sequence[float] | NDArray[np.float64], *, clusters: Sequence[str] | None = None
) -> Interval:
    """Return the 95 % interval of the mean."""
    ones = np.ones(len(values))
    columns = np.stack([np.asarray(values, np.float64), ones], axis=1)
    return bootstrap(columns, lambda sums: sums[:, 0] / sums[:, 1], clusters=clusters)


def paired_interval(
    first: Sequence[float] | NDArray[np.float64],
    second: Sequence[float] | NDArray[np.float64],
    *,
    clusters: Sequence[str] | None = None,
) -> Interval:
    """Return the 95 % interval of mean(first − second), paired by example."""
    columns = _paired(first, second)
    return mean_interval(columns[:, 0] - columns[:, 1], clusters=clusters)


def ratio_interval(
    first: Sequence[float] | NDArray[np.float64],
    second: Sequence[float] | NDArray[np.float64],
    *,
    clusters: Sequence[str] | None = None,
) -> Interval:
    """Return the 95 % interval of mean(first) / mean(second) of non-negative values, paired.

    The upper end is infinite if the second mean is 0 in too many resamples.
    """
    low, high = bootstrap(_paired(first, second), _ratios, clusters=clusters)
    return low if low < _ENDLESS else math.inf, high if high < _ENDLESS else math.inf


_ENDLESS = 1e100
"""Stands for an infinite ratio, since quantiles cannot interpolate infinity."""


def _ratios(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the ratios of two columns; 0 / 0 counts as 1."""
    first, second = sums.T
    endless = np.where(first > 0, 1e10 * _ENDLESS, 1.0)
    return np.where(second > 0, first / np.where(second > 0, second, 1.0), endless)


def _paired(
    first: Sequence[float] | NDArray[np.float64], second: Sequence[float] | NDArray[np.float64]
) -> NDArray[np.float64]:
    if len(first) != len(second):
        raise ValueError(
            f"pairs need the same examples; the first has {len(first)}, the second {len(second)}"
        )
    return np.stack([np.asarray(first, np.float64), np.asarray(second, np.float64)], axis=1)
