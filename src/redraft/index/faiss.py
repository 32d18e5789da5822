"""Approximate nearest neighbours by FAISS: IVF for many vectors, HNSW for millions.

`effort` is FAISS's search parameter: `nprobe` of an IVF index, `efSearch` of an HNSW graph. It is
raised until the recall, measured on a sample of the indexed vectors, reaches `WANTED_RECALL`.
"""

import importlib
import json
import logging
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redraft.index import base
from redraft.index.base import (
    RECALL,
    VECTORS,
    WANTED_RECALL,
    Index,
    Vectors,
    exact_search,
    load_vectors,
)
from redraft.index.faiss_arrays import LINKS, STRUCTURE, load_cells, load_graph, save_structure
from redraft.index.neighbours import Neighbours
from redraft.storage.artifact import Artifact
from redraft.storage.checks import entry, read_json, real, tensor_shapes, whole

HNSW_FROM = 2_000_000
"""At this many vectors or more, HNSW reaches a higher recall than IVF in the same time."""

MEASURED = 11
"""Neighbours that recall is measured with: the row itself and ten others."""
MAX_RERANK = 512
"""Maximum number of candidates that are re-ranked for each neighbour."""

SAMPLE = 256
"""Rows that recall is measured on."""
_MAX_VECTORS = 1 << 30

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Recall:
    """The measured recall of an index, and the search parameters that reach it."""

    at_1: float
    at_10: float
    effort: int  # nprobe or efSearch
    rerank: int = 0  # candidates per neighbour, re-ranked by exact distance; 0 without compression

    @classmethod
    def measured(cls, neighbours: Neighbours, truth: Neighbours, *search: int) -> "Recall":
        """Return the recall of a `search` (effort, rerank) for rows of the index, given the truth.

        Leaves one out: the nearest neighbour of a row is the row itself, which any index finds.
        """
        # by distance, not by row: any of several rows at the same distance is correct
        hits = neighbours.distances[:, 1:] <= truth.distances[:, 1:] + 1e-4
        return cls(float(hits[:, 0].mean()), float(hits.mean()), *search)

    @classmethod
    def load(cls, artifact: Artifact, count: int = _MAX_VECTORS) -> "Recall":
        """Return a saved recall; check that its effort is possible for `count` vectors."""
        path = artifact.path(RECALL)
        values = read_json(path)
        # FAISS allocates memory for any effort; tuning, which doubles it, stays below this limit
        most = 2 * max(1, count)
        return cls(
            real(path, "at_1", entry(path, values, "at_1", float), least=0, most=1),
            real(path, "at_10", entry(path, values, "at_10", float), least=0, most=1),
            whole(path, "effort", values.get("effort"), least=1, most=most),
            whole(path, "rerank", values.get("rerank", 0), least=0, most=MAX_RERANK),
        )


