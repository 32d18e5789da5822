"""What a browser is shown: the page's files, and what the routes are. Asks no other origin."""

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
"""What is served and as what: a machine's own table may differ, and other files are not shown."""

_FRAME = (
    '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Redraft</title>\n{}\n</html>'
)


def page_routes(folder: Path) -> list[Route]:
    """A route for each file of the page, and / for the first; none without one.

    A mount would answer every path of the server that is asked with a wrong method.
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
        response = await files.get_response(name, request.scope)
        if response.status_code == HTTPStatus.OK:  # 304 has no content
            response.headers["Content-Type"] = CONTENT_TYPES[Path(name).suffix]
        # browsers ask again, and are told where nothing has changed
        response.headers["Cache-Control"] = "no-cache"
        return response

    return read


def plain_page() -> HTMLResponse:
    """What stands at / where there is no page."""
    text = (
        "<h1>Redraft</h1>\n"
        '<p>This server answers programs: see <a href="/docs">its routes</a> or '
        '<a href="/openapi.json">their contract</a>.</p>'
    )
    return HTMLResponse(_FRAME.format(text))


def routes_page(contract: dict[str, Any]) -> HTMLResponse:
    """The routes of an OpenAPI document, with what each does."""
    rows = "\n".join(
        f"<dt><code>{method.upper()} {escape(path)}</code></dt>\n"
        f"<dd>{escape(operation.get('summary', ''))}</dd>"
        for path, operations in contract["paths"].items()
        for method, operation in operations.items()
    )
    text = (
        "<h1>Routes</h1>\n"
        '<p>What goes in and comes out is told by <a href="/openapi.json">/openapi.json</a>.</p>\n'
        f"<dl>\n{rows}\n</dl>"
    )
    return HTMLResponse(_FRAME.format(text))
