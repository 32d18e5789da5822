"""The server process: binds the address, loads the models, and shuts down gracefully."""

import asyncio
import contextlib
import errno
import re
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn
from fastapi import FastAPI

from redraft.errors import ConfigError, ModelError
from redraft.server.http.app import AppConfig, Background, create_app
from redraft.server.http.connections import (
    ConnectionConfig,
    GuardedProtocol,
    accept_connections,
)
from redraft.server.http.log_limit import limited_logs
from redraft.server.http.middleware import is_loopback
from redraft.server.http.model_pool import Loader, ModelPool

if TYPE_CHECKING:
    from redraft.server.served_model import ServedModel

GRACE_SECONDS = 5
"""Seconds that shutdown waits beyond the time limit of the last request."""

MAX_HEAD_BYTES = 65_536
"""Bytes of a request's first line and headers: enough for the ids of the largest removal."""

_LIMITED_LOGS = ("uvicorn.error", "asyncio", "redraft.server.http.connections")
"""Loggers that a client without a token can trigger."""

_HEADER_VALUE = re.compile(r"[!-~]([ -~]*[!-~])?")
_LOADING = threading.Lock()


@dataclass(frozen=True)
class BindAddress:
    """The address of a server; port 0 stands for any free port."""

    host: str = "127.0.0.1"
    port: int = 8000


def check_exposure(host: str, token: str | None) -> None:
    """Refuse to serve other machines without a token."""
    if not is_loopback(host) and not token:
        raise ConfigError(
            f"--host {host}: other machines could send requests without a token; "
            "set one with the environment variable REDRAFT_TOKEN, or with --token"
        )


def check_token(token: str | None) -> None:
    """Refuse a token that no client could send."""
    if token and not _HEADER_VALUE.fullmatch(token):
        raise ConfigError(
            "--token: not a valid header value; use ASCII letters, digits and punctuation, "
            "without leading or trailing white space"
        )


def loader(name: str, folder: Path, *, persist: bool = True, store: str | None = None) -> Loader:
    """Return a function that loads the model in `folder`; if `persist`, changes are saved there."""

    def load() -> "ServedModel":
        # one import at a time: threads could see partially initialised modules
        with _LOADING:
            from redraft.server.served_model import ServedModel

            return ServedModel.open(name, folder, store=store, persist=persist)

    return load


def serve(
    loaders: Mapping[str, Loader],
    address: BindAddress,
    config: AppConfig,
    *,
    announce: Callable[[str], None],
    background: Sequence[Background] = (),
) -> None:
    """Serve until SIGTERM or Ctrl-C; accepted requests are finished before this returns.

    `announce` is called with the URL as soon as the server accepts connections.
    """
    check_exposure(address.host, config.security.token)
    has_models = True

    async def exit_without_models(pool: ModelPool) -> None:
        nonlocal has_models
        await pool.loaded()
        has_models = bool(pool.ready)
        server.should_exit |= not has_models

    app = create_app(loaders, config, background=[exit_without_models, *background])
    server = _Server(_uvicorn_config(app, config), config.connections, announce)
    with bind(address) as listener, _quiet_signals(), limited_logs(_LIMITED_LOGS):
        server.url = url_of(address.host, listener.getsockname()[1])
        server.run(sockets=[listener])
    if not has_models:
        raise ModelError("no model could be loaded; see the errors above")


class _Server(uvicorn.Server):
    """Uvicorn with limited connections; announces its URL on startup."""

    def __init__(
        self,
        config: uvicorn.Config,
        connections: ConnectionConfig,
        announce: Callable[[str], None],
    ) -> None:
        super().__init__(config)
        self.url = ""
        self._limits = connections
        self._announce = announce
        self._accepting: list[asyncio.Task[None]] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept connections at the sockets."""
        await super().startup([])
        for listener in sockets or []:
            accepting = accept_connections(
                listener, self._connect, state=self.server_state, limit=self._limits.max_open
            )
            self._accepting.append(asyncio.create_task(accepting))
        self._announce(self.url)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting connections and finish the open requests."""
        for accepting in self._accepting:
            accepting.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        await super().shutdown(sockets)

    def _connect(self) -> GuardedProtocol:
        return GuardedProtocol(
            limits=self._limits,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )


def _uvicorn_config(app: FastAPI, config: AppConfig) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        access_log=False,  # it would log the text of requests
        log_config=None,
        http="h11",  # even if httptools is installed: only h11 has the limit below
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        lifespan="on",
        ws="none",
        timeout_keep_alive=config.connections.idle,  # type: ignore[arg-type]
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=round(config.pool.time_limit) + GRACE_SECONDS,
    )


@contextlib.contextmanager
def _quiet_signals() -> Iterator[None]:
    """Ignore the signals that Uvicorn raises again after a graceful shutdown."""
    signals = (signal.SIGTERM, signal.SIGINT)
    handlers = {number: signal.signal(number, _ignore) for number in signals}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _ignore(*_: object) -> None:
    pass


def bind(address: BindAddress) -> socket.socket:
    """Return a socket bound to the address; raises `ConfigError` if that is not possible."""
    host, port = address.host, address.port
    try:
        family, kind, protocol, _, socket_address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ConfigError(f"--host {host}: not an address of this machine") from error
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(socket_address)
    except OSError as error:
        bound.close()
        raise ConfigError(_bind_error(address, error)) from error
    return bound


def url_of(host: str, port: int) -> str:
    """Return the URL of a host and port."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _bind_error(address: BindAddress, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"--port {address.port}: in use; choose another, or 0 for any free port"
    if error.errno == errno.EACCES:
        return f"--port {address.port}: not allowed; choose 1024 or higher"
    return f"--host {address.host}: not an address of this machine"
