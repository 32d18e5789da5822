"""IVF-PQ: product quantisation in memory, re-ranking with exact vectors from disk.

FAISS finds candidates by their codes; their vectors are read from the file and re-ranked by exact
distance.
"""

import logging
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redraft.index.base import (
    EXACT_BELOW,
    RECALL,
    VECTORS,
    WANTED_RECALL,
    ExactIndex,
    Index,
    Vectors,
    build_index,
    exact_search,
    load_index,
)
from redraft.index.faiss import (
    MAX_RERANK,
    MEASURED,
    Recall,
    sample_rows,
    search_structure,
)
from redraft.index.faiss_arrays import (
    BITS,
    STRUCTURE,
    add_codes,
    load_compressed,
    save_structure,
    take_codes,
)
from redraft.index.neighbours import Neighbours
from redraft.index.vector_file import PART, VectorFile
from redraft.storage.artifact import Artifact
from redraft.storage.checks import check_vectors
from redraft.storage.disk import fits_in_memory, remove_with, removed_on_error, scratch

Ids = NDArray[np.int64]

_TRAINING_VECTORS = 64
"""Training vectors per centroid."""
_MIN_RERANK = 8
"""Candidates per neighbour that are re-ranked at first."""
_MIN_GAIN = 0.002
"""If doubling the effort raises the recall by less, more candidates are re-ranked instead."""
_SMALL_CHANGE = 0.01
"""Up to this share of changed vectors the recall is not measured again."""

_LOG = logging.getLogger(__name__)


