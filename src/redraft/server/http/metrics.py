"""Prometheus metrics: routes, statuses and sizes, never the text of a request."""

import time
from collections.abc import Mapping

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from redraft.server.http.middleware import HttpMiddleware

CLIENT_GONE = 499
"""The status of a request whose client disconnected before the response."""

_METHODS = frozenset({"GET", "HEAD", "POST", "DELETE"})
_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_SIZES = (1, 2, 4, 8, 16, 32, 64)


class Metrics:
    """The metrics of one server."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self.requests = Counter(
            "redraft_requests", "Requests answered.", ["route", "status"], registry=registry
        )
        self.seconds = Histogram(
            "redraft_request_seconds",
            "Time from the request to the end of the response.",
            ["route"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.in_flight = Gauge(
            "redraft_requests_in_flight", "Requests not yet answered.", registry=registry
        )
        self.batch_sizes = Histogram(
            "redraft_batch_size",
            "Inputs per batch of predictions.",
            ["model"],
            buckets=_SIZES,
            registry=registry,
        )
        self.examples = Gauge(
            "redraft_examples", "Examples of a model.", ["model"], registry=registry
        )

    def observe_batch(self, model: str, size: int) -> None:
        """Record the size of a batch."""
        self.batch_sizes.labels(model).observe(size)

    def render(self, examples: Mapping[str, int]) -> bytes:
        """Return all metrics as text; `examples` maps a model's name to its number of examples."""
        for name, count in examples.items():
            self.examples.labels(name).set(count)
        return generate_latest(self._registry)


class CountRequests(HttpMiddleware):
    """Counts every request by its route, without the values of parameters."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        super().__init__(app)
        self._metrics = metrics

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        started, status = time.perf_counter(), CLIENT_GONE

        async def record_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self._metrics.in_flight.inc()
        try:
            await self.app(scope, receive, record_status)
        finally:
            self._metrics.in_flight.dec()
            route = _route(scope)
            self._metrics.requests.labels(route, str(status)).inc()
            self._metrics.seconds.labels(route).observe(time.perf_counter() - started)


def _route(scope: Scope) -> str:
    """Return the method and the pattern of the path; "other" if no route matches."""
    if "route" not in scope or scope["method"] not in _METHODS:
        return "other"
    return f"{scope['method']} {getattr(scope['route'], 'path', '') or '/'}"
