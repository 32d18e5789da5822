"""Connections to PostgreSQL: opened lazily, reopened when broken; errors become one line.

Knows addresses and connection errors, no tables. No message contains a password.
"""

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any, TypeVar

from redraft.errors import ConfigError, MissingExtraError, StoreError

CONNECT_TIMEOUT = 10
"""Seconds within which a server must accept a connection."""

_EXPECTED = "--store: expected an address, postgresql://USER@HOST:PORT/DATABASE"

Result = TypeVar("Result")


def driver() -> ModuleType:
    """Return psycopg, or raise an error that says how to install it."""
    try:
        import psycopg
    except ImportError as error:
        raise MissingExtraError("psycopg", extra="postgres", purpose="--store") from error
    return psycopg  # type: ignore[no-any-return,unused-ignore]


class Address:
    """The address of a database; only its host, port and name are ever shown."""

    def __init__(self, url: str) -> None:
        self._url = url
        parts = _parts(url)
        host = parts.get("host") or parts.get("hostaddr") or "localhost"
        port, database = parts.get("port", "5432"), parts.get("dbname", "")
        # parts of an unescaped password would end up in one of these and be shown
        if "@" in f"{host}{database}" or not port.replace(",", "").isdecimal():
            raise ConfigError(_EXPECTED)
        self._shown = f"{host}:{port}/{database}"

    def __str__(self) -> str:
        return self._shown

    def connect(self) -> Any:
        """Open a new connection with autocommit."""
        psycopg = driver()
        try:
            return psycopg.connect(
                self._url,
                autocommit=True,
                connect_timeout=CONNECT_TIMEOUT,
                application_name="redraft",
            )
        except psycopg.Error as error:
            reason, advice = _explain(str(error))
            raise StoreError(f"{self}: {reason}; {advice}") from None

    @contextmanager
    def connected(self) -> Iterator[Any]:
        """Yield a new connection for a change; errors of the driver become StoreErrors."""
        with self.translated_errors():
            connection = self.connect()
            try:
                yield connection
            finally:
                connection.close()

    @contextmanager
    def translated_errors(self) -> Iterator[None]:
        """Turn errors of the driver in the block into StoreErrors of one line."""
        psycopg = driver()
        try:
            yield
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            advice = "the change was made completely or not at all; try again"
            raise StoreError(f"{self}: the server went away ({_kind(error)}); {advice}") from None
        except psycopg.Error as error:
            raise StoreError(f"{self}: the server refused ({_kind(error)})") from None


class Session:
    """A connection for reading that is kept open, and reopened once when it is broken."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._connection: Any = None
        self._lock = threading.Lock()

    def run(self, work: Callable[..., Result], *values: Any) -> Result:
        """Return `work(connection, *values)`; after a broken connection it is called once more."""
        psycopg = driver()
        with self._lock, self.address.translated_errors():
            if self._connection is not None:
                # a server that was restarted accepts a new connection
                with suppress(psycopg.OperationalError, psycopg.InterfaceError):
                    return work(self._connection, *values)
                self._close()
            self._connection = self.address.connect()
            weakref.finalize(self, self._connection.close)
            return work(self._connection, *values)

    def close(self) -> None:
        """Close the connection; the next call of `run` opens another."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _parts(url: str) -> dict[str, Any]:
    psycopg = driver()
    from psycopg.conninfo import conninfo_to_dict

    try:
        if url.startswith(("postgresql://", "postgres://")):
            return dict(conninfo_to_dict(url))
    except psycopg.Error:
        pass  # its message may contain the password
    raise ConfigError(_EXPECTED)


def _explain(message: str) -> tuple[str, str]:
    """Return why a connection failed, and what to do."""
    if "password" in message:
        return "the password is missing or wrong", "set it in PGPASSWORD or in ~/.pgpass"
    if "does not exist" in message and "database" in message:
        return "there is no such database", "create it with createdb"
    if "does not exist" in message and "role" in message:
        return "there is no such user", "name another in the address"
    return "no PostgreSQL server answers there", "check the address of --store"


def _kind(error: Any) -> str:
    """Return the first line of an error; full messages can be long and contain values."""
    message = error.diag.message_primary if error.diag is not None else None
    return str(message or type(error).__name__).splitlines()[0]
