"""The SQL of a model's schema: its tables, and every statement that reads or changes them.

Every method takes the connection that it runs on.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redraft.errors import StoreError
from redraft.postgres.connection import Address, driver
from redraft.types import Example

Ids = NDArray[np.int64]
NearestIds = list[tuple[Ids, NDArray[np.float32]]]
"""For each query the ids of the nearest examples and their squared distances, nearest first."""

_UNCLAIMED = "redraft: no model names this schema yet"
_CLAIMED = "redraft"

_ORPHAN_AGE = "1 hour"

_BUILD_MEMORY = "512MB"
"""Memory for building the HNSW index; beyond it pgvector builds on disk, which is slow."""


@dataclass(frozen=True)
class State:
    """The single row of the table `state`."""

    format: int
    model: str
    version: int
    width: int
    effort: int  # hnsw.ef_search
    is_claimed: bool


class Statements:
    """The SQL statements of one schema."""

    def __init__(self, schema: str) -> None:
        self.schema = schema

    def state(self, connection: Any) -> State | None:
        """Return the state of the store; None if the schema does not exist."""
        table = connection.execute("SELECT to_regclass(%s)", [f'"{self.schema}".state']).fetchone()
        if table[0] is None:
            return None
        text = (
            "SELECT format, model, version, width, effort, "
            "coalesce(obj_description(to_regnamespace(%s), 'pg_namespace'), '') <> %s "
            "FROM {schema}.state"
        )
        return State(*self._execute(connection, text, [self.schema, _UNCLAIMED]).fetchone())

    def version(self, connection: Any) -> int:
        """Return the number of changes of the store."""
        return int(self._execute(connection, "SELECT version FROM {schema}.state").fetchone()[0])

    def ids(self, connection: Any) -> Ids:
        """Return all ids in order."""
        return _ids(self._read(connection, "SELECT id FROM {schema}.examples ORDER BY id"))

    def examples(self, connection: Any, ids: list[int] | None) -> Iterator[tuple[int, Any]]:
        """Yield the id and the JSON value of the examples with these ids, or of all."""
        text = "SELECT id, example FROM {schema}.examples"
        if ids is None:
            yield from self._execute(connection, text)
        elif ids:
            yield from self._execute(connection, text + " WHERE id = ANY(%s)", [ids])

    def matching(
        self, connection: Any, where: Mapping[str, Any], without: Mapping[str, Any]
    ) -> Ids:
        """Return the ids of the examples whose meta has all of `where`, not all of `without`."""
        has, values = _condition(where)
        has_not, others = _condition(without)
        condition = f"{has} AND NOT ({has_not})" if without else has
        text = "SELECT id FROM {schema}.examples WHERE " + condition
        return _ids(self._read(connection, text, values + others))

    def nearest(
        self, connection: Any, queries: NDArray[np.float32], k: int, effort: int
    ) -> NearestIds:
        """Return at most k nearest examples per query by HNSW, with `effort` as ef_search."""
        connection.execute("SELECT set_config('hnsw.ef_search', %s, false)", [str(effort)])
        text = (
            "SELECT id, vector <#> %(query)s::vector FROM {schema}.examples "
            "ORDER BY vector <#> %(query)s::vector LIMIT %(k)s"
        )
        return self._nearest(connection, text, queries, {"k": k})

    def nearest_among(
        self, connection: Any, ids: list[int], queries: NDArray[np.float32], k: int
    ) -> NearestIds:
        """Return the k nearest of the examples with these ids per query, by exact search."""
        text = (
            "WITH few AS MATERIALIZED (SELECT id, vector FROM {schema}.examples "
            "WHERE id = ANY(%(ids)s)) SELECT id, vector <#> %(query)s::vector AS product "
            "FROM few ORDER BY product, id LIMIT %(k)s"
        )
        return self._nearest(connection, text, queries, {"ids": ids, "k": k})

    def _nearest(
        self, connection: Any, text: str, queries: NDArray[np.float32], values: Mapping[str, Any]
    ) -> NearestIds:
        nearest = []
        for query in queries:
            rows = self._read(connection, text, {**values, "query": _text(query)}).fetchall()
            # unit vectors: ‖a − b‖² = 2 − 2 a·b, and <#> is −a·b
            distances = 2 + 2 * np.array([row[1] for row in rows], np.float32)
            nearest.append((_ids(rows), np.asarray(distances, np.float32).clip(min=0)))
        return nearest

    def vectors(self, connection: Any, ids: list[int]) -> dict[int, list[float]]:
        """Return the vectors of the examples with these ids."""
        text = "SELECT id, vector::real[] FROM {schema}.examples WHERE id = ANY(%s)"
        return dict(self._read(connection, text, [ids]))

    def change(
        self,
        connection: Any,
        removed: list[int],
        added: Sequence[Example],
        vectors: NDArray[np.float32] | None,
    ) -> bool:
        """Delete the examples with the ids `removed` and insert others, in a transaction.

        Increments the version and notifies listeners. Returns False if no example is left.
        """
        # its row lock excludes other changes until the transaction ends
        self._execute(connection, "UPDATE {schema}.state SET version = version + 1")
        if removed:
            self._execute(connection, "DELETE FROM {schema}.examples WHERE id = ANY(%s)", [removed])
        self.add(connection, added, vectors)
        connection.execute("SELECT pg_notify(%s, '')", [self.schema])
        text = "SELECT EXISTS (SELECT FROM {schema}.examples)"
        return bool(self._execute(connection, text).fetchone()[0])

    def add(
        self, connection: Any, examples: Sequence[Example], vectors: NDArray[np.float32] | None
    ) -> None:
        """Insert examples, each with its vector if there are any."""
        columns = "example, labels" if vectors is None else "example, labels, vector"
        statement = self._sql("COPY {schema}.examples (" + columns + ") FROM STDIN")
        with connection.cursor().copy(statement) as copy:
            for i, example in enumerate(examples):
                texts = [json.dumps(example.to_json(), default=str), _labels(example.meta)]
                copy.write_row(texts if vectors is None else [*texts, _text(vectors[i])])

    def listen(self, connection: Any) -> None:
        """Subscribe to notifications of changes."""
        self._execute(connection, "LISTEN {schema}")

    def need_vectors(self, connection: Any, address: Address) -> None:
        """Enable pgvector, or raise a StoreError that says how."""
        psycopg = driver()
        try:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        except psycopg.errors.UniqueViolation:
            pass  # another process created it at the same time
        except (psycopg.errors.UndefinedFile, psycopg.errors.FeatureNotSupported):
            raise StoreError(f"{address}: the server lacks pgvector; install it there") from None
        except psycopg.errors.InsufficientPrivilege:
            advice = "have an administrator run CREATE EXTENSION vector in this database"
            raise StoreError(f"{address}: pgvector is not enabled; {advice}") from None

    def lock(self, connection: Any) -> None:
        """Lock the schema for its creation until this connection is closed."""
        connection.execute("SELECT pg_advisory_lock(%s)", [_lock_key(self.schema)])

    def create(self, connection: Any, width: int) -> None:
        """Create the schema and empty tables, in the transaction that fills them."""
        vector = f", vector vector({width}) NOT NULL" if width else ""
        self._execute(connection, "CREATE SCHEMA {schema}")
        self._comment(connection, _UNCLAIMED)
        self._execute(
            connection,
            "CREATE TABLE {schema}.state (format int NOT NULL, model text NOT NULL, "
            "version bigint NOT NULL, width int NOT NULL, effort int NOT NULL, "
            "made timestamptz NOT NULL DEFAULT now())",
        )
        self._execute(
            connection,
            "CREATE TABLE {schema}.examples (id bigint GENERATED ALWAYS AS IDENTITY "
            "PRIMARY KEY, example json NOT NULL, labels jsonb NOT NULL" + vector + ")",
        )

    def finish(self, connection: Any, state: State) -> None:
        """Build the indexes of the filled tables and insert the state."""
        self._execute(
            connection, "CREATE INDEX ON {schema}.examples USING gin (labels jsonb_path_ops)"
        )
        if state.width:
            self._build_graph(connection)
        self._execute(connection, "ANALYZE {schema}.examples")
        insert = (
            "INSERT INTO {schema}.state (format, model, version, width, effort) "
            "VALUES (%s, %s, %s, %s, %s)"
        )
        values = [state.format, state.model, state.version, state.width, state.effort]
        self._execute(connection, insert, values)

    def _build_graph(self, connection: Any) -> None:
        build = (
            "CREATE INDEX ON {schema}.examples USING hnsw (vector vector_ip_ops) "
            "WITH (m = 16, ef_construction = 128)"
        )
        connection.execute(f"SET LOCAL maintenance_work_mem = '{_BUILD_MEMORY}'")
        try:
            with connection.transaction():
                self._execute(connection, build)
        except driver().errors.DiskFull:
            # parallel workers share memory by /dev/shm, which is small in containers
            connection.execute("SET LOCAL max_parallel_maintenance_workers = 0")
            self._execute(connection, build)

    def set_effort(self, connection: Any, effort: int) -> None:
        """Store the ef_search that reaches the wanted recall."""
        self._execute(connection, "UPDATE {schema}.state SET effort = %s", [effort])

    def claim(self, connection: Any) -> None:
        """Mark the schema as used by a model."""
        with suppress(driver().errors.InsufficientPrivilege):  # read-only users cannot
            self._comment(connection, _CLAIMED)

    def drop(self, connection: Any) -> None:
        """Drop the schema with its tables."""
        self._execute(connection, "DROP SCHEMA IF EXISTS {schema} CASCADE")

    def remove_orphans(self, connection: Any) -> None:
        """Drop old schemas that no model uses because their creator was killed.

        Young ones stay: their model may be written but not yet marked as using them.
        """
        unclaimed = (
            "SELECT nspname FROM pg_namespace WHERE pg_has_role(nspowner, 'MEMBER') "
            "AND obj_description(oid, 'pg_namespace') = %s"
        )
        is_old = "SELECT made < now() - %s::interval FROM {schema}.state"
        for (schema,) in connection.execute(unclaimed, [_UNCLAIMED]).fetchall():
            key, orphan = [_lock_key(schema)], Statements(schema)
            if not orphan._execute(connection, is_old, [_ORPHAN_AGE]).fetchone()[0]:
                continue
            # a living creator holds the lock
            if connection.execute("SELECT pg_try_advisory_lock(%s)", key).fetchone()[0]:
                orphan.drop(connection)
                connection.execute("SELECT pg_advisory_unlock(%s)", key)

    def _comment(self, connection: Any, text: str) -> None:
        self._execute(connection, "COMMENT ON SCHEMA {schema} IS " + f"'{text}'")

    def _execute(self, connection: Any, text: str, values: Any = None) -> Any:
        """Run a statement about `{schema}` and return its cursor."""
        return connection.execute(self._sql(text), values)

    def _read(self, connection: Any, text: str, values: Any = None) -> Any:
        """Run a query of numbers, which the server sends in binary, and return its cursor."""
        return connection.cursor(binary=True).execute(self._sql(text), values)

    def _sql(self, text: str) -> Any:
        from psycopg.sql import SQL, Identifier

        return SQL(text).format(schema=Identifier(self.schema))


def _condition(values: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return an SQL condition on the meta of examples, compared as text, and its parameters."""
    parts, parameters = ["true"], []
    for key, value in values.items():
        text = str(value)
        if text == "None":  # a missing key counts as None
            parts.append("coalesce(labels ->> %s, 'None') = 'None'")
            parameters.append(_plain(key))
        else:
            parts.append("labels @> %s::jsonb")
            parameters.append(json.dumps({_plain(key): _plain(text)}))
    return " AND ".join(parts), parameters


def _labels(meta: Mapping[str, Any]) -> str:
    """Return the meta of an example with all values as text, as filters compare them."""
    return json.dumps({_plain(key): _plain(str(value)) for key, value in meta.items()})


def _plain(text: str) -> str:
    """Escape the characters that PostgreSQL cannot store: NUL and lone surrogates."""
    return text.encode(errors="backslashreplace").decode().replace("\0", "\\0")


def _text(vector: NDArray[np.float32]) -> str:
    """Return a vector in the text format of pgvector."""
    return "[" + ",".join(map(str, vector.tolist())) + "]"


def _ids(rows: Any) -> Ids:
    return np.array([row[0] for row in rows], np.int64)


def _lock_key(schema: str) -> int:
    """Return the advisory lock key of a schema: 60 bits of its random name."""
    return int(schema.rpartition("_")[2][:15], 16)
