"""A real PostgreSQL for all tests of a run, and an empty database for each."""

from collections.abc import Iterator

import psycopg
import pytest

from tests.cluster.postgres_server import PostgresServer, postgres_server


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    """The server; a test that stops it starts it again."""
    with postgres_server() as running:
        yield running


@pytest.fixture
def store(server: PostgresServer) -> str:
    """The address of a database in which nothing is, and nobody else."""
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        left = "SELECT nspname FROM pg_namespace WHERE nspname ~ '^redraft_'"
        for (schema,) in connection.execute(left).fetchall():
            connection.execute(f"DROP SCHEMA {schema} CASCADE")
    return server.url()


@pytest.fixture(scope="session")
def other_store(server: PostgresServer) -> str:
    """The address of another database of the same server."""
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE other")
    return server.url(database="other")