class FaissIndex(Index):
    """An IVF or HNSW index (`structure`) with its measured recall."""

    def __init__(self, vectors: Vectors, structure: Any, recall: Recall) -> None:
        self.vectors = vectors
        self.structure = structure
        self.recall = recall

    @classmethod
    def build(cls, vectors: Vectors) -> "FaissIndex":
        """Return an index of `vectors` with a recall@1 of at least 99 % on a sample of them."""
        structure = _build_structure(vectors)
        recall = tune(vectors, structure)
        _LOG.info(
            "index of %d vectors: recall@1 %.3f, recall@10 %.3f at effort %d",
            *(len(vectors), recall.at_1, recall.at_10, recall.effort),
        )
        return cls(vectors, structure, recall)

    def search(
        self, queries: Vectors, k: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> Neighbours:
        """Return the k nearest rows of each query; exact if a filter allows only few rows."""
        if allowed is not None and allowed.sum() < max(base.EXACT_BELOW, len(allowed) // 10):
            rows = np.flatnonzero(allowed)
            neighbours = exact_search(self.take(rows), queries, k)
            return Neighbours(rows[neighbours.rows], neighbours.distances)
        wanted = min(k, len(self.vectors) if allowed is None else int(allowed.sum()))
        effort = self.recall.effort
        neighbours = self._search(queries, k, effort, allowed)
        # the probed cells, or the visited part of the graph, may hold fewer than k rows
        while (neighbours.rows[:, :wanted] < 0).any() and effort < len(self.vectors):
            effort *= 2
            neighbours = self._search(queries, k, effort, allowed)
        return neighbours

    def _search(
        self, queries: Vectors, k: int, effort: int, allowed: NDArray[np.bool_] | None
    ) -> Neighbours:
        return search_structure(self.structure, queries, k, effort, allowed)

    def save(self, folder: Path) -> None:
        """Write the vectors, the structure as plain arrays and the measured recall."""
        self._save_vectors(folder / VECTORS)
        save_structure(self.structure, folder / STRUCTURE)
        text = json.dumps(asdict(self.recall))
        (folder / RECALL).write_text(text, encoding="utf-8")

    def _save_vectors(self, path: Path) -> None:
        np.save(path, self.vectors, allow_pickle=False)

    @classmethod
    def load(cls, artifact: Artifact) -> "FaissIndex":
        """Return a saved index; one without plain arrays is rebuilt."""
        vectors = load_vectors(artifact)
        recall = Recall.load(artifact, len(vectors))
        if STRUCTURE not in artifact.files:
            _LOG.info("%s: rebuilding its index; save the model to keep it", artifact.folder)
            return cls.build(np.ascontiguousarray(vectors))
        path = artifact.path(STRUCTURE)
        has_graph = "levels" in tensor_shapes(path)
        structure = load_graph(path, vectors) if has_graph else load_cells(path, vectors)
        return cls(vectors, structure, recall)


def _build_structure(vectors: Vectors) -> Any:
    import faiss

    count, width = vectors.shape
    structure: Any
    if count >= HNSW_FROM:
        structure = faiss.IndexHNSWFlat(width, LINKS)
    else:
        cells = int(2 ** np.round(np.log2(2 * np.sqrt(count))))
        structure = faiss.IndexIVFFlat(faiss.IndexFlatL2(width), width, cells)
        structure.train(vectors)
    structure.add(vectors)
    return structure


def tune(vectors: Vectors, structure: Any) -> Recall:
    """Double the effort until recall@1 on a sample of the rows is high enough; return both."""
    queries = np.ascontiguousarray(vectors[sample_rows(len(vectors), SAMPLE)])
    truth = exact_search(vectors, queries, MEASURED)
    effort = 1
    while True:
        neighbours = search_structure(structure, queries, MEASURED, effort, None)
        recall = Recall.measured(neighbours, truth, effort)
        if recall.at_1 >= WANTED_RECALL or effort >= len(vectors):
            return recall
        effort *= 2


def sample_rows(count: int, most: int) -> NDArray[np.int64]:
    """Draw at most `most` of `count` rows without replacement."""
    return np.random.default_rng(0).choice(count, min(most, count), replace=False)


def search_structure(
    structure: Any, queries: Vectors, k: int, effort: int, allowed: NDArray[np.bool_] | None
) -> Neighbours:
    """Search a FAISS index with `effort` as nprobe (IVF) or efSearch (HNSW)."""
    faiss: Any = importlib.import_module("faiss")  # its stubs lack the search parameters

    selector = faiss.IDSelectorBatch(np.flatnonzero(allowed)) if allowed is not None else None
    if isinstance(structure, faiss.IndexHNSW):
        # at least as many as in the measurement of recall
        width = max(min(effort, 2 * structure.ntotal), k, MEASURED)
        parameters = faiss.SearchParametersHNSW(efSearch=width, sel=selector)
    else:
        parameters = faiss.SearchParametersIVF(nprobe=min(effort, structure.nlist), sel=selector)
    queries = np.ascontiguousarray(queries, np.float32)
    distances, rows = structure.search(queries, k, params=parameters)
    return Neighbours(rows, distances.clip(min=0))
