"""The examples and vectors of one model in PostgreSQL: a schema of their own, and its SQL.

Every change is one transaction that raises the version by one, so that whoever reads knows at once
whether anything is new. Knows ids, not rows.
"""

import logging
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from redraft.data.example import Example
from redraft.errors import PairsError, StoreError
from redraft.retrieval.connection import Address, Session
from redraft.retrieval.index import WANTED_RECALL, Vectors, exact_search
from redraft.retrieval.statements import Found, Ids, State, Statements

FORMAT = 1
"""Of the tables; a store of another one is not read."""

EFFORT = 80
"""How wide a walk through the graph is at least: twice pgvector's own choice, which a small sample
may find good enough by luck."""

MOST_EFFORT = 1000
"""The widest walk that pgvector takes."""

_SAMPLE = 128
_MEASURED = 10
"""How many neighbours recall is measured with."""

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Content:
    """What a store holds at a version: all ids, and the examples that were asked for."""

    version: int
    ids: Ids
    examples: dict[int, Example]


class PostgresStore:
    """The schema of one model."""

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
        """The store of this model, which must be there and of this version of redraft."""
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
        if not state.is_claimed:  # who made it was killed as soon as its folder was whole
            store._session.run(store._sql.claim)
        store.width, store.effort = state.width, state.effort
        return store

    @property
    def version(self) -> int:
        """How often it was changed."""
        return int(self._session.run(self._sql.version))

    def read(self, known: Mapping[int, Example]) -> Content:
        """All ids in order, and the examples that are not known, as they were at one moment."""

        def read(connection: Any) -> Content:
            with connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                version = self._sql.version(connection)
                ids = self._sql.ids(connection)
                fresh = [each for each in ids.tolist() if each not in known] if known else None
                rows = self._sql.examples(connection, fresh)
                return Content(version, ids, {i: Example.from_json(row) for i, row in rows})

        return self._session.run(read)

    def matching(self, where: Mapping[str, Any], without: Mapping[str, Any]) -> Ids:
        """The ids of the examples whose meta has these values, and has not those."""
        return self._session.run(lambda it: self._sql.matching(it, where, without))

    def effort_for(self, k: int) -> int:
        """How wide a walk finds k as surely as it finds the ten that it was measured with."""
        return max(self.effort, k * self.effort // _MEASURED, k)

    def nearest(self, queries: Vectors, k: int) -> Found:
        """At most k examples nearest to each query, by the graph."""
        effort = min(MOST_EFFORT, self.effort_for(k))
        return self._session.run(lambda it: self._sql.nearest(it, queries, k, effort))

    def nearest_among(self, ids: Ids, queries: Vectors, k: int) -> Found:
        """The k of these examples that are nearest to each query, by comparison with all."""
        return self._session.run(lambda it: self._sql.nearest_among(it, ids.tolist(), queries, k))

    def vectors(self, ids: Ids) -> Vectors:
        """The vectors of these examples, which must be there: (N, D)."""
        found = self.vectors_by_id(ids)
        if len(found) < len(ids):
            raise StoreError(f"{self.address}: was changed meanwhile; try again")
        rows = [found[each] for each in ids.tolist()]
        return np.array(rows, np.float32).reshape(len(ids), self.width)

    def vectors_by_id(self, ids: Ids) -> dict[int, list[float]]:
        """The vectors of those of these examples that are still there."""
        return self._session.run(lambda it: self._sql.vectors(it, ids.tolist()))

    def change(self, removed: Ids, added: Sequence[Example], vectors: Vectors | None) -> None:
        """Remove and add as one: all of it is there afterwards, or nothing."""
        with self.address.connected() as connection, connection.transaction():
            # whoever changes waits here for those before
            self._sql.raise_version(connection)
            self._sql.remove(connection, removed.tolist())
            self._sql.add(connection, added, vectors)
            if self._sql.is_empty(connection):
                raise PairsError("that would remove every example; at least one must stay")
            self._sql.notify(connection)

    def wait(self, seconds: float) -> bool:
        """Wait for a change by anyone, but not for longer; says whether one may have come."""

        def listen(connection: Any) -> bool:
            if connection is not self._listens:
                self._sql.listen(connection)
                self._listens = connection
                return True  # what came before it listened was not heard
            return bool(list(connection.notifies(timeout=seconds, stop_after=1)))

        return self._listener.run(listen)

    def close(self) -> None:
        """End its connections."""
        self._session.close()
        self._listener.close()

    def measure(self, vectors: Vectors) -> float:
        """Double the effort until the graph finds 99 % of what is nearest; the share it finds."""
        queries = _unseen(vectors)
        truth = exact_search(vectors, queries, _MEASURED).distances
        # of few the planner may sort all, which would tell nothing of the graph
        self._session.run(lambda it: it.execute("SET enable_sort = off"))
        while True:
            found = self.nearest(queries, _MEASURED)
            # by distance and not by id: of several at the same distance any one will do
            hits = sum(
                int((distances <= limits[: len(distances)] + 1e-4).sum())
                for (_, distances), limits in zip(found, truth, strict=True)
            )
            recall = hits / truth.size
            if recall >= WANTED_RECALL or self.effort >= MOST_EFFORT:
                break
            self.effort = min(MOST_EFFORT, 2 * self.effort)
        self._session.run(lambda it: it.execute("RESET enable_sort"))
        self.effort = min(MOST_EFFORT, 2 * self.effort)  # real queries may be further away
        with self.address.connected() as connection:
            self._sql.set_effort(connection, self.effort)
        return recall


def schema_of(model: str) -> str:
    """The schema that holds the examples of a model."""
    return f"redraft_{model}"


def _unseen(vectors: Vectors) -> Vectors:
    """Queries as they will come: as far from a vector as its nearest other is.

    A walk that looks for one of its own vectors finds it more easily than it finds the next query.
    """
    generator = np.random.default_rng(0)
    rows = generator.choice(len(vectors), min(_SAMPLE, len(vectors)), replace=False)
    chosen = np.asarray(vectors[rows])
    away = generator.standard_normal(chosen.shape, np.float32)
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    apart = np.sqrt(exact_search(vectors, chosen, 2).distances[:, -1:])  # (B, 1)
    moved = chosen + apart * away
    return np.asarray(moved / np.linalg.norm(moved, axis=1, keepdims=True), np.float32)


@contextmanager
def created(
    url: str, examples: Sequence[Example], vectors: Vectors | None
) -> Iterator[PostgresStore]:
    """A new store of these examples, for a model that comes to name it within.

    One that no model came to name, for an error or a kill, is removed when a later one is made.
    """
    model = secrets.token_hex(8)
    store = PostgresStore(url, model)
    store.width = 0 if vectors is None else vectors.shape[1]
    sql = Statements(schema_of(model))
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
            told = (len(vectors), recall, store.effort)
            _LOG.info("store of %d vectors: recall@10 %.3f at effort %d", *told)
        yield store
    with store.address.connected() as connection:  # which may have been lost meanwhile
        sql.claim(connection)


def check(url: str) -> None:
    """Refuse an address at which nothing can be stored."""
    with Address(url).connected() as connection:
        connection.execute("SELECT 1")
