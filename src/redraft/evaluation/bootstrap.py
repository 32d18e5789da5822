"""Intervals by resampling: of a mean, of what two systems differ by, of any function of sums."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000
SEED = 2018
_CELLS = 1 << 24
"""Counts of draws held at once."""

Interval = tuple[float, float]


def bootstrap(
    values: NDArray[np.float64] | NDArray[np.int64],
    statistic: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    *,
    clusters: Sequence[str] | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Interval:
    """The central 95 % of a statistic of column sums, over resampled examples or whole clusters.

    `values` is (N, C), a row an example; `statistic` takes the summed rows of every resample
    (R, C) and gives one figure each (R,).
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
        # how often each row is drawn is all a resample is: one multinomial each, one product
        sums[start : start + size] = generator.multinomial(len(rows), share, size=size) @ rows
    low, high = np.quantile(statistic(sums), [0.025, 0.975])
    return float(low), float(high)


def mean_interval(
    values: Sequence[float] | NDArray[np.float64], *, clusters: Sequence[str] | None = None
) -> Interval:
    """The 95 % interval of the mean."""
    ones = np.ones(len(values))
    columns = np.stack([np.asarray(values, np.float64), ones], axis=1)
    return bootstrap(columns, lambda sums: sums[:, 0] / sums[:, 1], clusters=clusters)


def paired_interval(
    first: Sequence[float] | NDArray[np.float64],
    second: Sequence[float] | NDArray[np.float64],
    *,
    clusters: Sequence[str] | None = None,
) -> Interval:
    """The 95 % interval of the mean of first − second, both of the same examples in order."""
    columns = _paired(first, second)
    return mean_interval(columns[:, 0] - columns[:, 1], clusters=clusters)


def ratio_interval(
    first: Sequence[float] | NDArray[np.float64],
    second: Sequence[float] | NDArray[np.float64],
    *,
    clusters: Sequence[str] | None = None,
) -> Interval:
    """The 95 % interval of mean(first) / mean(second), of the same examples, none below 0.

    Where too many resamples leave the second with nothing, the ratio has no upper end.
    """
    low, high = bootstrap(_paired(first, second), _ratios, clusters=clusters)
    return low if low < _ENDLESS else math.inf, high if high < _ENDLESS else math.inf


_ENDLESS = 1e100
"""A ratio that stands for infinity, which quantiles cannot be interpolated at."""


def _ratios(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """The ratios of two columns; nothing against nothing is a draw."""
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
