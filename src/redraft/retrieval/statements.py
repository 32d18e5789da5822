"""The SQL of a model's schema: its tables, and every statement that reads or changes them.

Each takes the connection that it runs on. Knows no versions of redraft and no views.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redraft.data.example import Example
from redraft.errors import StoreError
from redraft.retrieval.connection import Address, driver

Ids = NDArray[np.int64]
Found = list[tuple[Ids, NDArray[np.float32]]]
"""For each query the ids of what is nearest and its squared distances, nearest first."""

_UNCLAIMED = "redraft: no model names this schema yet"
_CLAIMED = "redraft"

_OLD = "1 hour"

_BUILD_MEMORY = "512MB"
"""So much of a graph is built in memory; what is more is built on disk, which takes long."""


@dataclass(frozen=True)
class State:
    """The one row of a store's state."""

    format: int
    model: str
    version: int
    width: int
    effort: int
    is_claimed: bool


class Statements:
    """What can be said to one schema."""

    def __init__(self, schema: str) -> None:
        self.schema = schema

    def state(self, connection: Any) -> State | None:
        """What the store is; None where there is none."""
        found = connection.execute("SELECT to_regclass(%s)", [f'"{self.schema}".state']).fetchone()
        if found[0] is None:
            return None
        statement = self._sql(
            "SELECT format, model, version, width, effort, "
            "coalesce(obj_description(to_regnamespace(%s), 'pg_namespace'), '') <> %s "
            "FROM {schema}.state"
        )
        return State(*connection.execute(statement, [self.schema, _UNCLAIMED]).fetchone())

    def version(self, connection: Any) -> int:
        """How often the store was changed."""
        statement = self._sql("SELECT version FROM {schema}.state")
        return int(connection.execute(statement).fetchone()[0])

    def ids(self, connection: Any) -> Ids:
        """All ids, in order."""
        statement = self._sql("SELECT id FROM {schema}.examples ORDER BY id")
        return _ids(connection.cursor(binary=True).execute(statement))

    def examples(self, connection: Any, ids: Sequence[int] | None) -> Iterator[tuple[int, Any]]:
        """The examples with these ids, or all, as JSON values."""
        text = "SELECT id, example FROM {schema}.examples"
        if ids is None:
            yield from connection.execute(self._sql(text))
        elif ids:
            yield from connection.execute(self._sql(text + " WHERE id = ANY(%s)"), [list(ids)])

    def matching(
        self, connection: Any, where: Mapping[str, Any], without: Mapping[str, Any]
    ) -> Ids:
        """The ids of the examples whose meta has these values, and has not those."""
        has, values = _condition(where)
        has_not, others = _condition(without)
        condition = f"{has} AND NOT ({has_not})" if without else has
        statement = self._sql("SELECT id FROM {schema}.examples WHERE " + condition)
        return _ids(connection.cursor(binary=True).execute(statement, values + others))

    def nearest(self, connection: Any, queries: NDArray[np.float32], k: int, effort: int) -> Found:
        """At most k examples nearest to each query, by a walk of this width."""
        connection.execute("SELECT set_config('hnsw.ef_search', %s, false)", [str(effort)])
        statement = self._sql(
            "SELECT id, vector <#> %(query)s::vector FROM {schema}.examples "
            "ORDER BY vector <#> %(query)s::vector LIMIT %(k)s"
        )
        cursor = connection.cursor(binary=True)
        return [_found(cursor.execute(statement, {"query": _text(q), "k": k})) for q in queries]

    def nearest_among(
        self, connection: Any, ids: Sequence[int], queries: NDArray[np.float32], k: int
    ) -> Found:
        """The k of these examples that are nearest to each query; no graph is asked."""
        statement = self._sql(
            "WITH few AS MATERIALIZED (SELECT id, vector FROM {schema}.examples "
            "WHERE id = ANY(%(ids)s)) SELECT id, vector <#> %(query)s::vector AS product "
            "FROM few ORDER BY product, id LIMIT %(k)s"
        )
        cursor = connection.cursor(binary=True)
        among = {"ids": list(ids), "k": k}
        return [_found(cursor.execute(statement, among | {"query": _text(q)})) for q in queries]

    def vectors(self, connection: Any, ids: Sequence[int]) -> dict[int, list[float]]:
        """The vectors of these examples."""
        statement = self._sql("SELECT id, vector::real[] FROM {schema}.examples WHERE id = ANY(%s)")
        return dict(connection.cursor(binary=True).execute(statement, [list(ids)]))

    def raise_version(self, connection: Any) -> None:
        """Count a change, and let nobody else change until this transaction ends."""
        connection.execute(self._sql("UPDATE {schema}.state SET version = version + 1"))

    def remove(self, connection: Any, ids: Sequence[int]) -> None:
        """Remove the examples with these ids, those that are still there."""
        if ids:
            statement = self._sql("DELETE FROM {schema}.examples WHERE id = ANY(%s)")
            connection.execute(statement, [list(ids)])

    def add(
        self, connection: Any, examples: Sequence[Example], vectors: NDArray[np.float32] | None
    ) -> None:
        """Add examples, each with its vector if there are any."""
        columns = "example, labels" if vectors is None else "example, labels, vector"
        statement = self._sql("COPY {schema}.examples (" + columns + ") FROM STDIN")
        with connection.cursor().copy(statement) as copy:
            for at, example in enumerate(examples):
                texts = [json.dumps(example.to_json(), default=str), _labels(example.meta)]
                copy.write_row(texts if vectors is None else [*texts, _text(vectors[at])])

    def is_empty(self, connection: Any) -> bool:
        """Whether no example is left."""
        statement = self._sql("SELECT NOT EXISTS (SELECT FROM {schema}.examples)")
        return bool(connection.execute(statement).fetchone()[0])

    def notify(self, connection: Any) -> None:
        """Tell who listens, once the transaction is done."""
        connection.execute("SELECT pg_notify(%s, '')", [self.schema])

    def listen(self, connection: Any) -> None:
        """Hear of changes."""
        connection.execute(self._sql("LISTEN {schema}"))

    def need_vectors(self, connection: Any, address: Address) -> None:
        """Have pgvector, or say that it is missing."""
        psycopg = driver()
        try:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        except psycopg.errors.UniqueViolation:
            pass  # another process made it at this moment
        except (psycopg.errors.UndefinedFile, psycopg.errors.FeatureNotSupported):
            raise StoreError(f"{address}: the server lacks pgvector; install it there") from None
        except psycopg.errors.InsufficientPrivilege:
            advice = "have an administrator run CREATE EXTENSION vector in this database"
            raise StoreError(f"{address}: pgvector is not enabled; {advice}") from None

    def lock(self, connection: Any) -> None:
        """Say that the schema is being made, for as long as this connection lives."""
        connection.execute("SELECT pg_advisory_lock(%s)", [_lock_key(self.schema)])

    def create(self, connection: Any, width: int) -> None:
        """The schema and its tables, empty; within the transaction that fills them."""
        vector = f", vector vector({width}) NOT NULL" if width else ""
        connection.execute(self._sql("CREATE SCHEMA {schema}"))
        self._comment(connection, _UNCLAIMED)
        connection.execute(
            self._sql(
                "CREATE TABLE {schema}.state (format int NOT NULL, model text NOT NULL, "
                "version bigint NOT NULL, width int NOT NULL, effort int NOT NULL, "
                "made timestamptz NOT NULL DEFAULT now())"
            )
        )
        connection.execute(
            self._sql(
                "CREATE TABLE {schema}.examples (id bigint GENERATED ALWAYS AS IDENTITY "
                "PRIMARY KEY, example json NOT NULL, labels jsonb NOT NULL" + vector + ")"
            )
        )

    def finish(self, connection: Any, state: State) -> None:
        """Build the indexes of what was filled in, and say what it is."""
        self._execute(
            connection, "CREATE INDEX ON {schema}.examples USING gin (labels jsonb_path_ops)"
        )
        if state.width:
            self._build_graph(connection)
        self._execute(connection, "ANALYZE {schema}.examples")
        values = [state.format, state.model, state.version, state.width, state.effort]
        insert = (
            "INSERT INTO {schema}.state (format, model, version, width, effort) "
            "VALUES (%s, %s, %s, %s, %s)"
        )
        connection.execute(self._sql(insert), values)

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
            # workers share their memory by files, for which containers leave little room
            connection.execute("SET LOCAL max_parallel_maintenance_workers = 0")
            self._execute(connection, build)

    def set_effort(self, connection: Any, effort: int) -> None:
        """Keep how wide a walk must be."""
        connection.execute(self._sql("UPDATE {schema}.state SET effort = %s"), [effort])

    def claim(self, connection: Any) -> None:
        """Say that a model names the schema."""
        with suppress(driver().errors.InsufficientPrivilege):  # who may only read leaves it
            self._comment(connection, _CLAIMED)

    def drop(self, connection: Any) -> None:
        """Remove the schema with all that is in it."""
        connection.execute(self._sql("DROP SCHEMA IF EXISTS {schema} CASCADE"))

    def remove_orphans(self, connection: Any) -> None:
        """Remove the schemas that no model came to name, since who made them was killed.

        Only old ones: of one that was made just now the model may have been whole, but not used.
        """
        unclaimed = (
            "SELECT nspname FROM pg_namespace WHERE pg_has_role(nspowner, 'MEMBER') "
            "AND obj_description(oid, 'pg_namespace') = %s"
        )
        for (schema,) in connection.execute(unclaimed, [_UNCLAIMED]).fetchall():
            key = [_lock_key(schema)]
            old = Statements(schema)._sql("SELECT made < now() - %s::interval FROM {schema}.state")
            if not connection.execute(old, [_OLD]).fetchone()[0]:
                continue
            # who is still about to name it holds the lock
            if connection.execute("SELECT pg_try_advisory_lock(%s)", key).fetchone()[0]:
                Statements(schema).drop(connection)
                connection.execute("SELECT pg_advisory_unlock(%s)", key)

    def _comment(self, connection: Any, text: str) -> None:
        connection.execute(self._sql("COMMENT ON SCHEMA {schema} IS " + f"'{text}'"))

    def _execute(self, connection: Any, text: str) -> None:
        connection.execute(self._sql(text))

    def _sql(self, text: str) -> Any:
        from psycopg.sql import SQL, Identifier

        return SQL(text).format(schema=Identifier(self.schema))


