"""Gates in a database at which whoever changes it waits, so that tests can act in the middle."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

PATIENCE = 120.0

_KEY = 4242
_SESSIONS = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


@contextmanager
def gate(store: str, schema: str, *, row: int) -> Iterator[None]:
    """Whoever adds so many examples in one transaction waits at this one; then it is open."""
    with psycopg.connect(store, autocommit=True) as connection:
        first = connection.execute(f"SELECT max(id) FROM {schema}.examples").fetchone()
        assert first is not None
        connection.execute(
            f"CREATE FUNCTION {schema}.wait() RETURNS trigger LANGUAGE plpgsql AS "
            f"'BEGIN IF NEW.id = {first[0] + row} THEN PERFORM pg_advisory_xact_lock({_KEY}); "
            "END IF; RETURN NEW; END'"
        )
        connection.execute(
            f"CREATE TRIGGER wait BEFORE INSERT ON {schema}.examples "
            f"FOR EACH ROW EXECUTE FUNCTION {schema}.wait()"
        )
        connection.execute("SELECT pg_advisory_lock(%s)", [_KEY])
        yield


def slow_down(store: str, schema: str, seconds: float) -> None:
    """Let every example that is added take its time."""
    with psycopg.connect(store, autocommit=True) as connection:
        connection.execute(
            f"CREATE FUNCTION {schema}.rest() RETURNS trigger LANGUAGE plpgsql AS "
            f"'BEGIN PERFORM pg_sleep({seconds}); RETURN NEW; END'"
        )
        connection.execute(
            f"CREATE TRIGGER rest BEFORE INSERT ON {schema}.examples "
            f"FOR EACH ROW EXECUTE FUNCTION {schema}.rest()"
        )


def until_someone_waits(store: str) -> None:
    """Returns when a session waits for a lock of another."""
    until(store, f"SELECT count(*) > 0 {_SESSIONS} AND wait_event_type = 'Lock'")


def until_someone_adds(store: str) -> None:
    """Returns when a session has begun to add examples."""
    until(store, f"SELECT count(*) > 0 {_SESSIONS} AND query ~ 'COPY'")


def until_nobody_is_left(store: str) -> None:
    """Returns when all sessions have ended."""
    until(store, f"SELECT count(*) = 0 {_SESSIONS}")


def until(store: str, question: str) -> None:
    """Returns when the answer is yes."""
    deadline = time.monotonic() + PATIENCE
    with psycopg.connect(store, autocommit=True) as connection:
        while not _value(connection, question):
            assert time.monotonic() < deadline, "it did not come to be in time"
            # a server that is asked without a rest has no time for whom we wait for
            connection.execute("SELECT pg_sleep(0.1)")


def until_nobody_changes(store: str, schema: str) -> None:
    """Returns when no transaction that changes the examples is under way."""
    with psycopg.connect(store) as connection:
        connection.execute(f"SELECT version FROM {schema}.state FOR UPDATE")


def _value(connection: Any, question: str) -> Any:
    return connection.execute(question).fetchone()[0]
