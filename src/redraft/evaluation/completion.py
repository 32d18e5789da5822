"""How many tokens in a row a list of k suggestions would have completed.

All that is needed of a function is, for each of its tokens, the 0-based rank of the true token
among the suggestions given the true prefix.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

LIST_SIZES = (1, 5, 10)
PAPER_FUNCTIONS = 500

Ranks = NDArray[np.int64]


def completion_lengths(hits: NDArray[np.bool_]) -> NDArray[np.int64]:
    """L_t: the number of successive hits from each position on."""
    positions = np.arange(len(hits))
    misses = np.where(hits, len(hits), positions)
    # the next miss at or after t, by a running minimum from the right
    next_miss = np.minimum.accumulate(misses[::-1])[::-1]
    return np.asarray(next_miss - positions, np.int64)


def completion_metrics(functions: Sequence[Ranks]) -> dict[str, list[float]]:
    """Average and longest completion of each function for lists of 1, 5 and 10 suggestions."""
    metrics: dict[str, list[float]] = {}
    for size in LIST_SIZES:
        lengths = [completion_lengths(ranks < size) for ranks in functions]
        metrics[f"avg_{size}"] = [float(each.mean()) if len(each) else 0.0 for each in lengths]
        metrics[f"longest_{size}"] = [float(each.max(initial=0)) for each in lengths]
    return metrics


def completion_metrics_paper(functions: Sequence[Ranks]) -> dict[str, list[float]]:
    """The paper's code: ranks up to k (so k + 1 of them), mean over hits only, 500 functions."""
    metrics: dict[str, list[float]] = {}
    for size in LIST_SIZES:
        lengths = [completion_lengths(ranks <= size) for ranks in functions[:PAPER_FUNCTIONS]]
        hits = [each[each > 0] for each in lengths]
        metrics[f"avg_{size}_paper"] = [float(each.mean()) if len(each) else 0.0 for each in hits]
        metrics[f"longest_{size}_paper"] = [float(each.max(initial=0)) for each in lengths]
    return metrics