class CompressedIndex(Index):
    """An IVF-PQ index (`structure`) over a file of vectors, with its measured recall."""

    def __init__(self, file: VectorFile, structure: Any, recall: Recall) -> None:
        self.file = file
        self.vectors = file.vectors
        self.structure = structure
        self.recall = recall

    @classmethod
    def build(cls, file: VectorFile) -> "CompressedIndex":
        """Return an index of the file with a recall@10 of at least 99 % on a sample."""
        structure = _empty_structure(file)
        for part in file.parts():
            structure.add(part)
        return cls(file, structure, tune(file, structure))

    def take(self, rows: Ids) -> Vectors:
        """Return the vectors of `rows`."""
        return self.file.take(rows)

    def search(
        self, queries: Vectors, k: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> Neighbours:
        """Return the k nearest rows of each query; exact if a filter allows only few rows."""
        if allowed is not None and allowed.sum() < max(EXACT_BELOW, len(allowed) // 10):
            rows = np.flatnonzero(allowed)
            neighbours = exact_search(self.take(rows), queries, k)
            return Neighbours(rows[neighbours.rows], neighbours.distances)
        wanted = min(k, len(self.file) if allowed is None else int(allowed.sum()))
        effort = self.recall.effort
        neighbours = self._search(queries, k, effort, allowed)
        while (neighbours.rows[:, :wanted] < 0).any() and effort < self.structure.nlist:
            effort *= 2
            neighbours = self._search(queries, k, effort, allowed)
        return neighbours

    def _search(
        self, queries: Vectors, k: int, effort: int, allowed: NDArray[np.bool_] | None
    ) -> Neighbours:
        # at least as many as in the measurement of recall
        count = min(max(self.recall.rerank * MEASURED, 4 * k), len(self.file))
        candidates = search_structure(self.structure, queries, count, effort, allowed)
        return exact_distances(self.file, queries, candidates.rows).nearest(k)

    def add(self, vectors: Vectors) -> Index:
        """Return an index with `vectors` appended; the centroids stay as trained."""
        return self.replace(np.zeros(0, np.int64), vectors)

    def remove(self, rows: Ids) -> Index:
        """Return an index without `rows`."""
        return self.replace(rows, np.zeros((0, self.width), np.float32))

    def replace(self, rows: Ids, vectors: Vectors) -> Index:
        """Return an index without `rows` and with `vectors` appended."""
        is_kept = np.ones(len(self.file), np.bool_)
        is_kept[rows] = False
        count = int(is_kept.sum()) + len(vectors)
        if fits_in_memory(count):
            return build_index(np.concatenate([self.take(np.flatnonzero(is_kept)), vectors]))
        structure = _subset(self.structure, is_kept)
        structure.add(np.ascontiguousarray(vectors))
        masks = np.split(is_kept, range(PART, len(is_kept), PART))
        parts = (part[mask] for part, mask in zip(self.file.parts(), masks, strict=True))
        folder = scratch(self.file.path.parent)
        with removed_on_error(folder):
            file = VectorFile.write(folder, chain(parts, [vectors]), count=count)
        remove_with(file, folder)
        is_small = len(rows) + len(vectors) < _SMALL_CHANGE * count
        recall = self.recall if is_small else tune(file, structure)
        return CompressedIndex(file, structure, recall)

    def save(self, folder: Path) -> None:
        """Write the vectors, the structure as plain arrays and the measured recall."""
        self.file.save(folder / VECTORS)
        save_structure(self.structure, folder / STRUCTURE)
        self.recall.save(folder)

    @classmethod
    def load(cls, artifact: Artifact) -> "CompressedIndex":
        """Return a saved index; its vectors stay on disk."""
        file = VectorFile(artifact.path(VECTORS))
        recall = Recall.load_for(artifact, len(file))
        for part in file.parts():
            check_vectors(file.path, part)
        if STRUCTURE not in artifact.files:
            _LOG.info("%s: rebuilding its index; save the model to keep it", artifact.folder)
            return cls.build(file)
        path = artifact.path(STRUCTURE)
        return cls(file, load_compressed(path, len(file), file.width), recall)


def index_of_file(file: VectorFile) -> Index:
    """Return an exact index of few vectors, a compressed one of many."""
    if len(file) < EXACT_BELOW:
        return ExactIndex(file.vectors)
    return CompressedIndex.build(file)


def open_index(artifact: Artifact) -> Index:
    """Return a saved index of any kind."""
    if RECALL in artifact.files and Recall.load(artifact).rerank:
        return CompressedIndex.load(artifact)
    return load_index(artifact)


def _empty_structure(file: VectorFile) -> Any:
    """Train an IVF-PQ index on a sample of the vectors and return it empty."""
    import faiss

    cells = int(2 ** np.round(np.log2(np.sqrt(len(file)))))
    width = file.width
    # one byte per 8 dimensions or more
    subspaces = max(n for n in range(1, max(1, width // 8) + 1) if width % n == 0)
    structure: Any = faiss.IndexIVFPQ(faiss.IndexFlatL2(width), width, cells, subspaces, BITS)
    for clustering in (structure.cp, structure.pq.cp):
        clustering.niter = 10
        clustering.max_points_per_centroid = _TRAINING_VECTORS
        clustering.min_points_per_centroid = 1  # FAISS prints a warning below this number
    structure.train(file.take(sample_rows(len(file), _TRAINING_VECTORS * max(cells, 256))))
    return structure


def _subset(structure: Any, is_kept: NDArray[np.bool_]) -> Any:
    """Return a copy with the rows of the mask `is_kept`, renumbered."""
    import faiss

    copy: Any = faiss.clone_index(structure)
    if is_kept.all():
        return copy
    cells, codes = take_codes(structure)
    copy.reset()  # removes the codes; the centroids stay
    count = int(is_kept.sum())
    add_codes(copy, cells[is_kept], np.arange(count), codes[is_kept])
    return copy


def exact_distances(file: VectorFile, queries: Vectors, rows: Ids) -> Neighbours:
    """Return the exact distances of candidate rows (B, K) to each query; infinite for row -1."""
    distances = np.full(rows.shape, np.inf, np.float32)
    for i, (query, candidates) in enumerate(zip(queries, rows, strict=True)):
        is_row = candidates >= 0
        distances[i, is_row] = (2 - 2 * (file.take(candidates[is_row]) @ query)).clip(min=0)
    return Neighbours(rows, distances)


def tune(file: VectorFile, structure: Any) -> Recall:
    """Raise effort and rerank until recall@10 on a sample of the rows is high enough."""
    queries = file.take(sample_rows(len(file), 256))
    # leave one out: the nearest neighbour of a row is the row itself, which any index finds
    truth = file.nearest(queries, MEASURED).distances[:, 1:]
    effort, rerank, before = 1, _MIN_RERANK, 0.0
    while True:
        candidates = search_structure(structure, queries, rerank * MEASURED, effort, None)
        neighbours = exact_distances(file, queries, candidates.rows).nearest(MEASURED)
        # by distance, not by row: any of several rows at the same distance is correct
        hits = neighbours.distances[:, 1:] <= truth + 1e-4
        recall = Recall(float(hits[:, 0].mean()), float(hits.mean()), effort, rerank)
        _LOG.info("IVF-PQ index of %d vectors: %s", len(file), recall)
        is_exhausted = effort >= structure.nlist and rerank >= MAX_RERANK
        if recall.at_10 >= WANTED_RECALL or is_exhausted:
            return recall
        is_saturated = effort >= structure.nlist or recall.at_10 - before < _MIN_GAIN
        if is_saturated and rerank < MAX_RERANK:
            # with more candidates a lower effort may be enough
            effort, rerank, before = max(1, effort // 8), 4 * rerank, 0.0
        else:
            effort, before = 2 * effort, recall.at_10
