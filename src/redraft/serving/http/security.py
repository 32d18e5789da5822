"""Who may ask, for how much, and what browsers may do with the answers. Knows no model."""

import asyncio
import hmac
import ipaddress
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from redraft.serving.http import problems

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
}
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
GUARDED = ("/v1", "/metrics")
"""Where paths begin that need the token; health tells the names of models and no more."""


@dataclass(frozen=True)
class SecurityConfig:
    """The token that is asked for, if any, the names the server answers to, and how much it reads.

    Without names every Host is answered: right for a server with a token that is not on loopback.
    """

    token: str | None = None
    names: frozenset[str] | None = LOOPBACK_NAMES
    most_bytes: int = 8_000_000
    read_seconds: float = 30.0


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that binds to this host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def names_of(host: str) -> frozenset[str] | None:
    """The names under which a server on this host is asked; any where it is not loopback."""
    return LOOPBACK_NAMES | {host.lower()} if is_loopback(host) else None


class Shield:
    """ASGI middleware: security headers on every answer, and an answer to every failure."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        has_begun = False

        async def guarded(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            await self._app(scope, receive, guarded)
        except Exception as error:
            response = problems.unexpected(error)
            if not has_begun:
                await response(scope, receive, guarded)


class Gate:
    """ASGI middleware: refuses foreign names and missing tokens."""

    def __init__(self, app: ASGIApp, config: SecurityConfig) -> None:
        self._app = app
        self._config = config

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            if refusal := self._refusal(scope, headers):
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _refusal(self, scope: Scope, headers: Headers) -> ASGIApp | None:
        # a page of another site that resolves its own name to this machine sends that name
        names = self._config.names
        if names is not None and _host_name(headers.get("host", "")) not in names:
            return problems.answer(
                403, "this server answers to localhost only; ask http://127.0.0.1"
            )
        if _is_guarded(scope["path"]) and not self._is_known(headers):
            advice = "send the header Authorization: Bearer TOKEN"
            return problems.answer(
                401, f"a token is needed; {advice}", headers={"WWW-Authenticate": "Bearer"}
            )
        return None

    def _is_known(self, headers: Headers) -> bool:
        if self._config.token is None:
            return True
        scheme, _, token = headers.get("authorization", "").partition(" ")
        given = token.strip().encode("latin-1", errors="replace")
        is_right = hmac.compare_digest(given, self._config.token.encode())
        return is_right and scheme.lower() == "bearer"


class Intake:
    """ASGI middleware: reads a body within limits, and stops when the client has gone."""

    def __init__(self, app: ASGIApp, config: SecurityConfig) -> None:
        self._app = app
        self._config = config

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its whole body, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._config.most_bytes
        try:
            body = await asyncio.wait_for(_read(receive, limit), self._config.read_seconds)
        except _TooLargeError:
            message = f"the body is larger than {limit:,} bytes; send less"
            refusal = problems.answer(413, message, headers=_LAST)
            await refusal(scope, receive, send)
        except asyncio.TimeoutError:
            refusal = problems.answer(408, "the body did not come in time", headers=_LAST)
            await refusal(scope, receive, send)
        except _ClientGoneError:
            return
        else:
            await self._run(scope, receive, send, body=body)

    async def _run(self, scope: Scope, receive: Receive, send: Send, *, body: bytes) -> None:
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def replay() -> Message:
            if message := next(messages, None):
                return message
            never: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
            return await never  # that the client has gone is seen below

        running = asyncio.ensure_future(self._app(scope, replay, send))
        gone = asyncio.ensure_future(_gone(receive))
        try:
            await asyncio.wait({running, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            has_left = not running.done()
            if has_left:
                running.cancel()
        try:
            await running
        except asyncio.CancelledError:
            if not has_left:
                raise


_LAST = {"Connection": "close"}
"""Else what is left of a body would be read for ever."""


class _TooLargeError(Exception):
    """A body beyond the limit."""


class _ClientGoneError(Exception):
    """A client that left before its request was whole."""


async def _read(receive: Receive, limit: int) -> bytes:
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _ClientGoneError
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise _TooLargeError
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _is_guarded(path: str) -> bool:
    return any(path == each or path.startswith(f"{each}/") for each in GUARDED)


def _host_name(host: str) -> str:
    """The name in a Host header, without the port and the brackets of an IPv6 address."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()
