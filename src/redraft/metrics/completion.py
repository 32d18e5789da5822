"""Completion metrics: the number of successive tokens that a list of k suggestions contains.

They are computed from the 0-based rank of each true token among the suggestions, given the true
prefix.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

LIST_SIZES = (1, 5, 10)
PAPER_FUNCTIONS = 500

Ranks = NDArray[np.int64]


def completion_lengths(hits: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return L_t, the number of successive hits from each position t."""
    positions = np.arange(len(hits))
    misses = np.where(hits, len(hits), positions)
    # the next miss at or after t, by a running minimum from the right
    next_miss = np.minimum.accumulate(misses[::-1])[::-1]
    return np.asarray(next_miss - positions, np.int64)


def completion_metrics(functions: Sequence[Ranks]) -> dict[str, list[float]]:
    """Return average and longest completion per function, for lists of 1, 5 and 10 suggestions."""
    metrics: dict[str, list[float]] = {}
    for size in LIST_SIZES:
        lengths = [completion_lengths(ranks < size) for ranks in functions]
        metrics[f"avg_{size}"] = [_mean(function) for function in lengths]
        metrics[f"longest_{size}"] = [_longest(function) for function in lengths]
    return metrics


def completion_metrics_paper(functions: Sequence[Ranks]) -> dict[str, list[float]]:
    """Return the metrics as the paper's code computes them.

    It counts ranks up to k inclusive, averages over hits only, and uses the first 500 functions.
    """
    metrics: dict[str, list[float]] = {}
    for size in LIST_SIZES:
        lengths = [completion_lengths(ranks <= size) for ranks in functions[:PAPER_FUNCTIONS]]
        metrics[f"avg_{size}_paper"] = [_mean(function[function > 0]) for function in lengths]
        metrics[f"longest_{size}_paper"] = [_longest(function) for function in lengths]
    return metrics


def _mean(lengths: NDArray[np.int64]) -> float:
    return float(lengths.mean()) if len(lengths) else 0.0


def _longest(lengths: NDArray[np.int64]) -> float:
    return float(lengths.max(initial=0))
