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
    build_index,
    exact_search,
    load_vectors,
)
from redraft.index.faiss_arrays import LINKS, STRUCTURE, load_cells, load_graph, save_structure
from redraft.index.neighbours import Neighbours
from redraft.storage.artifact import Artifact
from redraft.storage.checks import entry, read_json, real, tensor_shapes, whole

HNSW_FROM = 2_000_000
"""From this many vectors HNSW reaches a higher recall than IVF in the same time."""

MEASURED = 11
"""Neighbours that recall is measured with: the row itself and ten others."""
MAX_RERANK = 512
"""Maximum number of candidates that are re-ranked for each neighbour."""

_SAMPLE = 256
_MAX_EFFORT = 1 << 30

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Recall:
    """The measured recall of an index, and the search parameters that reach it."""

    at_1: float
    at_10: float
    effort: int  # nprobe or efSearch
    rerank: int = 0  # candidates per neighbour, re-ranked by exact distance; 0 without compression

    def save(self, folder: Path) -> None:
        """Write the recall into an existing folder."""
        (folder / RECALL).write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def load_for(cls, artifact: Artifact, count: int) -> "Recall":
        """Return a saved recall; check that its effort is possible for `count` vectors."""
        recall = cls.load(artifact)
        # FAISS allocates memory for any effort; tuning, which doubles it, stays below this limit
        whole(artifact.path(RECALL), "effort", recall.effort, least=1, most=2 * max(1, count))
        return recall

    @classmethod
    def load(cls, artifact: Artifact) -> "Recall":
        """Return a saved recall."""
        path = artifact.path(RECALL)
        values = read_json(path)
        return cls(
            real(path, "at_1", entry(path, values, "at_1", float), least=0, most=1),
            real(path, "at_10", entry(path, values, "at_10", float), least=0, most=1),
            whole(path, "effort", values.get("effort"), least=1, most=_MAX_EFFORT),
            whole(path, "rerank", values.get("rerank", 0), least=0, most=MAX_RERANK),
        )


class FaissIndex(Index):
    """An IVF or HNSW index (`structure`) with its measured recall."""

    def __init__(self, vectors: Vectors, structure: Any, recall: Recall) -> None:
        self.vectors = vectors
        self.structure = structure
        self.recall = recall

    @classmethod
    def build(cls, vectors: Vectors, *, seed: int = 0) -> "FaissIndex":
        """Return an index of `vectors` with a recall@1 of at least 99 % on a sample of them."""
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
        """Return the k nearest rows of each query; exact if a filter allows only few rows."""
        if allowed is not None and allowed.sum() < max(base.EXACT_BELOW, len(allowed) // 10):
            rows = np.flatnonzero(allowed)
            neighbours = exact_search(self.vectors[rows], queries, k)
            return Neighbours(rows[neighbours.rows], neighbours.distances)
        wanted = min(k, len(self.vectors) if allowed is None else int(allowed.sum()))
        effort = self.recall.effort
        neighbours = search_structure(self.structure, queries, k, effort, allowed)
        # the probed cells, or the visited part of the graph, may hold fewer than k rows
        while (neighbours.rows[:, :wanted] < 0).any() and effort < len(self.vectors):
            effort *= 2
            neighbours = search_structure(self.structure, queries, k, effort, allowed)
        return neighbours

    def add(self, vectors: Vectors) -> "FaissIndex":
        """Return an index with `vectors` appended, built and tuned anew."""
        return FaissIndex.build(np.concatenate([self.vectors, vectors]))

    def remove(self, rows: NDArray[np.int64]) -> Index:
        """Return an index without `rows`, built anew: FAISS would not renumber the others."""
        return build_index(np.delete(self.vectors, rows, axis=0))

    def save(self, folder: Path) -> None:
        """Write the vectors, the structure as plain arrays and the measured recall."""
        np.save(folder / VECTORS, self.vectors, allow_pickle=False)
        save_structure(self.structure, folder / STRUCTURE)
        self.recall.save(folder)

    @classmethod
    def load(cls, artifact: Artifact) -> "FaissIndex":
        """Return a saved index; one without plain arrays is rebuilt."""
        vectors = load_vectors(artifact)
        recall = Recall.load_for(artifact, len(vectors))
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


def tune(vectors: Vectors, structure: Any, *, seed: int) -> Recall:
    """Double the effort until recall@1 on a sample of the rows is high enough; return both."""
    queries = np.ascontiguousarray(vectors[sample_rows(len(vectors), _SAMPLE, seed=seed)])
    # leave one out: the nearest neighbour of a row is the row itself, which any index finds
    truth = exact_search(vectors, queries, MEASURED).distances[:, 1:]
    effort = 1
    while True:
        distances = search_structure(structure, queries, MEASURED, effort, None).distances[:, 1:]
        # by distance, not by row: any of several rows at the same distance is correct
        hits = distances <= truth + 1e-4
        recall = Recall(float(hits[:, 0].mean()), float(hits.mean()), effort)
        if recall.at_1 >= WANTED_RECALL or effort >= len(vectors):
            return recall
        effort *= 2


def sample_rows(count: int, most: int, *, seed: int = 0) -> NDArray[np.int64]:
    """Draw at most `most` of `count` rows without replacement."""
    return np.random.default_rng(seed).choice(count, min(most, count), replace=False)


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
