"""Authentication and security headers. Knows no model."""

import hmac
import ipaddress
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from redraft.server.http import errors

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
_HOST = re.compile(r"(?:\[(?P<address>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::[0-9]{1,5})?")
PROTECTED = ("/v1/", "/infill/", "/props/", "/metrics/")
"""Path prefixes that need the token; health checks reveal only the names of the models."""


@dataclass(frozen=True)
class SecurityConfig:
    """The required token, the accepted names in the Host header, and limits on request bodies.

    `names=None` accepts any Host: right for a server with a token that is not on loopback.
    """

    token: str | None = None
    names: frozenset[str] | None = LOOPBACK_NAMES
    max_bytes: int = 8_000_000
    max_total_bytes: int = 128_000_000  # of all bodies together
    read_seconds: float = 30.0


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach a server that binds to `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def names_of(host: str) -> frozenset[str] | None:
    """Return the Host names to accept for a server on `host`; None (any) unless on loopback."""
    return LOOPBACK_NAMES | {host.lower()} if is_loopback(host) else None


class HttpMiddleware(ABC):
    """Base class of ASGI middleware: `handle` gets the requests, `app` everything else."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to `handle`."""
        await (self.handle if scope["type"] == "http" else self.app)(scope, receive, send)

    @abstractmethod
    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to a request, or pass it on to `app`."""


class SecurityHeaders(HttpMiddleware):
    """Adds security headers, and responds with 500 to unexpected errors."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        has_started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal has_started
            if message["type"] == "http.response.start":
                has_started = True
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            await self.app(scope, receive, send_with_headers)
        except Exception as error:
            response = errors.internal_error(error)
            if not has_started:
                await response(scope, receive, send_with_headers)


class Authentication(HttpMiddleware):
    """Refuses foreign Host names and wrong or missing tokens."""

    def __init__(self, app: ASGIApp, config: SecurityConfig) -> None:
        super().__init__(app)
        self._config = config

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        respond = self._refusal(scope, Headers(scope=scope)) or self.app
        await respond(scope, receive, send)

    def _refusal(self, scope: Scope, headers: Headers) -> ASGIApp | None:
        # against DNS rebinding: a site that resolves to this machine sends its own name
        names = self._config.names
        if names is not None and _host_name(headers.get("host", "")) not in names:
            return errors.error_response(
                403, "this server accepts requests to localhost only; use http://127.0.0.1"
            )
        path = f"{scope['path']}/"
        if path.startswith(PROTECTED) and not self._is_authorised(headers):
            return errors.error_response(
                401,
                "a token is needed; send the header Authorization: Bearer TOKEN",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return None

    def _is_authorised(self, headers: Headers) -> bool:
        if self._config.token is None:
            return True
        scheme, _, token = headers.get("authorization", "").partition(" ")
        given = token.strip().encode("latin-1", errors="replace")
        is_right = hmac.compare_digest(given, self._config.token.encode())
        return is_right and scheme.lower() == "bearer"


def _host_name(host: str) -> str:
    """Return the name in a Host header, without port and brackets; empty if it is malformed."""
    match = _HOST.fullmatch(host)
    return (match["address"] or match["name"]).lower() if match else ""
