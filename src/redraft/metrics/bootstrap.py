"""Bootstrap intervals of means, and of functions of sums."""

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
) -> Interval:
    """Return the 95 % percentile interval of a statistic of column sums.

    `values` is (N, C), one row per example; `statistic` maps the sums of the resamples (R, C) to
    values (R,).
    """
    rows = np.asarray(values, np.float64)
    generator = np.random.default_rng(SEED)
    share = np.full(len(rows), 1 / len(rows))
    sums = np.empty((RESAMPLES, rows.shape[1]))
    for start in range(0, RESAMPLES, chunk := max(1, _CELLS // len(rows))):
        size = min(chunk, RESAMPLES - start)
        # a resample is determined by the counts of its rows: a multinomial draw and a product
        sums[start : start + size] = generator.multinomial(len(rows), share, size=size) @ rows
    low, high = np.quantile(statistic(sums), [0.025, 0.975])
    return float(low), float(high)


def mean_interval(values: Sequence[float] | NDArray[np.float64]) -> Interval:
    """Return the 95 % interval of the mean."""
    columns = np.asarray(values, np.float64)[:, None]
    return bootstrap(columns, lambda sums: sums[:, 0] / len(columns))
