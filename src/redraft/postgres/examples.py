"""The examples and the vector index of a store at one version, with pending changes.

Added and removed examples stay in memory until `write` commits them in one transaction. Knows no
SQL.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from redraft.index.base import Index, Vectors, build_index, exact_search
from redraft.index.neighbours import Neighbours
from redraft.postgres.sql import Ids, NearestIds
from redraft.postgres.store import MAX_EFFORT, PostgresStore
from redraft.storage.examples import InMemoryExamples, Values, matches
from redraft.types import Example

EXACT_BELOW = 1000
"""Below this many allowed examples search is exact, whatever the size of the store."""


class PostgresExamples(InMemoryExamples):
    """The examples of a store at a version, without removed ones and with added ones."""

    def __init__(
        self, store: PostgresStore, version: int, base: Ids, ids: Ids, examples: Sequence[Example]
    ) -> None:
        super().__init__(examples)
        self.store = store
        self.version = version
        self.base = base  # the ids of the store at the version, in order
        self.ids = ids  # the ids of the first rows: `base` without the removed ones

    @classmethod
    def read(cls, store: PostgresStore, cached: Mapping[int, Example] | None = None) -> Self:
        """Return all examples of the store; those with an id in `cached` are not read."""
        cached = cached or {}
        content = store.read(cached)
        by_id = {**cached, **content.examples}
        examples = [by_id[i] for i in content.ids.tolist()]
        return cls(store, content.version, content.ids, content.ids, examples)

    def refreshed(self) -> Self:
        """Return the current examples of the store, without pending changes; self if unchanged."""
        if not self.is_changed and self.store.version == self.version:
            return self
        return self.read(self.store, dict(zip(self.ids.tolist(), self._examples, strict=False)))

    @property
    def store_name(self) -> str:
        """The name of the model in the store."""
        return self.store.model

    def wait(self, seconds: float) -> None:
        """Wait at most `seconds` for another process to change the store."""
        self.store.wait(seconds)

    @property
    def is_changed(self) -> bool:
        """True if there are pending changes."""
        return len(self.ids) < max(len(self._examples), len(self.base))

    @property
    def added(self) -> range:
        """The rows of examples that are not written yet."""
        return range(len(self.ids), len(self._examples))

    def write(self, vectors: Vectors | None) -> None:
        """Commit the pending changes in one transaction; `vectors` are those of the added rows."""
        if self.is_changed:
            removed = np.setdiff1d(self.base, self.ids, assume_unique=True)
            self.store.change(removed, [self._examples[row] for row in self.added], vectors)

    @property
    def vector_index(self) -> Index:
        """The index of the store's vectors, searched by pgvector."""
        return PostgresIndex(self.store, len(self.base), self.ids)

    def replaced(self, rows: Sequence[int], added: Sequence[Example]) -> "PostgresExamples":
        """Return the examples without `rows` and with `added` appended, as pending changes."""
        removed = set(rows)
        remaining = [example for row, example in enumerate(self._examples) if row not in removed]
        ids = np.delete(self.ids, [row for row in rows if row < len(self.ids)])
        return PostgresExamples(self.store, self.version, self.base, ids, [*remaining, *added])

    def allowed(self, where: Values, without: Values) -> NDArray[np.bool_]:
        """Return a mask of the rows that a filter selects: stored ones by SQL, added ones here."""
        stored = np.zeros(0, np.bool_)
        if len(self.ids):
            stored = np.isin(self.ids, self.store.matching(where, without))
        added = [self._examples[row] for row in self.added]
        return np.concatenate([stored, matches(added, where, without)])


