"""Nearest neighbours among many vectors in a file: found in few bytes each, compared again exactly.

FAISS holds every vector by the number of its cell and of the nearest known piece of each of its
parts (IVF and PQ). What is nearest by these is read from the file and put in order.
"""

import json
import logging
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redraft.artifact import Artifact
from redraft.data.filed import are_few, remove_with, removed_on_error, scratch
from redraft.retrieval.index import (
    EXACT_BELOW,
    MEASURED,
    WANTED_RECALL,
    ExactIndex,
    Index,
    Recall,
    Vectors,
    build_index,
    exact_search,
    load_index,
    sample_rows,
    search_structure,
)
from redraft.retrieval.neighbours import Neighbours
from redraft.retrieval.vector_file import PART, VECTORS, VectorFile

Ids = NDArray[np.int64]

_TRAINED = 64
"""Vectors that each cell and each piece is learned from."""
_COMPARED, _MOST_COMPARED = 8, 512
"""How many are compared again for each of the ten nearest, at first and at most."""
_WORTH = 0.002
"""If doubling the effort finds no more than this, what it found is not looked at closely enough."""
_FEW = 0.01
"""A change of such a share leaves the recall as it was measured."""

_LOG = logging.getLogger(__name__)


class CompressedIndex(Index):
    """Compressed cells of FAISS over a file; its recall was measured on these very vectors."""

    def __init__(self, file: VectorFile, structure: Any, recall: Recall) -> None:
        self.file = file
        self.vectors = file.vectors
        self.structure = structure
        self.recall = recall

    @classmethod
    def build(cls, file: VectorFile) -> "CompressedIndex":
        """An index of these vectors that finds at least 99 % of the ten nearest."""
        structure = _empty_structure(file)
        for part in file.parts():
            structure.add(part)
        return cls(file, structure, tune(file, structure))

    def take(self, rows: Ids) -> Vectors:
        """The vectors of these rows."""
        return self.file.take(rows)

    def search(
        self, queries: Vectors, k: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> Neighbours:
        """The k nearest rows of each query; a filter that keeps few is searched exactly."""
        if allowed is not None and allowed.sum() < max(EXACT_BELOW, len(allowed) // 10):
            rows = np.flatnonzero(allowed)
            found = exact_search(self.take(rows), queries, k)
            return Neighbours(rows[found.rows], found.distances)
        wanted = min(k, len(self.file) if allowed is None else int(allowed.sum()))
        effort = self.recall.effort
        found = self._search(queries, k, effort, allowed)
        while (found.rows[:, :wanted] < 0).any() and effort < self.structure.nlist:
            effort *= 2
            found = self._search(queries, k, effort, allowed)
        return found

    def _search(
        self, queries: Vectors, k: int, effort: int, allowed: NDArray[np.bool_] | None
    ) -> Neighbours:
        # no fewer than it was measured with
        compared = min(max(self.recall.compared * MEASURED, 4 * k), len(self.file))
        near = search_structure(self.structure, queries, compared, effort, allowed)
        return compare(self.file, queries, near.rows).nearest(k)

    def add(self, vectors: Vectors) -> Index:
        """The index with these vectors after its own; nothing is learned anew."""
        return self.replace(np.zeros(0, np.int64), vectors)

    def remove(self, rows: Ids) -> Index:
        """The index without these rows."""
        return self.replace(rows, np.zeros((0, self.width), np.float32))

    def replace(self, rows: Ids, vectors: Vectors) -> Index:
        """The index without these rows and with the given vectors after the rest."""
        kept = np.ones(len(self.file), np.bool_)
        kept[rows] = False
        count = int(kept.sum()) + len(vectors)
        if are_few(count):
            return build_index(np.concatenate([self.take(np.flatnonzero(kept)), vectors]))
        structure = _kept_structure(self.structure, kept)
        structure.add(np.ascontiguousarray(vectors))
        masks = np.split(kept, range(PART, len(kept), PART))
        parts = (part[mask] for part, mask in zip(self.file.parts(), masks, strict=True))
        folder = scratch(self.file.path.parent)
        with removed_on_error(folder):
            file = VectorFile.write(folder, chain(parts, [vectors]), count=count)
        remove_with(file, folder)
        is_little = len(rows) + len(vectors) < _FEW * count
        recall = self.recall if is_little else tune(file, structure)
        return CompressedIndex(file, structure, recall)

    def save(self, folder: Path) -> None:
        """Write the vectors, FAISS's own file and the measured recall."""
        import faiss

        self.file.save(folder / VECTORS)
        faiss.write_index(self.structure, str(folder / "index.faiss"))
        (folder / "recall.json").write_text(json.dumps(asdict(self.recall)), encoding="utf-8")

    @classmethod
    def load(cls, artifact: Artifact) -> "CompressedIndex":
        """The index that was saved, its vectors left in their file."""
        import faiss

        structure = faiss.read_index(str(artifact.path("index.faiss")))
        recall = Recall(**artifact.json("recall.json"))
        return cls(VectorFile(artifact.path(VECTORS)), structure, recall)


def index_of_file(file: VectorFile) -> Index:
    """An index fit for the vectors of a file."""
    if len(file) < EXACT_BELOW:
        return ExactIndex(file.vectors)
    return CompressedIndex.build(file)


def open_index(artifact: Artifact) -> Index:
    """The index that was saved, of whichever kind."""
    if "recall.json" in artifact.files and artifact.json("recall.json").get("compared"):
        return CompressedIndex.load(artifact)
    return load_index(artifact)


def _empty_structure(file: VectorFile) -> Any:
    """Cells and pieces, learned from some of the vectors, that hold none yet."""
    import faiss

    cells = int(2 ** np.round(np.log2(np.sqrt(len(file)))))
    width = file.width
    pieces = max(each for each in range(1, max(1, width // 8) + 1) if width % each == 0)
    structure: Any = faiss.IndexIVFPQ(faiss.IndexFlatL2(width), width, cells, pieces, 8)
    for learning in (structure.cp, structure.pq.cp):
        learning.niter = 10
        learning.max_points_per_centroid = _TRAINED
        learning.min_points_per_centroid = 1  # few are enough, and no warning is printed
    structure.train(file.take(sample_rows(len(file), _TRAINED * max(cells, 256))))
    return structure


def _kept_structure(structure: Any, kept: NDArray[np.bool_]) -> Any:
    """A copy without some rows, the later ones moving up."""
    import faiss

    copy: Any = faiss.clone_index(structure)
    if kept.all():
        return copy
    moved = np.cumsum(kept) - 1
    lists: Any = faiss.ArrayInvertedLists(copy.nlist, copy.code_size)
    for cell in range(copy.nlist):
        size = copy.invlists.list_size(cell)
        if size == 0:
            continue
        ids = faiss.rev_swig_ptr(copy.invlists.get_ids(cell), size)
        codes = faiss.rev_swig_ptr(copy.invlists.get_codes(cell), size * copy.code_size)
        stays = kept[ids]
        left = np.ascontiguousarray(codes.reshape(size, -1)[stays])
        numbers = np.ascontiguousarray(moved[ids[stays]], np.int64)
        lists.add_entries(cell, len(numbers), faiss.swig_ptr(numbers), faiss.swig_ptr(left))
    copy.replace_invlists(lists, True)
    lists.this.disown()  # it belongs to the copy from now on
    copy.ntotal = int(kept.sum())
    return copy


def compare(file: VectorFile, queries: Vectors, rows: Ids) -> Neighbours:
    """The exact distances of rows to each query: (B, K); row -1 is infinitely far."""
    distances = np.full(rows.shape, np.inf, np.float32)
    for at, (query, near) in enumerate(zip(queries, rows, strict=True)):
        is_found = near >= 0
        distances[at, is_found] = (2 - 2 * (file.take(near[is_found]) @ query)).clip(min=0)
    return Neighbours(rows, distances)


def tune(file: VectorFile, structure: Any) -> Recall:
    """Raise the effort until nearly all of the ten nearest of a sample of the rows are found."""
    queries = file.take(sample_rows(len(file), 256))
    # the nearest to a row is the row itself, which any index finds: the next ten are asked for
    truth = file.nearest(queries, MEASURED).distances[:, 1:]
    effort, compared, before = 1, _COMPARED, 0.0
    while True:
        near = search_structure(structure, queries, compared * MEASURED, effort, None)
        found = compare(file, queries, near.rows).nearest(MEASURED).distances[:, 1:]
        # by distance and not by row: of several at the same distance any one will do
        hits = found <= truth + 1e-4
        recall = Recall(float(hits[:, 0].mean()), float(hits.mean()), effort, compared)
        _LOG.info("%d vectors in few bytes each: %s", len(file), recall)
        is_most = effort >= structure.nlist and compared >= _MOST_COMPARED
        if recall.at_10 >= WANTED_RECALL or is_most:
            return recall
        is_spent = effort >= structure.nlist or recall.at_10 - before < _WORTH
        if is_spent and compared < _MOST_COMPARED:
            # what was reached with less effort may be enough now
            effort, compared, before = max(1, effort // 8), 4 * compared, 0.0
        else:
            effort, before = 2 * effort, recall.at_10
