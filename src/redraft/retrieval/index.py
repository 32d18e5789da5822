"""Nearest neighbours of unit vectors by squared distance: exact for few, FAISS for many.

Knows vectors and rows; does not know what they stand for. An index is never changed: adding and
removing give a new one.
"""

import importlib
import json
import logging
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redraft.artifact import Artifact
from redraft.retrieval.neighbours import Neighbours, nearest

Vectors = NDArray[np.float32]

EXACT_BELOW = 20_000
"""Up to this many vectors the exact search is as fast as a keystroke asks for."""

HNSW_FROM = 2_000_000
"""From this many on, a graph finds more than cells do for the same effort."""

WANTED_RECALL = 0.99
_SAMPLE = 256
MEASURED = 11
"""How many neighbours recall is measured with: the row itself and ten others."""
_BATCH = 256

_LOG = logging.getLogger(__name__)


class Index(ABC):
    """Vectors in rows, and the nearest of them."""

    vectors: Vectors  # (N, D), rows of length 1

    @property
    def width(self) -> int:
        """How long each row is."""
        return int(self.vectors.shape[1])

    def take(self, rows: NDArray[np.int64]) -> Vectors:
        """The vectors of these rows."""
        return np.asarray(self.vectors[rows])

    def cosines(self, rows: NDArray[np.int64], query: Vectors) -> Vectors:
        """How alike these rows are to one query."""
        return self.take(rows) @ query

    @abstractmethod
    def search(
        self, queries: Vectors, k: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> Neighbours:
        """The k nearest rows of each query, among those that are allowed."""

    @abstractmethod
    def add(self, vectors: Vectors) -> "Index":
        """The index with these vectors after its own."""

    @abstractmethod
    def remove(self, rows: NDArray[np.int64]) -> "Index":
        """The index without these rows, the later ones moving up."""

    def replace(self, rows: NDArray[np.int64], vectors: Vectors) -> "Index":
        """The index without these rows and with the given vectors after the rest, built once."""
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
        """The k nearest rows of each query."""
        return exact_search(self.vectors, queries, k, allowed=allowed)

    def add(self, vectors: Vectors) -> Index:
        """The index with these vectors after its own."""
        return build_index(np.concatenate([self.vectors, vectors]))

    def remove(self, rows: NDArray[np.int64]) -> "ExactIndex":
        """The index without these rows."""
        return ExactIndex(np.delete(self.vectors, rows, axis=0))

    def save(self, folder: Path) -> None:
        """Write the vectors as a NumPy file, to be mapped into memory."""
        np.save(folder / "vectors.npy", self.vectors, allow_pickle=False)

    @classmethod
    def load(cls, artifact: Artifact) -> "ExactIndex":
        """The index that was saved, its vectors mapped from the file."""
        return cls(np.load(artifact.path("vectors.npy"), mmap_mode="r", allow_pickle=False))


def exact_search(
    vectors: Vectors, queries: Vectors, k: int, *, allowed: NDArray[np.bool_] | None = None
) -> Neighbours:
    """The k nearest rows of each query by comparison with all."""
    parts = []
    for start in range(0, len(queries), _BATCH):
        # unit vectors: ‖a − b‖² = 2 − 2 a·b
        distances = 2 - 2 * (queries[start : start + _BATCH] @ vectors.T)
        parts.append(nearest(distances.clip(min=0), k, allowed=allowed))
    return Neighbours.join(parts) if parts else Neighbours.none(0)


@dataclass(frozen=True)
class Recall:
    """The share of true nearest neighbours that an index finds, and the effort it takes."""

    at_1: float
    at_10: float
    effort: int
    compared: int = 0  # for each of the nearest: found in few bytes, and compared again exactly


class FaissIndex(Index):
    """Cells (IVF) or a graph (HNSW) of FAISS; its recall was measured on these very vectors."""

    def __init__(self, vectors: Vectors, structure: Any, recall: Recall) -> None:
        self.vectors = vectors
        self.structure = structure
        self.recall = recall

    @classmethod
    def build(cls, vectors: Vectors, *, seed: int = 0) -> "FaissIndex":
        """An index of these vectors that finds at least 99 % of the nearest ones."""
        structure = _build_structure(vectors)
        recall = tune(vectors, structure, seed=seed)
        _LOG.info(
            "index of %d vectors: recall@1 %.3f, recall@10 %.3f at effort %d",
            *(len(vectors), recall.at_1, recall.at_10, recall.effort),
        )
        return cls(vectors, structure, recall)

    def search(
        self, queries: Vectors, k: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> Neighbours:
        """The k nearest rows of each query; a filter that keeps few is searched exactly."""
        if allowed is not None and allowed.sum() < max(EXACT_BELOW, len(allowed) // 10):
            rows = np.flatnonzero(allowed)
            found = exact_search(self.vectors[rows], queries, k)
            return Neighbours(rows[found.rows], found.distances)
        wanted = min(k, len(self.vectors) if allowed is None else int(allowed.sum()))
        effort = self.recall.effort
        found = search_structure(self.structure, queries, k, effort, allowed)
        # the cells or the walk may hold fewer than there are
        while (found.rows[:, :wanted] < 0).any() and effort < len(self.vectors):
            effort *= 2
            found = search_structure(self.structure, queries, k, effort, allowed)
        return found

    def add(self, vectors: Vectors) -> "FaissIndex":
        """The index with these vectors, and as much effort as it now takes."""
        return FaissIndex.build(np.concatenate([self.vectors, vectors]))

    def remove(self, rows: NDArray[np.int64]) -> Index:
        """The index without these rows, built again: FAISS would leave holes in their place."""
        return build_index(np.delete(self.vectors, rows, axis=0))

    def save(self, folder: Path) -> None:
        """Write the vectors, FAISS's own file and the measured recall."""
        import faiss

        np.save(folder / "vectors.npy", self.vectors, allow_pickle=False)
        faiss.write_index(self.structure, str(folder / "index.faiss"))
        (folder / "recall.json").write_text(json.dumps(asdict(self.recall)), encoding="utf-8")

    @classmethod
    def load(cls, artifact: Artifact) -> "FaissIndex":
        """The index that was saved, mapped from its files."""
        import faiss

        vectors = np.load(artifact.path("vectors.npy"), mmap_mode="r", allow_pickle=False)
        structure = faiss.read_index(str(artifact.path("index.faiss")), faiss.IO_FLAG_MMAP)
        return cls(vectors, structure, Recall(**artifact.json("recall.json")))


def build_index(vectors: Vectors) -> Index:
    """An index fit for this many vectors."""
    return ExactIndex(vectors) if len(vectors) < EXACT_BELOW else FaissIndex.build(vectors)


def load_index(artifact: Artifact) -> Index:
    """The index that was saved, of whichever kind."""
    return (
        FaissIndex.load(artifact) if "index.faiss" in artifact.files else ExactIndex.load(artifact)
    )


def _build_structure(vectors: Vectors) -> Any:
    import faiss

    count, width = vectors.shape
    structure: Any
    if count >= HNSW_FROM:
        structure = faiss.IndexHNSWFlat(width, 32)
    else:
        cells = int(2 ** np.round(np.log2(2 * np.sqrt(count))))
        structure = faiss.IndexIVFFlat(faiss.IndexFlatL2(width), width, cells)
        structure.train(vectors)
    structure.add(vectors)
    return structure


def tune(vectors: Vectors, structure: Any, *, seed: int) -> Recall:
    """Double the effort until nearly every nearest neighbour of a sample of the rows is found."""
    queries = np.ascontiguousarray(vectors[sample_rows(len(vectors), _SAMPLE, seed=seed)])
    # the nearest to a row is the row itself, which any index finds: the next ten are asked for
    truth = exact_search(vectors, queries, MEASURED).distances[:, 1:]
    effort = 1
    while True:
        found = search_structure(structure, queries, MEASURED, effort, None).distances[:, 1:]
        # by distance and not by row: of several at the same distance any one will do
        hits = found <= truth + 1e-4
        recall = Recall(float(hits[:, 0].mean()), float(hits.mean()), effort)
        if recall.at_1 >= WANTED_RECALL or effort >= len(vectors):
            return recall
        effort *= 2


def sample_rows(count: int, most: int, *, seed: int = 0) -> NDArray[np.int64]:
    """At most so many of all rows, drawn without replacement."""
    return np.random.default_rng(seed).choice(count, min(most, count), replace=False)


def search_structure(
    structure: Any, queries: Vectors, k: int, effort: int, allowed: NDArray[np.bool_] | None
) -> Neighbours:
    """FAISS's search; effort is the number of cells probed, or the width of the walk."""
    faiss: Any = importlib.import_module("faiss")  # its own stubs do not know these parameters

    selector = faiss.IDSelectorBatch(np.flatnonzero(allowed)) if allowed is not None else None
    if isinstance(structure, faiss.IndexHNSW):
        # no narrower than it was measured with
        width = max(effort, k, MEASURED)
        parameters = faiss.SearchParametersHNSW(efSearch=width, sel=selector)
    else:
        parameters = faiss.SearchParametersIVF(nprobe=min(effort, structure.nlist), sel=selector)
    queries = np.ascontiguousarray(queries, np.float32)
    distances, rows = structure.search(queries, k, params=parameters)
    return Neighbours(rows, distances.clip(min=0))
