"""The HTTP server: messages in, messages out. What they mean is for the models that it hosts."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import HTMLResponse

from redraft import __version__
from redraft.serving.http import problems, website
from redraft.serving.http.hosting import Hosting, HostingConfig, Loader
from redraft.serving.http.metrics import CountRequests, Metrics
from redraft.serving.http.routes import health_routes, model_routes
from redraft.serving.http.security import Gate, Intake, SecurityConfig, Shield

Background = Callable[[Hosting], Awaitable[None]]
"""Something that goes on while the server runs, such as looking for changed files."""


@dataclass(frozen=True)
class AppConfig:
    """How models are run, who may ask, and where the files of the page are."""

    hosting: HostingConfig = field(default_factory=HostingConfig)
    security: SecurityConfig = field(default_factory=SecurityConfig)
    page: Path = website.PAGE


def create_app(
    loaders: Mapping[str, Loader],
    config: AppConfig | None = None,
    *,
    background: Sequence[Background] = (),
) -> FastAPI:
    """The application; its models are loaded, each in its own thread, when it starts."""
    config = config or AppConfig()
    metrics = Metrics()

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        hosting = Hosting(loaders, config.hosting, observe=metrics.observe_batch)
        app.state.hosting = hosting
        tasks = [asyncio.ensure_future(_keep(each, hosting)) for each in background]
        yield
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.to_thread(hosting.close)

    app = FastAPI(
        title="Redraft",
        version=__version__,
        description="Retrieves the example that is easiest to edit into the answer, edits it, and "
        "shows the source. Where the server has a token, send `Authorization: Bearer TOKEN`.",
        lifespan=lifespan,
        docs_url=None,  # FastAPI's pages load scripts from another origin
        redoc_url=None,
    )
    app.include_router(health_routes(metrics))
    app.include_router(model_routes())
    _add_page(app, config.page)
    problems.install(app)
    # the last that is added is the first that is asked
    app.add_middleware(Intake, config=config.security)
    app.add_middleware(Gate, config=config.security)
    app.add_middleware(Shield)
    app.add_middleware(CountRequests, metrics=metrics)
    return app


def _add_page(app: FastAPI, folder: Path) -> None:
    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return website.routes_page(app.openapi())

    routes = website.page_routes(folder)
    if not routes:
        app.add_api_route("/", website.plain_page, include_in_schema=False)
    app.router.routes.extend(routes)


async def _keep(background: Background, hosting: Hosting) -> None:
    """Run it until the server stops; if it fails, the server goes on without."""
    try:
        await background(hosting)
    except Exception as error:
        problems.note(error)
