"""What the server counts, as Prometheus reads it: routes, statuses and sizes, never a text."""

import time
from collections.abc import Mapping

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_TYPE = CONTENT_TYPE_LATEST
CLIENT_GONE = 499
"""The status that is counted where the client left before there was one."""

_METHODS = frozenset({"GET", "HEAD", "POST", "DELETE"})
_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_SIZES = (1, 2, 4, 8, 16, 32, 64)


class Metrics:
    """The counters of one server."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.requests = Counter(
            "redraft_requests",
            "Requests answered.",
            ["route", "status"],
            registry=self._registry,
        )
        self.seconds = Histogram(
            "redraft_request_seconds",
            "From the request to the end of its answer.",
            ["route"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self.in_flight = Gauge(
            "redraft_requests_in_flight", "Requests not yet answered.", registry=self._registry
        )
        self.batch_sizes = Histogram(
            "redraft_batch_size",
            "Inputs that a model was asked for at once.",
            ["model"],
            buckets=_SIZES,
            registry=self._registry,
        )
        self.examples = Gauge(
            "redraft_examples", "Examples of a model.", ["model"], registry=self._registry
        )

    def observe_batch(self, model: str, size: int) -> None:
        """Count one call of a model."""
        self.batch_sizes.labels(model).observe(size)

    def render(self, examples: Mapping[str, int]) -> bytes:
        """All counts as text, with how many examples each model has now."""
        for name, count in examples.items():
            self.examples.labels(name).set(count)
        return generate_latest(self._registry)


class CountRequests:
    """ASGI middleware: counts every request by its route, which holds no value of a parameter."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), CLIENT_GONE

        async def note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self._metrics.in_flight.inc()
        try:
            await self._app(scope, receive, note_status)
        finally:
            self._metrics.in_flight.dec()
            route = _route(scope)
            self._metrics.requests.labels(route, str(status)).inc()
            self._metrics.seconds.labels(route).observe(time.perf_counter() - started)


def _route(scope: Scope) -> str:
    """The method and the path's pattern; what fits no route is one class, however it is named."""
    if "route" not in scope or scope["method"] not in _METHODS:
        return "other"
    return f"{scope['method']} {getattr(scope['route'], 'path', '') or '/'}"
