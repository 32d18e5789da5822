"""A server process: the address it binds, the models it loads, and how it stops."""

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
from redraft.serving.http.app import AppConfig, Background, create_app
from redraft.serving.http.hosting import Hosting, Loader
from redraft.serving.http.security import is_loopback

if TYPE_CHECKING:
    from redraft.serving.served_model import ServedModel

GRACE_SECONDS = 5
"""What a stopping server waits beyond the time limit of the last request."""

LONGEST_HEAD = 65_536
"""Bytes of a request's first line and headers: as many ids as may be removed at once fit in."""

_SENDABLE = re.compile(r"[!-~]([ -~]*[!-~])?")
_LOADING = threading.Lock()


@dataclass(frozen=True)
class Address:
    """Where a server is asked; port 0 is any that is free."""

    host: str = "127.0.0.1"
    port: int = 8000


def check_exposure(host: str, token: str | None) -> None:
    """Refuse to serve other machines without a token."""
    if not is_loopback(host) and not token:
        raise ConfigError(
            f"--host {host}: other machines could ask without a token; "
            "set one with the environment variable REDRAFT_TOKEN, or with --token"
        )


def check_token(token: str | None) -> None:
    """Refuse a token that could not be sent: nobody would ever be let in."""
    if token and not _SENDABLE.fullmatch(token):
        raise ConfigError(
            "--token: a header cannot carry it as it is; use ASCII letters, digits and signs, "
            "and no spaces or line ends around them"
        )


def loader(name: str, folder: Path, *, is_kept: bool = True, store: str | None = None) -> Loader:
    """What loads a folder's model under this name; if kept, what is added is written there."""

    def load() -> "ServedModel":
        # two threads that import the same modules in different orders would find them half-made
        with _LOADING:
            from redraft.retrieve_and_edit import RetrieveAndEdit
            from redraft.serving.served_model import ServedModel

            model = RetrieveAndEdit.load(folder, store=store)
            return ServedModel(name, model, folder if is_kept else None)

    return load


def serve(
    loaders: Mapping[str, Loader],
    address: Address,
    config: AppConfig,
    *,
    announce: Callable[[str], None],
    background: Sequence[Background] = (),
) -> None:
    """Answer until SIGTERM or Ctrl-C; requests that were taken are answered before it returns."""
    check_exposure(address.host, config.security.token)
    has_models = True

    async def leave_if_none_loads(hosting: Hosting) -> None:
        nonlocal has_models
        await hosting.loaded()
        has_models = bool(hosting.ready)
        server.should_exit |= not has_models

    app = create_app(loaders, config, background=[leave_if_none_loads, *background])
    server = _Server(_uvicorn_config(app, config), announce)
    with bind(address) as listener, _quiet_signals():
        server.url = url_of(address.host, listener.getsockname()[1])
        server.run(sockets=[listener])
    if not has_models:
        raise ModelError("no model could be loaded; the lines above tell why")


class _Server(uvicorn.Server):
    """Uvicorn, which says its address as soon as it answers there."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[str], None]) -> None:
        super().__init__(config)
        self.url = ""
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup(sockets)
        self._announce(self.url)


def _uvicorn_config(app: FastAPI, config: AppConfig) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        access_log=False,  # its lines hold what was asked
        log_config=None,
        http="h11",  # whatever else is installed: its limit is the next line
        h11_max_incomplete_event_size=LONGEST_HEAD,
        lifespan="on",
        ws="none",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=round(config.hosting.time_limit) + GRACE_SECONDS,
    )


@contextlib.contextmanager
def _quiet_signals() -> Iterator[None]:
    """Signals that stop a server end it as planned: Uvicorn raises them again when it is done."""
    before = {each: signal.signal(each, _ignore) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _ignore(*_: object) -> None:
    pass


def bind(address: Address) -> socket.socket:
    """A socket at the address, or what is in the way."""
    host, port = address.host, address.port
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ConfigError(f"--host {host}: not an address of this machine") from error
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(place)
    except OSError as error:
        bound.close()
        raise ConfigError(_in_the_way(address, error)) from error
    return bound


def url_of(host: str, port: int) -> str:
    """The address as it is asked."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _in_the_way(address: Address, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"--port {address.port}: in use; choose another, or 0 for any that is free"
    if error.errno == errno.EACCES:
        return f"--port {address.port}: not allowed; choose one from 1024 on"
    return f"--host {address.host}: not an address of this machine"
