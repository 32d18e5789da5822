"""Limits on connections: how many are open, and how long each may keep the server waiting.

A client that sends no request, or half of one, or does not read its response is disconnected. At
the limit, a new connection replaces the one that has been waiting for its client longest. Knows
HTTP but no route and no model.
"""

import asyncio
import errno
import logging
import resource
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from redraft.server.http import errors
from redraft.server.http.middleware import HEADERS

MAX_CONNECTIONS = 1_000
"""Limit of open connections, if there are enough file descriptors."""

BACKLOG = 512
"""Connections that the system queues until they are accepted."""

RETRY_SECONDS = 0.05
"""Pause before the next attempt to accept a connection."""

_OUT_OF_RESOURCES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_REASONS = {
    400: "the request is not valid HTTP",
    408: "the headers of the request did not arrive in time",
    413: "the request is too large; send less",
    431: "the first line and the headers of the request are too large; send less",
    501: "the transfer encoding of the request is not supported",
}

log = logging.getLogger(__name__)


def max_connections() -> int:
    """Return the limit of open connections, which leaves file descriptors for other files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    return max(8, min(MAX_CONNECTIONS, soft - max(48, soft // 4)))


@dataclass(frozen=True)
class ConnectionConfig:
    """The limit of open connections, and timeouts in seconds.

    `head`: for the first line and the headers of a request; `idle`: between two requests;
    `stalled`: while the client reads nothing of a response.
    """

    max_open: int = field(default_factory=max_connections)
    head: float = 10.0
    idle: float = 5.0
    stalled: float = 30.0


class GuardedProtocol(H11Protocol):
    """Uvicorn's HTTP protocol with timeouts and JSON error responses."""

    def __init__(
        self, *, limits: ConnectionConfig, server_state: ServerState, **uvicorn_arguments: Any
    ) -> None:
        super().__init__(server_state=server_state, **uvicorn_arguments)
        self.waiting_since = 0.0
        self._limits = limits
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    @property
    def is_waiting(self) -> bool:
        """True if the client has to act: send a request, the rest of one, or read."""
        if self.cycle is None or self.cycle.response_complete:
            return True
        return bool(self.cycle.more_body) or self._write_timer is not None

    def disconnect(self) -> None:
        """Disconnect the client."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()  # `close` would wait until the client has read everything
        else:
            self.transport.close()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timeout for the headers of a request."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # so that any stall calls `pause_writing`
        self.waiting_since = self.loop.time()
        self._watch_head()

    def data_received(self, data: bytes) -> None:
        """Process data, and stop the timeout once the headers are complete."""
        super().data_received(data)
        self._watch_head()

    def on_response_complete(self) -> None:
        """Start to wait for the next request."""
        self.waiting_since = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel all timers."""
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        for timer in (self._head_timer, self._write_timer):
            if timer is not None:
                timer.cancel()

    def pause_writing(self) -> None:
        """Start the timeout for the client to read."""
        super().pause_writing()
        self._watch_writing()

    def resume_writing(self) -> None:
        """Stop the timeout for the client to read."""
        super().resume_writing()
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 (overrides Uvicorn's)
        """Refuse a malformed request; called inside the exception handler."""
        self._refuse(getattr(sys.exc_info()[1], "error_status_hint", 400))

    def _refuse(self, status: int) -> None:
        """Send an error response, unless another response has started, and disconnect."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True  # the application must send no more
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            message = _REASONS.get(status, _REASONS[400])
            headers = {**HEADERS, "Connection": "close", "Cache-Control": "no-store"}
            response = errors.error_response(status, message, headers=headers)
            for event in (
                h11.Response(status_code=status, headers=response.raw_headers),
                h11.Data(data=bytes(response.body)),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _watch_head(self) -> None:
        """Limit the time for the headers, counted from the first byte or the connection."""
        is_head_due = self.conn.their_state is h11.IDLE and not self.transport.is_closing()
        if is_head_due and self._head_timer is None:
            self._head_timer = self.loop.call_later(self._limits.head, self._head_timed_out)
        elif not is_head_due and self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_timed_out(self) -> None:
        has_started = bool(self.conn.trailing_data[0])
        if has_started and not self.transport.is_closing():
            self._refuse(408)
        else:
            self.disconnect()

    def _watch_writing(self) -> None:
        """Disconnect the client if it reads nothing until the timeout."""
        before = self.transport.get_write_buffer_size()

        def check() -> None:
            if self.transport.get_write_buffer_size() >= before:
                self.transport.abort()
            else:
                self._watch_writing()

        self._write_timer = self.loop.call_later(self._limits.stalled, check)


async def accept_connections(
    listener: socket.socket,
    connect: Callable[[], GuardedProtocol],
    *,
    state: ServerState,
    limit: int,
) -> None:
    """Accept connections until cancelled, at most `limit` at a time.

    Unlike this, asyncio's servers busy-loop when no file descriptor is left.
    """
    loop = asyncio.get_running_loop()
    listener.setblocking(False)
    while True:
        while len(state.connections) >= limit:
            await asyncio.sleep(0 if _evict(state) else RETRY_SECONDS)
        try:
            connection, _ = await loop.sock_accept(listener)
        except OSError as error:
            is_full = error.errno in _OUT_OF_RESOURCES
            if is_full:
                log.warning("no more connections can be opened: %s", error.strerror)
            await asyncio.sleep(0 if is_full and _evict(state) else RETRY_SECONDS)
            continue
        try:
            await loop.connect_accepted_socket(connect, connection)
        except OSError:  # the client has disconnected
            connection.close()


def _evict(state: ServerState) -> bool:
    """Disconnect the client that has been idle longest; returns False if none is idle."""
    waiting = [
        connection
        for connection in state.connections
        if isinstance(connection, GuardedProtocol)
        and connection.is_waiting
        and not connection.transport.is_closing()
    ]
    if not waiting:
        return False
    min(waiting, key=lambda connection: connection.waiting_since).disconnect()
    return True
