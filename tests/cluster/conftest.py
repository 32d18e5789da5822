"""A real PostgreSQL for all tests of a run, and an empty database for each of them."""

import itertools
from collections.abc import Iterator

import psycopg
import pytest

from tests.cluster.postgres_server import PostgresServer, postgres_server

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    """The server; a test that stops it starts it again."""
    with postgres_server() as running:
        yield running


@pytest.fixture
def store(server: PostgresServer) -> str:
    """The address of a database in which nothing is."""
    return new_database(server)


def new_database(server: PostgresServer) -> str:
    """The address of a new database."""
    name = f"database_{next(_NUMBERS)}"
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server.url(database=name)
