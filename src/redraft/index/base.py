"""Index interface for nearest neighbours of unit vectors by squared distance, and exact search.

An index is immutable: replacing vectors returns a new one. Knows vectors and rows, no examples.
"""

from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from redraft.index.neighbours import Neighbours, nearest
from redraft.storage.artifact import Artifact
from redraft.storage.checks import check_vectors, read_array

Vectors = NDArray[np.float32]

EXACT_BELOW = 20_000
"""Below this many vectors exact search is fast enough to run on every keystroke."""

WANTED_RECALL = 0.99
"""The share of true neighbours that an approximate index must find."""

VECTORS, RECALL = "vectors.npy", "recall.json"

_BATCH = 256


class Index(ABC):
    """Unit vectors in rows, searched for the nearest ones."""

    vectors: Vectors  # (N, D), rows of length 1

    @property
    def width(self) -> int:
        """The dimension of the vectors."""
        return int(self.vectors.shape[1])

    def take(self, rows: NDArray[np.int64]) -> Vectors:
        """Return the vectors of `rows`."""
        return np.asarray(self.vectors[rows])

    @abstractmethod
    def search(
        self, queries: Vectors, k: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> Neighbours:
        """Return the k nearest rows of each query among the `allowed` ones."""

    def replace(self, rows: NDArray[np.int64], vectors: Vectors) -> "Index":
        """Return an index without `rows`, later ones moved up, and with `vectors` appended."""
        return build_index(np.concatenate([np.delete(self.vectors, rows, axis=0), vectors]))

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the index into an existing folder."""


class ExactIndex(Index):
    """Compares every query with every vector."""

    def __init__(self, vectors: Vectors) -> None:
        self.vectors = vectors

    def search(
        self, queries: Vectors, k: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> Neighbours:
        """Return the k nearest rows of each query."""
        return exact_search(self.vectors, queries, k, allowed=allowed)

    def save(self, folder: Path) -> None:
        """Write the vectors as a NumPy file, which can be memory-mapped."""
        np.save(folder / VECTORS, self.vectors, allow_pickle=False)


def load_vectors(artifact: Artifact) -> Vectors:
    """Memory-map the vectors of a saved index, check each of them and return them."""
    path = artifact.path(VECTORS)
    vectors = read_array(path, np.float32, (None, None))
    check_vectors(path, vectors)
    return vectors


def exact_search(
    vectors: Vectors, queries: Vectors, k: int, *, allowed: NDArray[np.bool_] | None = None
) -> Neighbours:
    """Return the k nearest rows of each query by brute force, in batches of queries."""
    parts = []
    for start in range(0, len(queries), _BATCH):
        # unit vectors: ‖a − b‖² = 2 − 2 a·b
        distances = 2 - 2 * (queries[start : start + _BATCH] @ vectors.T)
        parts.append(nearest(distances.clip(min=0), k, allowed=allowed))
    return Neighbours.join(parts) if parts else Neighbours.none(0)


def build_index(vectors: Vectors) -> Index:
    """Return an exact index of few vectors, a FAISS index of many."""
    if len(vectors) < EXACT_BELOW:
        return ExactIndex(vectors)
    from redraft.index.faiss import FaissIndex  # which is an Index itself

    return FaissIndex.build(vectors)


def load_index(artifact: Artifact) -> Index:
    """Return a saved index of any kind."""
    if RECALL not in artifact.files:
        return ExactIndex(load_vectors(artifact))
    from redraft.index.faiss import FaissIndex, Recall
    from redraft.index.ivfpq import CompressedIndex

    kind = CompressedIndex if Recall.load(artifact).rerank else FaissIndex
    return kind.load(artifact)
