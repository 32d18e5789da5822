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

from redraft.index import base
from redraft.index.base import VECTORS, WANTED_RECALL, ExactIndex, Index, Vectors, build_index
from redraft.index.faiss import (
    MAX_RERANK,
    MEASURED,
    SAMPLE,
    FaissIndex,
    Recall,
    sample_rows,
    search_structure,
)
from redraft.index.faiss_arrays import (
    BITS,
    STRUCTURE,
    add_codes,
    load_compressed,
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


class CompressedIndex(FaissIndex):
    """An IVF-PQ index (`structure`) over a file of vectors, with its measured recall."""

    def __init__(self, file: VectorFile, structure: Any, recall: Recall) -> None:
        super().__init__(file.vectors, structure, recall)
        self.file = file

    @classmethod
    def of_file(cls, file: VectorFile) -> "CompressedIndex":
        """Return an index of the file with a recall@10 of at least 99 % on a sample."""
        structure = _empty_structure(file)
        for part in file.parts():
            structure.add(part)
        return cls(file, structure, tune(file, structure))

    def take(self, rows: Ids) -> Vectors:
        """Return the vectors of `rows`."""
        return self.file.take(rows)

    def _search(
        self, queries: Vectors, k: int, effort: int, allowed: NDArray[np.bool_] | None
    ) -> Neighbours:
        # at least as many as in the measurement of recall
        count = min(max(self.recall.rerank * MEASURED, 4 * k), len(self.file))
        candidates = search_structure(self.structure, queries, count, effort, allowed)
        return exact_distances(self.file, queries, candidates.rows).nearest(k)

    def replace(self, rows: Ids, vectors: Vectors) -> Index:
        """Return an index without `rows` and with `vectors` appended; centroids stay as trained."""
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

    def _save_vectors(self, path: Path) -> None:
        self.file.save(path)

    @classmethod
    def load(cls, artifact: Artifact) -> "CompressedIndex":
        """Return a saved index; its vectors stay on disk."""
        file = VectorFile(artifact.path(VECTORS))
        recall = Recall.load(artifact, len(file))
        for part in file.parts():
            check_vectors(file.path, part)
        if STRUCTURE not in artifact.files:
            _LOG.info("%s: rebuilding its index; save the model to keep it", artifact.folder)
            return cls.of_file(file)
        path = artifact.path(STRUCTURE)
        return cls(file, load_compressed(path, len(file), file.width), recall)


def index_of_file(file: VectorFile) -> Index:
    """Return an exact index of few vectors, a compressed one of many."""
    if len(file) < base.EXACT_BELOW:
        return ExactIndex(file.vectors)
    return CompressedIndex.of_file(file)


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
    queries = file.take(sample_rows(len(file), SAMPLE))
    truth = file.nearest(queries, MEASURED)
    effort, rerank, before = 1, _MIN_RERANK, 0.0
    while True:
        candidates = search_structure(structure, queries, rerank * MEASURED, effort, None)
        neighbours = exact_distances(file, queries, candidates.rows).nearest(MEASURED)
        recall = Recall.measured(neighbours, truth, effort, rerank)
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
