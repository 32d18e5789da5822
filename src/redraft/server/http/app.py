"""The FastAPI application: routes, web page, middleware, error handlers and background tasks.

The page and the list of routes load nothing from other origins.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles

from redraft import __version__
from redraft.server.http import errors
from redraft.server.http.body_limit import BodyLimit
from redraft.server.http.connections import ConnectionConfig
from redraft.server.http.metrics import CountRequests, Metrics
from redraft.server.http.middleware import Authentication, SecurityConfig, SecurityHeaders
from redraft.server.http.model_pool import Loader, ModelPool, ModelPoolConfig
from redraft.server.http.routes import health_routes, llama_routes, model_routes

PAGE = Path(__file__).parent / "page"
CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""Served file types. Explicit, since the system's table of types may differ."""

_RANGES = frozenset({b"range", b"if-range"})

Background = Callable[[ModelPool], Awaitable[None]]
"""A task that runs as long as the server, such as watching files."""


@dataclass(frozen=True)
class AppConfig:
    """Configuration of the model pool, security and connections."""

    pool: ModelPoolConfig = field(default_factory=ModelPoolConfig)
    security: SecurityConfig = field(default_factory=SecurityConfig)
    connections: ConnectionConfig = field(default_factory=ConnectionConfig)


def create_app(
    loaders: Mapping[str, Loader],
    config: AppConfig | None = None,
    *,
    background: Sequence[Background] = (),
) -> FastAPI:
    """Return the application; on startup it loads each model in the model's own thread."""
    config = config or AppConfig()
    metrics = Metrics()

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        pool = ModelPool(loaders, config.pool, on_batch=metrics.observe_batch)
        app.state.pool = pool
        tasks = [asyncio.ensure_future(_run(task, pool)) for task in background]
        yield
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.to_thread(pool.close)

    app = FastAPI(
        title="Redraft",
        version=__version__,
        description="Retrieves the example that is easiest to edit into the output, edits it, and "
        "shows the source. If the server has a token, send `Authorization: Bearer TOKEN`.",
        lifespan=lifespan,
        docs_url=None,  # FastAPI's pages load scripts from another origin
        redoc_url=None,
    )
    app.state.metrics = metrics
    app.include_router(health_routes)
    app.include_router(model_routes)
    app.include_router(llama_routes)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return _routes_page(app.openapi())

    app.router.routes.extend(_page_routes(PAGE))
    errors.install(app)
    # the last middleware added runs first
    app.add_middleware(BodyLimit, config=config.security)
    app.add_middleware(Authentication, config=config.security)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(CountRequests, metrics=metrics)
    return app


async def _run(background: Background, pool: ModelPool) -> None:
    """Run a background task until the server stops; if it fails, log the error."""
    try:
        await background(pool)
    except Exception as error:
        errors.log_error(error)


def _page_routes(folder: Path) -> list[Route]:
    """Return a route per file of the page, and `/` for its index.

    Not a mount, since that would handle every path that is requested with a wrong method.
    """
    files = StaticFiles(directory=folder)
    names = sorted(path.name for path in folder.iterdir() if path.suffix in CONTENT_TYPES)
    paths = {"/": "index.html", **{f"/{name}": name for name in names}}
    return [Route(path, _file(files, name)) for path, name in paths.items()]


def _file(files: StaticFiles, name: str) -> Callable[[Request], Awaitable[Response]]:
    async def read(request: Request) -> Response:
        # ignore Range: the files are small, and Starlette's errors for it are plain text
        headers = [header for header in request.scope["headers"] if header[0] not in _RANGES]
        request.scope["headers"] = headers
        response = await files.get_response(name, request.scope)
        if response.status_code == HTTPStatus.OK:  # 304 has no content
            response.headers["Content-Type"] = CONTENT_TYPES[Path(name).suffix]
        response.headers["Cache-Control"] = "no-cache"  # revalidate; unchanged files are 304
        response.headers["Accept-Ranges"] = "none"
        return response

    return read


def _routes_page(contract: dict[str, Any]) -> HTMLResponse:
    """Return a page with the routes of an OpenAPI document and their summaries."""
    rows = "\n".join(
        f"<dt><code>{method.upper()} {escape(path)}</code></dt>\n"
        f"<dd>{escape(operation.get('summary', ''))}</dd>"
        for path, operations in contract["paths"].items()
        for method, operation in operations.items()
    )
    return HTMLResponse(f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Redraft</title>
<h1>Routes</h1>
<p>Request and response schemas: <a href="/openapi.json">/openapi.json</a>.</p>
<dl>
{rows}
</dl>
</html>""")
