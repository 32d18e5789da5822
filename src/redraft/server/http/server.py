"""The server process: binds the address, loads the models, and shuts down gracefully."""

import asyncio
import errno
import logging
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn
from fastapi import FastAPI

from redraft.errors import ConfigError, ModelError
from redraft.server.http.app import AppConfig, Background, create_app
from redraft.server.http.connections import (
    BACKLOG,
    ConnectionConfig,
    GuardedProtocol,
    accept_connections,
)
from redraft.server.http.middleware import is_loopback
from redraft.server.http.model_pool import Loader, ModelPool

if TYPE_CHECKING:
    from redraft.completion.lm_completion import InstantCompleter
    from redraft.lm.client import LmClient
    from redraft.server.served_model import ServedModel

GRACE_SECONDS = 5
"""Seconds that shutdown waits beyond the time limit of the last request."""

MAX_HEAD_BYTES = 65_536
"""Bytes of a request's first line and headers: enough for the ids of the largest removal."""

MAX_RECORDS = 5
"""Log records per line of code and period, of loggers that clients can trigger."""

LOG_PERIOD = 60.0
"""Seconds."""

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


def loader(
    name: str,
    folder: Path,
    *,
    persist: bool = True,
    store: str | None = None,
    lm: "LmClient | None" = None,
    completer: "InstantCompleter | None" = None,
) -> Loader:
    """Return a function that loads the model in `folder`; if `persist`, changes are saved there.

    A model that was fitted with a language model asks it through `lm`; one of functions completes
    with `completer`.
    """

    def load() -> "ServedModel":
        # one import at a time: threads could see partially initialised modules
        with _LOADING:
            from redraft.server.served_model import ServedModel

            return ServedModel.open(
                name, folder, store=store, persist=persist, lm=lm, completer=completer
            )

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

    async def exit_without_models(pool: ModelPool) -> None:
        await pool.loaded()
        server.should_exit |= not pool.ready

    app = create_app(loaders, config, background=[exit_without_models, *background])
    server = _Server(_uvicorn_config(app, config), config.connections)
    limit = LogLimit()
    for name in _LIMITED_LOGS:
        logging.getLogger(name).addFilter(limit)
    with bind(address) as listener:
        url = url_of(address.host, listener.getsockname()[1])
        server.on_startup = lambda: announce(url)
        server.run(sockets=[listener])
    if all(model.failure for model in app.state.pool.models.values()):
        raise ModelError("no model could be loaded; see the errors above")


class _Server(uvicorn.Server):
    """Uvicorn with limited connections; calls `on_startup` when it accepts them."""

    def __init__(self, config: uvicorn.Config, connections: ConnectionConfig) -> None:
        super().__init__(config)
        self.on_startup: Callable[[], None] = lambda: None
        self._limits = connections
        self._accepting: list[asyncio.Task[None]] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept connections at the sockets."""
        await super().startup([])
        for listener in sockets or []:
            accepting = accept_connections(
                listener, self._connect, state=self.server_state, limit=self._limits.max_open
            )
            self._accepting.append(asyncio.create_task(accepting))
        self.on_startup()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting connections and finish the open requests."""
        for accepting in self._accepting:
            accepting.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Shut down gracefully; Uvicorn's own handler would raise the signal again afterwards."""
        self.force_exit |= self.should_exit and sig == signal.SIGINT
        self.should_exit = True

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


class LogLimit(logging.Filter):
    """Passes at most `MAX_RECORDS` records per line of code and period."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._lines: dict[tuple[str, int], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True if the record is logged; the last one says that more are suppressed."""
        line, now = (record.pathname, record.lineno), self._clock()
        started, count = self._lines.get(line, (now, 0))
        if now - started >= LOG_PERIOD:
            started, count = now, 0
        count += 1
        self._lines[line] = started, count
        if count == MAX_RECORDS:
            record.msg = f"{record.getMessage()} (further messages suppressed for a minute)"
            record.args = ()
        return count <= MAX_RECORDS


def bind(address: BindAddress) -> socket.socket:
    """Return a socket that listens at the address; raises `ConfigError` if it cannot."""
    host, port = address.host, address.port
    try:
        family, *_, resolved = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        is_ipv6 = family == socket.AF_INET6
        listening = socket.create_server(
            resolved, family=family, backlog=BACKLOG, dualstack_ipv6=is_ipv6
        )
        # asyncio sets this only on sockets with an explicit protocol; without it the body of a
        # response waits for the acknowledgement of its headers, 40 ms
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except OSError as error:
        reasons = {
            errno.EADDRINUSE: f"--port {port}: in use; choose another, or 0 for any free port",
            errno.EACCES: f"--port {port}: not allowed; choose 1024 or higher",
        }
        unknown = f"--host {host}: not an address of this machine"
        raise ConfigError(reasons.get(error.errno or 0, unknown)) from error


def url_of(host: str, port: int) -> str:
    """Return the URL of a host and port."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
