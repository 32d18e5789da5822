"""The FastAPI application: routes, middleware, error handlers and background tasks."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import HTMLResponse

from redraft import __version__
from redraft.server.http import errors, static
from redraft.server.http.body_limit import BodyLimit
from redraft.server.http.connections import ConnectionConfig
from redraft.server.http.metrics import CountRequests, Metrics
from redraft.server.http.middleware import Authentication, SecurityConfig, SecurityHeaders
from redraft.server.http.model_pool import Loader, ModelPool, ModelPoolConfig
from redraft.server.http.routes import health_routes, model_routes

Background = Callable[[ModelPool], Awaitable[None]]
"""A task that runs as long as the server, such as watching files."""


@dataclass(frozen=True)
class AppConfig:
    """Configuration of the model pool, security and connections; `page` holds the static files."""

    pool: ModelPoolConfig = field(default_factory=ModelPoolConfig)
    security: SecurityConfig = field(default_factory=SecurityConfig)
    connections: ConnectionConfig = field(default_factory=ConnectionConfig)
    page: Path = static.PAGE


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
    app.include_router(health_routes(metrics))
    app.include_router(model_routes())
    _add_page(app, config.page)
    errors.install(app)
    # the last middleware added runs first
    app.add_middleware(BodyLimit, config=config.security)
    app.add_middleware(Authentication, config=config.security)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(CountRequests, metrics=metrics)
    return app


def _add_page(app: FastAPI, folder: Path) -> None:
    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return static.routes_page(app.openapi())

    routes = static.page_routes(folder)
    if not routes:
        app.add_api_route("/", static.plain_page, include_in_schema=False)
    app.router.routes.extend(routes)


async def _run(background: Background, pool: ModelPool) -> None:
    """Run a background task until the server stops; if it fails, log the error."""
    try:
        await background(pool)
    except Exception as error:
        errors.log_error(error)
