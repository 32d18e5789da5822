"""The static files of the web page, and a list of the routes. Loads nothing from other origins."""

from collections.abc import Awaitable, Callable
from html import escape
from http import HTTPStatus
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles

PAGE = Path(__file__).parent / "page"
CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
}
"""Served file types. Explicit, since the system's table of types may differ."""

_RANGES = frozenset({b"range", b"if-range"})
_FRAME = (
    '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Redraft</title>\n{}\n</html>'
)


def page_routes(folder: Path) -> list[Route]:
    """Return a route per file of the page and `/` for its index; none if there is no index.

    Not a mount, since that would handle every path that is requested with a wrong method.
    """
    if not (folder / "index.html").is_file():
        return []
    files = StaticFiles(directory=folder)
    names = [
        path.relative_to(folder).as_posix()
        for path in sorted(folder.rglob("*"))
        if path.suffix in CONTENT_TYPES
    ]
    routes = [Route(f"/{name}", _file(files, name)) for name in names]
    return [Route("/", _file(files, "index.html")), *routes]


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


def plain_page() -> HTMLResponse:
    """Return the page at `/` for a server without a web page."""
    text = (
        "<h1>Redraft</h1>\n"
        '<p>This server has no web page; see <a href="/docs">the routes</a> or '
        '<a href="/openapi.json">the OpenAPI document</a>.</p>'
    )
    return HTMLResponse(_FRAME.format(text))


def routes_page(contract: dict[str, Any]) -> HTMLResponse:
    """Return a page with the routes of an OpenAPI document and their summaries."""
    rows = "\n".join(
        f"<dt><code>{method.upper()} {escape(path)}</code></dt>\n"
        f"<dd>{escape(operation.get('summary', ''))}</dd>"
        for path, operations in contract["paths"].items()
        for method, operation in operations.items()
    )
    text = (
        "<h1>Routes</h1>\n"
        '<p>Request and response schemas: <a href="/openapi.json">/openapi.json</a>.</p>\n'
        f"<dl>\n{rows}\n</dl>"
    )
    return HTMLResponse(_FRAME.format(text))
