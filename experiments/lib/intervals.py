"""Bootstrap intervals of means by cluster, and of paired differences and ratios."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from redraft.metrics.bootstrap import Interval, bootstrap

Values = Sequence[float] | NDArray[np.float64]

_ENDLESS = 1e100
"""Stands for an infinite ratio, since quantiles cannot interpolate infinity."""


def mean_interval(values: Values, *, clusters: Sequence[str] | None = None) -> Interval:
    """Return the 95 % interval of the mean; whole `clusters` are resampled, if there are any."""
    columns = np.stack([np.asarray(values, np.float64), np.ones(len(values))], axis=1)
    return bootstrap(_summed(columns, clusters), lambda sums: sums[:, 0] / sums[:, 1])


def paired_interval(
    first: Values, second: Values, *, clusters: Sequence[str] | None = None
) -> Interval:
    """Return the 95 % interval of mean(first − second), paired by example."""
    columns = _paired(first, second)
    return mean_interval(columns[:, 0] - columns[:, 1], clusters=clusters)


def ratio_interval(
    first: Values, second: Values, *, clusters: Sequence[str] | None = None
) -> Interval:
    """Return the 95 % interval of mean(first) / mean(second) of non-negative values, paired.

    The upper end is infinite if the second mean is 0 in too many resamples.
    """
    low, high = bootstrap(_summed(_paired(first, second), clusters), _ratios)
    return low if low < _ENDLESS else math.inf, high if high < _ENDLESS else math.inf


def _summed(columns: NDArray[np.float64], clusters: Sequence[str] | None) -> NDArray[np.float64]:
    """Return the sums of the rows of each cluster, so that clusters are resampled as rows."""
    if clusters is None:
        return columns
    _, membership = np.unique(np.asarray(clusters), return_inverse=True)
    return np.stack([np.bincount(membership, weights=column) for column in columns.T], axis=1)


def _ratios(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the ratios of two columns; 0 / 0 counts as 1."""
    first, second = sums.T
    endless = np.where(first > 0, 1e10 * _ENDLESS, 1.0)
    return np.where(second > 0, first / np.where(second > 0, second, 1.0), endless)


def _paired(first: Values, second: Values) -> NDArray[np.float64]:
    if len(first) != len(second):
        raise ValueError(
            f"pairs need the same examples; the first has {len(first)}, the second {len(second)}"
        )
    return np.stack([np.asarray(first, np.float64), np.asarray(second, np.float64)], axis=1)
