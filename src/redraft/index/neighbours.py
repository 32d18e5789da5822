"""Rows and distances of the nearest neighbours: the result of every search."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Neighbours:
    """Rows of the examples nearest to each input, nearest first; row -1 where there are fewer."""

    rows: NDArray[np.int64]  # (B, K)
    distances: NDArray[np.float32]  # (B, K)

    @classmethod
    def none(cls, inputs: int) -> "Neighbours":
        """Return an empty result for this many inputs."""
        return cls(np.empty((inputs, 0), np.int64), np.empty((inputs, 0), np.float32))

    def nearest(self, k: int) -> "Neighbours":
        """Return the k nearest of each input; of equal distances the first row comes first."""
        order = np.lexsort((self.rows, self.distances))[:, :k]
        return Neighbours(
            np.take_along_axis(self.rows, order, axis=1),
            np.take_along_axis(self.distances, order, axis=1),
        )

    def merge(self, other: "Neighbours", k: int, *, first: int) -> "Neighbours":
        """Return the k nearest of both; row 0 of `other` becomes row `first`."""
        rows = np.concatenate([self.rows, other.rows + first], axis=1)
        return Neighbours(rows, np.concatenate([self.distances, other.distances], 1)).nearest(k)

    @classmethod
    def join(cls, parts: Sequence["Neighbours"]) -> "Neighbours":
        """Concatenate the results of several batches of inputs."""
        rows = np.concatenate([part.rows for part in parts])
        return cls(rows, np.concatenate([part.distances for part in parts]))


def nearest(
    distances: NDArray[np.float32], k: int, *, allowed: NDArray[np.bool_] | None = None
) -> Neighbours:
    """Return the k smallest distances per row of a matrix (B, N); ties go to the first column."""
    count = distances.shape[1] if allowed is None else int(allowed.sum())
    k = min(k, count)
    if k == 0:
        return Neighbours.none(len(distances))
    if allowed is not None:
        distances = np.where(allowed, distances, np.float32(np.inf))
    # the k-th smallest distance is a threshold; of several equal to it, the first ones are taken
    threshold = np.partition(distances, k - 1, axis=1)[:, k - 1]
    rows = np.empty((len(distances), k), np.int64)
    for i, row in enumerate(distances):
        candidates = np.flatnonzero(row <= threshold[i])
        rows[i] = candidates[np.argsort(row[candidates], kind="stable")[:k]]
    return Neighbours(rows, np.take_along_axis(distances, rows, axis=1))