class PostgresIndex(Index):
    """The vectors of a store, searched by pgvector's HNSW; pending ones by exact search."""

    def __init__(
        self, store: PostgresStore, size: int, ids: Ids, added: Vectors | None = None
    ) -> None:
        self.store = store
        self.size = size  # of the store; `ids` may be a part of it
        self.ids = ids
        self.added = np.zeros((0, store.width), np.float32) if added is None else added

    @property
    def width(self) -> int:
        """The dimension of the vectors."""
        return self.store.width

    @cached_property
    def vectors(self) -> Vectors:  # type: ignore[override]
        """All vectors, read from the store."""
        return np.concatenate([self.store.vectors(self.ids), self.added])

    def take(self, rows: NDArray[np.int64]) -> Vectors:
        """Read the vectors of `rows` from the store."""
        is_stored = rows < len(self.ids)
        taken = np.empty((len(rows), self.width), np.float32)
        taken[is_stored] = self.store.vectors(self.ids[rows[is_stored]])
        taken[~is_stored] = self.added[rows[~is_stored] - len(self.ids)]
        return taken

    def search(
        self, queries: Vectors, k: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> Neighbours:
        """Return the k nearest rows of each query; exact if a filter allows only few rows."""
        stored = len(self.ids)
        added_mask = None if allowed is None else allowed[stored:]
        near = self._search_store(queries, k, None if allowed is None else allowed[:stored])
        added = exact_search(self.added, queries, k, allowed=added_mask)
        return near.merge(added, k, first=stored)

    def _search_store(
        self, queries: Vectors, k: int, allowed: NDArray[np.bool_] | None
    ) -> Neighbours:
        """Return the nearest stored rows, by HNSW with more candidates for narrow filters."""
        ids = self.ids if allowed is None else self.ids[allowed]
        wanted = min(k, len(ids))
        neighbours = Neighbours(
            np.full((len(queries), wanted), -1, np.int64),
            np.full((len(queries), wanted), np.inf, np.float32),
        )
        pending = np.arange(len(queries) if wanted else 0)
        # in proportion to the share of allowed rows
        pool = wanted + wanted * (self.size - len(ids)) // max(1, len(ids))
        is_broad = len(ids) >= max(EXACT_BELOW, self.size // 10)
        while is_broad and len(pending) and self.store.effort_for(pool) <= MAX_EFFORT:
            near = self.store.nearest(queries[pending], pool)
            pending = pending[~self._fill(neighbours, pending, near, allowed)]
            pool *= 4
        if len(pending):
            near = self.store.nearest_among(ids, queries[pending], k)
            self._fill(neighbours, pending, near, allowed)
        return neighbours

    def _fill(
        self,
        neighbours: Neighbours,
        queries: NDArray[np.int64],
        near: NearestIds,
        allowed: NDArray[np.bool_] | None,
    ) -> NDArray[np.bool_]:
        """Copy the allowed ids of `near` to the rows of `queries` in `neighbours`.

        Returns a mask of the queries that have as many neighbours as wanted.
        """
        wanted = neighbours.rows.shape[1]
        is_full = np.zeros(len(queries), np.bool_)
        for i, query in enumerate(queries):
            ids, distances = near[i]
            rows = np.searchsorted(self.ids, ids).clip(max=len(self.ids) - 1)
            # other processes may have added to the store since
            mask = self.ids[rows] == ids
            chosen = np.flatnonzero(mask if allowed is None else mask & allowed[rows])[:wanted]
            neighbours.rows[query, : len(chosen)] = rows[chosen]
            neighbours.distances[query, : len(chosen)] = distances[chosen]
            is_full[i] = len(chosen) == wanted
        return is_full

    def replace(self, rows: NDArray[np.int64], vectors: Vectors) -> "PostgresIndex":
        """Return an index without `rows` and with `vectors` appended; the store is unchanged."""
        stored = len(self.ids)
        ids = np.delete(self.ids, rows[rows < stored])
        added = np.delete(self.added, rows[rows >= stored] - stored, axis=0)
        return PostgresIndex(self.store, self.size, ids, np.concatenate([added, vectors]))

    def save(self, folder: Path) -> None:
        """Write the vectors as an index that needs no store."""
        build_index(self.vectors).save(folder)
