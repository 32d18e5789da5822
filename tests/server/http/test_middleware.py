"""Who may ask, how much, and which headers every answer has."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from starlette.types import Message

from redraft.errors import ConfigError
from redraft.server.http import app as app_module
from redraft.server.http.app import AppConfig, create_app
from redraft.server.http.middleware import HEADERS, SecurityConfig, is_loopback, names_of
from redraft.server.http.server import check_exposure, check_token
from redraft.server.served_model import ServedModel
from tests.server.http.servers import Gated, asking, greetings

LOADERS = {"greetings": lambda: ServedModel("greetings", greetings())}
TOKEN = "a-token-of-some-length"
ASKED = {"inputs": ["greet Ada"]}


@pytest.fixture(scope="module")
def guarded() -> Iterator[TestClient]:
    config = AppConfig(security=SecurityConfig(token=TOKEN, names=None, max_bytes=1000))
    with asking(LOADERS, config, token=TOKEN) as client:
        yield client


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", "Bearer tökén"])
def test_every_question_to_a_model_needs_the_token(guarded: TestClient, given: str) -> None:
    for method, path in (
        ("GET", "/v1/models"),
        ("POST", "/v1/predict"),
        ("DELETE", "/v1/examples"),
        ("GET", "/v1/nowhere"),
        ("GET", "/metrics"),
    ):
        headers = {b"Authorization": given.encode("latin-1")}
        refused = guarded.request(method, path, headers=headers)
        assert refused.status_code == 401
        assert refused.headers["WWW-Authenticate"] == "Bearer"
        assert "a token is needed" in refused.json()["error"]["message"]
        assert TOKEN not in refused.text


def test_with_the_token_it_answers_and_health_is_open(guarded: TestClient) -> None:
    assert guarded.post("/v1/predict", json=ASKED).status_code == 200
    for path in ("/healthz", "/readyz", "/", "/docs", "/openapi.json"):
        assert guarded.get(path, headers={"Authorization": ""}).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 200),
        ("GET", "/healthz", 200),
        ("GET", "/docs", 200),
        ("GET", "/v1/models", 200),
        ("GET", "/nowhere", 404),
        ("PUT", "/v1/predict", 405),
        ("POST", "/v1/predict", 415),
    ],
)
def test_every_answer_has_the_headers(
    guarded: TestClient, method: str, path: str, status: int
) -> None:
    answer = guarded.request(method, path)
    assert answer.status_code == status
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert "Access-Control-Allow-Origin" not in answer.headers
    assert answer.headers["Cache-Control"] in ("no-store", "no-cache")


def test_other_sites_get_no_leave_to_ask(guarded: TestClient) -> None:
    headers = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}
    asked = guarded.options("/v1/predict", headers=headers)
    assert asked.status_code == 405
    assert not [name for name in asked.headers if name.lower().startswith("access-control")]


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:8000", "127.0.0.1.evil.example", ""),
        *("localhost:80@evil.com", "[::1", "[::1]evil", "localhost:", "localhost:80:80"),
        *("localhost:port", "localhost/evil.com", "[localhost]", "::1", "[::1]:80 evil"),
    ],
)
def test_on_loopback_only_its_own_names_are_answered(host: str) -> None:
    with asking(LOADERS) as client:
        refused = client.get("/v1/models", headers={"Host": host})
        assert refused.status_code == 403
        assert "localhost only" in refused.json()["error"]["message"]
        for own in ("localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]:8000"):
            assert client.get("/v1/models", headers={"Host": own}).status_code == 200


def test_a_body_that_comes_in_parts_is_refused_when_it_is_too_large(guarded: TestClient) -> None:
    parts = (b"x" * 100 for _ in range(1000))
    headers = {"Content-Type": "application/json"}
    refused = guarded.post("/v1/predict", content=parts, headers=headers)
    assert refused.status_code == 413
    assert refused.json()["error"]["message"] == "the body is larger than 1,000 bytes; send less"


def call(app: Any, messages: list[Message], **scope: Any) -> list[Message]:
    """Return the messages that an app sends in response to these."""
    sent: list[Message] = []

    async def receive() -> Message:
        if messages:
            return messages.pop(0)
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    full = {
        "type": "http",
        "method": "POST",
        "path": "/v1/predict",
        "raw_path": b"/v1/predict",
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
        **scope,
    }

    async def run() -> None:
        async with app.router.lifespan_context(app):
            await app.state.pool.loaded()
            await app(full, receive, send)

    asyncio.run(run())
    return sent


def part(body: bytes, *, more: bool = True) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


def test_no_more_of_a_body_is_read_than_is_allowed() -> None:
    config = AppConfig(security=SecurityConfig(max_bytes=1000))
    messages = [part(b"x" * 400) for _ in range(10)]
    sent = call(create_app(LOADERS, config), messages)
    assert sent[0]["status"] == 413
    assert (b"connection", b"close") in sent[0]["headers"]
    assert len(messages) == 7


def test_a_body_that_does_not_come_is_given_up() -> None:
    config = AppConfig(security=SecurityConfig(read_seconds=0.05))
    sent = call(create_app(LOADERS, config), [part(b"{")])
    assert sent[0]["status"] == 408
    assert (b"connection", b"close") in sent[0]["headers"]
    assert b"did not arrive in time" in sent[1]["body"]


def test_nothing_is_answered_to_a_client_that_has_gone() -> None:
    gated = Gated("gated", greetings())
    gone: Message = {"type": "http.disconnect"}
    assert call(create_app({"gated": lambda: gated}), [part(b"{"), gone]) == []
    body = part(json.dumps(ASKED).encode(), more=False)
    gated.gate.set()
    assert call(create_app({"gated": lambda: gated}), [body, gone]) == []


def test_the_request_of_a_client_that_has_gone_is_dropped_if_it_is_not_begun() -> None:
    gated = Gated("gated", greetings())
    app = create_app({"gated": lambda: gated})

    async def run() -> None:
        async with app.router.lifespan_context(app):
            pool = app.state.pool
            await pool.loaded()
            first = asyncio.ensure_future(pool.find(None).run(lambda _: gated.gate.wait(30)))
            gone = asyncio.Event()
            body = [part(json.dumps(ASKED).encode(), more=False)]

            async def receive() -> Message:
                if body:
                    return body.pop()
                gone.set()
                return {"type": "http.disconnect"}

            async def send(message: Message) -> None:
                raise AssertionError(message)

            scope = {
                "type": "http",
                "method": "POST",
                "path": "/v1/predict",
                "query_string": b"",
                "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
            }
            await app(scope, receive, send)
            assert gone.is_set()
            gated.gate.set()
            await first

    asyncio.run(run())
    assert gated.begun == []


@pytest.mark.parametrize(
    ("host", "is_so"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("192.168.1.5", False),
        ("localhost.example", False),
    ],
)
def test_loopback_is_known(host: str, is_so: bool) -> None:
    assert is_loopback(host) is is_so
    assert (names_of(host) is not None) is is_so


def test_other_machines_are_not_served_without_a_token() -> None:
    check_exposure("127.0.0.1", None)
    check_exposure("0.0.0.0", TOKEN)
    for token in (None, ""):
        with pytest.raises(ConfigError, match="REDRAFT_TOKEN, or with --token"):
            check_exposure("0.0.0.0", token)


@pytest.mark.parametrize("token", [" ", f" {TOKEN}", f"{TOKEN}\n", "two\nlines", "tökén"])
def test_a_token_that_no_client_could_send_is_refused(token: str) -> None:
    check_token(None)
    check_token(TOKEN)
    check_token("open sesame")
    with pytest.raises(ConfigError, match="--token: not a valid header value"):
        check_token(token)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    (tmp_path / "index.html").write_text("<!doctype html><title>Page</title>")
    (tmp_path / "app.js").write_text("export {};")
    (tmp_path / "style.css").write_text("body {}")
    (tmp_path / "notes.py").write_text("secret = 1")
    return tmp_path


def test_the_files_of_the_page_have_their_types_and_are_asked_for_again(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_module, "PAGE", page)
    with asking(LOADERS) as client:
        kinds = {"/": "text/html", "/app.js": "text/javascript", "/style.css": "text/css"}
        for path, kind in kinds.items():
            got = client.get(path)
            assert got.headers["Content-Type"] == f"{kind}; charset=utf-8"
            assert got.headers["Cache-Control"] == "no-cache"
            for wrong in ("bytes=", "bytes=9-1", "lines=1-2", "bytes=999999-", "typed"):
                whole = client.get(path, headers={"Range": wrong})
                assert (whole.status_code, whole.content) == (200, got.content)
                assert whole.headers["Accept-Ranges"] == "none"
            again = client.get(path, headers={"If-None-Match": got.headers["ETag"]})
            assert again.status_code == 304
        for path in ("/notes.py", "/other.js", "/..%2f..%2fapp.py", "/%00.js", "/x.js/y.js"):
            assert client.get(path).status_code == 404
        assert client.post("/app.js").status_code == 405


def test_the_list_of_routes_loads_nothing_from_elsewhere() -> None:
    with asking(LOADERS) as client:
        text = client.get("/docs").text
        assert 'href="/openapi.json"' in text
        assert "http:" not in text
        assert "https:" not in text
        assert "<script" not in text
        assert "style" not in text