def _condition(values: Mapping[str, Any]) -> tuple[str, list[str]]:
    """SQL that holds for examples whose meta has these values, as texts, and its parameters."""
    parts, parameters = ["true"], []
    for key, value in values.items():
        text = str(value)
        if text == "None":  # an example without the key has no value, which is None
            parts.append("coalesce(labels ->> %s, 'None') = 'None'")
            parameters.append(_plain(key))
        else:
            parts.append("labels @> %s::jsonb")
            parameters.append(json.dumps({_plain(key): _plain(text)}))
    return " AND ".join(parts), parameters


def _labels(meta: Mapping[str, Any]) -> str:
    """The meta of an example as texts, which is how filters compare it."""
    return json.dumps({_plain(key): _plain(str(value)) for key, value in meta.items()})


def _plain(text: str) -> str:
    """The text without what PostgreSQL's texts cannot hold: NUL, and halves of characters."""
    return text.encode(errors="backslashreplace").decode().replace("\0", "\\0")


def _text(vector: NDArray[np.float32]) -> str:
    """A vector as pgvector writes it."""
    return "[" + ",".join(map(str, vector.tolist())) + "]"


def _ids(cursor: Any) -> Ids:
    return np.array([row[0] for row in cursor], np.int64)


def _found(cursor: Any) -> tuple[Ids, NDArray[np.float32]]:
    rows = cursor.fetchall()
    ids = np.array([row[0] for row in rows], np.int64)
    # unit vectors: ‖a − b‖² = 2 − 2 a·b, and <#> is −a·b
    distances = 2 + 2 * np.array([row[1] for row in rows], np.float32)
    return ids, np.asarray(distances, np.float32).clip(min=0)


def _lock_key(schema: str) -> int:
    """A number for the lock of a schema: of its digits as many as an advisory lock takes."""
    return int(schema.rpartition("_")[2][:15], 16)
