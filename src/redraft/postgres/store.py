"""The examples and vectors of one model in PostgreSQL, in a separate schema.

Every change is one transaction that increments the version, so readers can see cheaply whether
anything is new. Knows ids, not rows.
"""

import logging
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from redraft.errors import PairsError, StoreError
from redraft.index.base import WANTED_RECALL, Vectors, exact_search
from redraft.postgres.connection import Address, Session
from redraft.postgres.sql import Ids, NearestIds, State, Statements
from redraft.types import Example

FORMAT = 1
"""Version of the table layout; stores of other versions are refused."""

EFFORT = 80
"""Minimum hnsw.ef_search: twice pgvector's default, which may pass a small sample by chance."""

MAX_EFFORT = 1000
"""The largest hnsw.ef_search that pgvector accepts."""

_SAMPLE = 128
_MEASURED = 10
"""Number of neighbours that recall is measured with."""

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Content:
    """The ids of a store at a version, and the requested examples."""

    version: int
    ids: Ids
    examples: dict[int, Example]


class PostgresStore:
    """The schema of one model; `effort` is hnsw.ef_search."""

    def __init__(self, url: str, model: str) -> None:
        self.model = model
        self.address = Address(url)
        self.width = 0
        self.effort = EFFORT
        self._sql = Statements(schema_of(model))
        self._session = Session(self.address)
        self._listener = Session(self.address)
        self._listens: Any = None

    @classmethod
    def open(cls, url: str, model: str) -> "PostgresStore":
        """Open the store of a model; it must exist and have the right format."""
        store = cls(url, model)
        state = store._session.run(store._sql.state)
        if state is None:
            raise StoreError(
                f"{store.address}: holds no examples of this model (no schema "
                f"{schema_of(model)}); name the database that it was fitted with"
            )
        if state.format != FORMAT:
            raise StoreError(
                f"{store.address}: store format {state.format}, this redraft reads {FORMAT}; "
                "use the redraft that it was fitted with, or fit again"
            )
        if state.model != model:
            raise StoreError(
                f"{store.address}: schema {schema_of(model)} holds the examples of another model; "
                "name the database that this one was fitted with"
            )
        if not state.is_claimed:  # its creator was killed just after writing the model
            store._session.run(store._sql.claim)
        store.width, store.effort = state.width, state.effort
        return store

    @property
    def version(self) -> int:
        """The number of changes so far."""
        return int(self._session.run(self._sql.version))

    def read(self, cached: Mapping[int, Example]) -> Content:
        """Read all ids in order, and the examples that are not in `cached`, in one snapshot."""

        def read(connection: Any) -> Content:
            with connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                version = self._sql.version(connection)
                ids = self._sql.ids(connection)
                new = [i for i in ids.tolist() if i not in cached] if cached else None
                rows = self._sql.examples(connection, new)
                return Content(version, ids, {i: Example.from_json(row) for i, row in rows})

        return self._session.run(read)

    def matching(self, where: Mapping[str, Any], without: Mapping[str, Any]) -> Ids:
        """Return the ids of the examples whose meta has all of `where`, not all of `without`."""
        return self._session.run(self._sql.matching, where, without)

    def effort_for(self, k: int) -> int:
        """Return the ef_search for k neighbours, in proportion to the measured one for ten."""
        return max(self.effort, k * self.effort // _MEASURED, k)

    def nearest(self, queries: Vectors, k: int) -> NearestIds:
        """Return at most k nearest examples per query by HNSW."""
        effort = min(MAX_EFFORT, self.effort_for(k))
        return self._session.run(self._sql.nearest, queries, k, effort)

    def nearest_among(self, ids: Ids, queries: Vectors, k: int) -> NearestIds:
        """Return the k nearest of the examples with these ids per query, by exact search."""
        return self._session.run(self._sql.nearest_among, ids.tolist(), queries, k)

    def vectors(self, ids: Ids) -> Vectors:
        """Return the vectors (N, D) of these ids; raise a StoreError if any was deleted."""
        by_id = self._session.run(self._sql.vectors, ids.tolist())
        if len(by_id) < len(ids):
            raise StoreError(f"{self.address}: changed during the read; try again")
        rows = [by_id[i] for i in ids.tolist()]
        return np.array(rows, np.float32).reshape(len(ids), self.width)

    def change(self, removed: Ids, added: Sequence[Example], vectors: Vectors | None) -> None:
        """Remove and add examples in one transaction."""
        with self.address.connected() as connection, connection.transaction():
            if not self._sql.change(connection, removed.tolist(), added, vectors):
                raise PairsError("that would remove every example; at least one must stay")

    def wait(self, seconds: float) -> bool:
        """Wait at most `seconds` for a change; return True if there may have been one."""

        def listen(connection: Any) -> bool:
            if connection is not self._listens:
                self._sql.listen(connection)
                self._listens = connection
                return True  # there may have been changes before
            return bool(list(connection.notifies(timeout=seconds, stop_after=1)))

        return self._listener.run(listen)

    def close(self) -> None:
        """Close the connections."""
        self._session.close()
        self._listener.close()

    def measure(self, vectors: Vectors) -> float:
        """Double ef_search until recall@10 is at least 99 %; store it and return the recall."""
        queries = _perturbed(vectors)
        truth = exact_search(vectors, queries, _MEASURED).distances
        # for small tables the planner may prefer a full sort to the HNSW index
        self._session.run(lambda connection: connection.execute("SET enable_sort = off"))
        while True:
            near = self.nearest(queries, _MEASURED)
            # by distance, not by id: any of several at the same distance is correct
            hits = sum(
                int((distances <= limits[: len(distances)] + 1e-4).sum())
                for (_, distances), limits in zip(near, truth, strict=True)
            )
            recall = hits / truth.size
            if recall >= WANTED_RECALL or self.effort >= MAX_EFFORT:
                break
            self.effort = min(MAX_EFFORT, 2 * self.effort)
        self._session.run(lambda connection: connection.execute("RESET enable_sort"))
        self.effort = min(MAX_EFFORT, 2 * self.effort)  # a margin for queries further away
        with self.address.connected() as connection:
            self._sql.set_effort(connection, self.effort)
        return recall


def schema_of(model: str) -> str:
    """Return the name of a model's schema."""
    return f"redraft_{model}"


def _perturbed(vectors: Vectors) -> Vectors:
    """Return random vectors, each moved as far as its nearest neighbour is away.

    HNSW finds indexed vectors more easily than unseen queries, which would bias the recall.
    """
    generator = np.random.default_rng(0)
    rows = generator.choice(len(vectors), min(_SAMPLE, len(vectors)), replace=False)
    sample = np.asarray(vectors[rows])
    direction = generator.standard_normal(sample.shape, np.float32)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    distance = np.sqrt(exact_search(vectors, sample, 2).distances[:, -1:])  # (B, 1)
    moved = sample + distance * direction
    return np.asarray(moved / np.linalg.norm(moved, axis=1, keepdims=True), np.float32)


@contextmanager
def created(
    url: str, examples: Sequence[Example], vectors: Vectors | None
) -> Iterator[PostgresStore]:
    """Create a store of `examples`; the block must write the model that uses it.

    After an error or a kill, the schema is dropped when a later store is created.
    """
    model = secrets.token_hex(8)
    store = PostgresStore(url, model)
    store.width = 0 if vectors is None else vectors.shape[1]
    sql = store._sql
    with store.address.connected() as connection:
        if store.width:
            sql.need_vectors(connection, store.address)
        sql.remove_orphans(connection)
        sql.lock(connection)
        with connection.transaction():
            sql.create(connection, store.width)
            sql.add(connection, examples, vectors)
            sql.finish(connection, State(FORMAT, model, 1, store.width, EFFORT, is_claimed=False))
        if vectors is not None:
            recall = store.measure(vectors)
            _LOG.info(
                "store of %d vectors: recall@10 %.3f at effort %d",
                *(len(vectors), recall, store.effort),
            )
        yield store
    with store.address.connected() as connection:  # the first one may be broken by now
        sql.claim(connection)


def check(url: str) -> None:
    """Raise an error if there is no usable database at `url`."""
    with Address(url).connected() as connection:
        connection.execute("SELECT 1")
