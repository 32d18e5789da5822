"""Limits on request bodies: size, time and memory. Knows no model."""

import asyncio
import re

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from redraft.server.http import errors
from redraft.server.http.middleware import HttpMiddleware, SecurityConfig

MAX_VALUES = 150_000
"""Values in a JSON body, since each costs time and memory to parse: somewhat above the largest
valid request, a thousand examples with 64 fields and 64 meta values each."""

SMALL_BODY = 65_536
"""Bodies up to this size do not count towards the total, so large ones cannot block them."""

_TOKEN = re.compile(rb'"[^"]*"|[,\[{]')
_CLOSE = {"Connection": "close"}
"""Without it the server would read the rest of a refused body."""


class BodyLimit(HttpMiddleware):
    """Limits bodies, and cancels requests whose client has disconnected."""

    def __init__(self, app: ASGIApp, config: SecurityConfig) -> None:
        super().__init__(app)
        self._config = config
        self._total = 0  # bytes of all large bodies in flight
        self._counting = asyncio.Lock()  # several counting threads would slow the event loop

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its whole body, or refuse it."""
        parts: list[bytes] = []
        try:
            await asyncio.wait_for(self._read(receive, parts), self._config.read_seconds)
            body = b"".join(parts)
            if not await self._has_few_values(body):
                raise HTTPException(
                    413, f"the body has more than {MAX_VALUES:,} values; send less at once"
                )
        except HTTPException as error:
            refusal = errors.error_response(error.status_code, error.detail, headers=_CLOSE)
            await refusal(scope, receive, send)
        except TimeoutError:
            refusal = errors.error_response(408, "the body did not arrive in time", headers=_CLOSE)
            await refusal(scope, receive, send)
        except ClientDisconnect:
            return
        else:
            await self._run(scope, receive, send, body=body)
        finally:
            self._total -= _counted(sum(map(len, parts)))

    async def _read(self, receive: Receive, parts: list[bytes]) -> None:
        """Read a body and append it to `parts`."""
        limit, max_total, size = self._config.max_bytes, self._config.max_total_bytes, 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            part = message.get("body", b"")
            before, size = _counted(size), size + len(part)
            if size > limit:
                raise HTTPException(413, f"the body is larger than {limit:,} bytes; send less")
            added = _counted(size) - before
            if added and self._total + added > max_total:
                raise HTTPException(503, "too many large requests at once; retry soon")
            self._total += added
            parts.append(part)
            if not message.get("more_body", False):
                return

    async def _has_few_values(self, body: bytes) -> bool:
        """Return True if a body is quick to parse; a parser cannot be stopped once it runs."""
        if sum(map(body.count, (b",", b"[", b"{"))) <= MAX_VALUES:
            return True
        async with self._counting:
            return await asyncio.to_thread(count_values, body) <= MAX_VALUES

    async def _run(self, scope: Scope, receive: Receive, send: Send, *, body: bytes) -> None:
        """Run the application; cancel it when the client disconnects."""
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def replay() -> Message:
            if message := next(messages, None):
                return message
            never: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
            return await never  # `_disconnected` watches for the end of the connection

        running = asyncio.ensure_future(self.app(scope, replay, send))
        disconnected = asyncio.ensure_future(_disconnected(receive))
        try:
            await asyncio.wait({running, disconnected}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            disconnected.cancel()
            was_cancelled = running.cancel()
        try:
            await running
        except asyncio.CancelledError:
            if not was_cancelled:
                raise


def _counted(size: int) -> int:
    """Return the bytes that a body of this size adds to the total."""
    return size if size > SMALL_BODY else 0


async def _disconnected(receive: Receive) -> None:
    """Return when the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass


def count_values(body: bytes) -> int:
    """Return an upper bound of the values in a JSON text; stop counting above `MAX_VALUES`.

    Commas and brackets within strings do not count.
    """
    count = 0
    for token in _TOKEN.finditer(body.replace(rb"\\", b"").replace(rb"\"", b"")):
        count += token.end() - token.start() == 1
        if count > MAX_VALUES:
            break
    return count
