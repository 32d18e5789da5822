"""Connections to PostgreSQL: opened when they are needed, again when they broke, told in one line.

Knows addresses and what can go wrong with them; knows no tables. A password is never part of what
is said.
"""

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any, TypeVar

from redraft.errors import ConfigError, MissingExtraError, StoreError

PATIENCE = 10
"""Seconds within which a server must take a connection."""

_EXPECTED = "--store: expected an address, postgresql://USER@HOST:PORT/DATABASE"

Result = TypeVar("Result")


def driver() -> ModuleType:
    """The package that speaks to PostgreSQL, or how it is installed."""
    try:
        import psycopg
    except ImportError as error:
        raise MissingExtraError("psycopg", extra="postgres", purpose="--store") from error
    return psycopg  # type: ignore[no-any-return,unused-ignore]


class Address:
    """Where a database is; only its host, port and name are ever shown."""

    def __init__(self, url: str) -> None:
        self._url = url
        parts = _parts(url)
        host = parts.get("host") or parts.get("hostaddr") or "localhost"
        port, database = parts.get("port", "5432"), parts.get("dbname", "")
        # a password with signs in it that must be escaped would be shown as one of these
        if "@" in f"{host}{database}" or not port.replace(",", "").isdecimal():
            raise ConfigError(_EXPECTED)
        self._shown = f"{host}:{port}/{database}"

    def __str__(self) -> str:
        return self._shown

    def connect(self) -> Any:
        """A new connection, in which every statement counts at once."""
        psycopg = driver()
        try:
            return psycopg.connect(
                self._url,
                autocommit=True,
                connect_timeout=PATIENCE,
                application_name="redraft",
            )
        except psycopg.Error as error:
            reason, advice = _why_refused(str(error))
            raise StoreError(f"{self}: {reason}; {advice}") from None

    @contextmanager
    def connected(self) -> Iterator[Any]:
        """A connection of one's own for a change; what goes wrong with it is told."""
        with self.telling():
            connection = self.connect()
            try:
                yield connection
            finally:
                connection.close()

    @contextmanager
    def telling(self) -> Iterator[None]:
        """What the driver raises within becomes one line."""
        psycopg = driver()
        try:
            yield
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            advice = "what was being changed is there as a whole or not at all; try again"
            raise StoreError(f"{self}: the server went away ({_kind(error)}); {advice}") from None
        except psycopg.Error as error:
            raise StoreError(f"{self}: the server refused ({_kind(error)})") from None


class Session:
    """One connection that is kept for reading; broken, it is opened again once."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._connection: Any = None
        self._running = threading.Lock()

    def run(self, work: Callable[[Any], Result]) -> Result:
        """What the work reads; it may be begun a second time."""
        psycopg = driver()
        with self._running:
            if self._connection is not None:
                # a server that was started again since answers on another connection
                with suppress(psycopg.OperationalError, psycopg.InterfaceError):
                    return self._told(work)
                self._close()
            self._connection = self.address.connect()
            weakref.finalize(self, self._connection.close)
            with self.address.telling():
                return self._told(work)

    def _told(self, work: Callable[[Any], Result]) -> Result:
        psycopg = driver()
        try:
            return work(self._connection)
        except (psycopg.OperationalError, psycopg.InterfaceError):
            raise
        except psycopg.Error as error:
            raise StoreError(f"{self.address}: the server refused ({_kind(error)})") from None

    def close(self) -> None:
        """End the connection; the next work opens another."""
        with self._running:
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
        pass  # what it says of an address that it cannot read may hold the password
    raise ConfigError(_EXPECTED)


def _why_refused(said: str) -> tuple[str, str]:
    """Why there is no connection, and what to do."""
    if "password" in said:
        return "the password is missing or wrong", "set it in PGPASSWORD or in ~/.pgpass"
    if "does not exist" in said and "database" in said:
        return "there is no such database", "create it with createdb"
    if "does not exist" in said and "role" in said:
        return "there is no such user", "name another in the address"
    return "no PostgreSQL server answers there", "check the address of --store"


def _kind(error: Any) -> str:
    """What kind of error it is; the texts of the server can be long, and hold values."""
    said = error.diag.message_primary if error.diag is not None else None
    return str(said or type(error).__name__).splitlines()[0]
