"""Examples in a store as a retriever has them: rows of one moment, and changes not yet written.

What is added or removed is in memory until it is written, as one. Knows no SQL.
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import overload

import numpy as np
from numpy.typing import NDArray

from redraft.data.example import Example
from redraft.retrieval.examples import KeptExamples, Values, matches
from redraft.retrieval.index import Index, Vectors, build_index, exact_search
from redraft.retrieval.neighbours import Neighbours
from redraft.retrieval.postgres import MOST_EFFORT, PostgresStore
from redraft.retrieval.statements import Found, Ids

FEW = 1000
"""So few examples are compared one by one, however many others the store has."""


class StoredExamples(KeptExamples):
    """The examples of a store at a version, less those removed since and with those added."""

    def __init__(
        self, store: PostgresStore, version: int, base: Ids, ids: Ids, examples: Sequence[Example]
    ) -> None:
        self.store = store
        self.version = version
        self.base = base  # the ids of the store at the version, in order
        self.ids = ids  # those of them that the first rows have
        self._examples = examples

    @classmethod
    def read(cls, store: PostgresStore) -> "StoredExamples":
        """All examples that the store has now."""
        content = store.read({})
        examples = [content.examples[each] for each in content.ids.tolist()]
        return cls(store, content.version, content.ids, content.ids, examples)

    def refreshed(self) -> "StoredExamples":
        """What the store has now, less what was not written; itself if that is the same."""
        if not self.is_changed and self.store.version == self.version:
            return self
        known = dict(zip(self.ids.tolist(), self._examples, strict=False))
        content = self.store.read(known)
        known |= content.examples
        examples = [known[each] for each in content.ids.tolist()]
        return StoredExamples(self.store, content.version, content.ids, content.ids, examples)

    @property
    def is_changed(self) -> bool:
        """Whether there is something to write."""
        return len(self.ids) < max(len(self._examples), len(self.base))

    @property
    def added(self) -> range:
        """The rows that are not written yet."""
        return range(len(self.ids), len(self._examples))

    def write(self, vectors: Vectors | None) -> None:
        """Remove and add in the store, as one; the vectors are those of the added rows."""
        if self.is_changed:
            removed = np.setdiff1d(self.base, self.ids, assume_unique=True)
            self.store.change(removed, [self._examples[row] for row in self.added], vectors)

    @property
    def vector_index(self) -> Index:
        """The vectors of the store, searched there."""
        return StoredIndex(self.store, len(self.base), self.ids)

    def exchanged(self, rows: Sequence[int], added: Sequence[Example]) -> "StoredExamples":
        """Without the examples of these rows and with the given ones, in memory."""
        gone = set(rows)
        kept = [each for row, each in enumerate(self._examples) if row not in gone]
        ids = np.delete(self.ids, [row for row in rows if row < len(self.ids)])
        return StoredExamples(self.store, self.version, self.base, ids, [*kept, *added])

    def allowed(self, where: Values, without: Values) -> NDArray[np.bool_]:
        """Which rows a filter keeps: those that are stored by SQL, the others one by one."""
        stored = np.zeros(0, np.bool_)
        if len(self.ids):
            stored = np.isin(self.ids, self.store.matching(where, without))
        added = [self._examples[row] for row in self.added]
        return np.concatenate([stored, matches(added, where, without)])

    def __len__(self) -> int:
        return len(self._examples)

    @overload
    def __getitem__(self, row: int) -> Example: ...

    @overload
    def __getitem__(self, row: slice) -> Sequence[Example]: ...

    def __getitem__(self, row: int | slice) -> Example | Sequence[Example]:
        return self._examples[row]


class StoredIndex(Index):
    """Vectors of a store, by pgvector's graph; those that are not written yet, one by one."""

    def __init__(
        self, store: PostgresStore, size: int, ids: Ids, added: Vectors | None = None
    ) -> None:
        self.store = store
        self.size = size  # of the store, of which the ids may be a part
        self.ids = ids
        self.added = np.zeros((0, store.width), np.float32) if added is None else added

    @property
    def width(self) -> int:
        """How long each row is."""
        return self.store.width

    @cached_property
    def vectors(self) -> Vectors:  # type: ignore[override]
        """All vectors, read from the store."""
        return np.concatenate([self.store.vectors(self.ids), self.added])

    def take(self, rows: NDArray[np.int64]) -> Vectors:
        """The vectors of these rows, and no others, read from the store."""
        return self._join(rows, self.store.vectors(self._ids_of(rows)))

    def cosines(self, rows: NDArray[np.int64], query: Vectors) -> Vectors:
        """How alike these rows are to one query; what others have removed is like nothing."""
        ids = self._ids_of(rows)
        held, gone = self.store.vectors_by_id(ids), [0.0] * self.width
        stored = np.array([held.get(each, gone) for each in ids.tolist()], np.float32)
        return self._join(rows, stored.reshape(len(ids), self.width)) @ query

    def _ids_of(self, rows: NDArray[np.int64]) -> Ids:
        """The ids of those of the rows that are stored."""
        return self.ids[rows[rows < len(self.ids)]]

    def _join(self, rows: NDArray[np.int64], stored: Vectors) -> Vectors:
        """Vectors of rows, given those that are stored."""
        is_stored = rows < len(self.ids)
        joined = np.empty((len(rows), self.width), np.float32)
        joined[is_stored] = stored
        joined[~is_stored] = self.added[rows[~is_stored] - len(self.ids)]
        return joined

    def search(
        self, queries: Vectors, k: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> Neighbours:
        """The k nearest rows of each query; a filter that keeps few is searched exactly."""
        stored = len(self.ids)
        rest = None if allowed is None else allowed[stored:]
        near = self._search_store(queries, k, None if allowed is None else allowed[:stored])
        added = exact_search(self.added, queries, k, allowed=rest)
        rows = np.concatenate([near.rows, added.rows + stored], axis=1)
        distances = np.concatenate([near.distances, added.distances], axis=1)
        return Neighbours(rows, distances).nearest(k)

    def _search_store(
        self, queries: Vectors, k: int, allowed: NDArray[np.bool_] | None
    ) -> Neighbours:
        """The nearest of the stored rows: by the graph, wider where the filter took too many."""
        ids = self.ids if allowed is None else self.ids[allowed]
        wanted = min(k, len(ids))
        found = Neighbours(
            np.full((len(queries), wanted), -1, np.int64),
            np.full((len(queries), wanted), np.inf, np.float32),
        )
        pending = np.arange(len(queries) if wanted else 0)
        width = wanted + wanted * (self.size - len(ids)) // max(1, len(ids))
        is_broad = len(ids) >= max(FEW, self.size // 10)
        while is_broad and len(pending) and self.store.effort_for(width) <= MOST_EFFORT:
            near = self.store.nearest(queries[pending], width)
            pending = pending[~self._fill(found, pending, near, allowed)]
            width *= 4
        if len(pending):
            self._fill(found, pending, self.store.nearest_among(ids, queries[pending], k), allowed)
        return found

    def _fill(
        self,
        found: Neighbours,
        at: NDArray[np.int64],
        near: Found,
        allowed: NDArray[np.bool_] | None,
    ) -> NDArray[np.bool_]:
        """Put what is allowed of the nearest into their places; says where that was enough."""
        wanted = found.rows.shape[1]
        enough = np.zeros(len(at), np.bool_)
        for place, query in enumerate(at):
            ids, distances = near[place]
            rows = np.searchsorted(self.ids, ids).clip(max=len(self.ids) - 1)
            # others may have added to the store since
            is_kept = self.ids[rows] == ids
            kept = np.flatnonzero(is_kept if allowed is None else is_kept & allowed[rows])[:wanted]
            found.rows[query, : len(kept)] = rows[kept]
            found.distances[query, : len(kept)] = distances[kept]
            enough[place] = len(kept) == wanted
        return enough

    def add(self, vectors: Vectors) -> "StoredIndex":
        """The index with these vectors after its own, in memory."""
        return self.replace(np.zeros(0, np.int64), vectors)

    def remove(self, rows: NDArray[np.int64]) -> "StoredIndex":
        """The index without these rows; the store keeps them until it is told."""
        return self.replace(rows, np.zeros((0, self.width), np.float32))

    def replace(self, rows: NDArray[np.int64], vectors: Vectors) -> "StoredIndex":
        """The index without these rows and with the given vectors after the rest, in memory."""
        stored = len(self.ids)
        ids = np.delete(self.ids, rows[rows < stored])
        added = np.delete(self.added, rows[rows >= stored] - stored, axis=0)
        return StoredIndex(self.store, self.size, ids, np.concatenate([added, vectors]))

    def save(self, folder: Path) -> None:
        """Write the vectors as an index that needs no store."""
        build_index(self.vectors).save(folder)
