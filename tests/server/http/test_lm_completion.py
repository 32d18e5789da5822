"""Completion over HTTP beside a language model: at once, or as long as the request waits."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.lm.endpoint import Endpoint, endpoint
from tests.server.functions import model_of
from tests.server.http.servers import Running, running, wait_until

SHAPES = 'def area(side):\n    """Area of a square."""\n    return side * side\n'
BUFFER = 'def shout(word):\n    """Something private."""\n    word = str(word)\n    '


@pytest.fixture(scope="module")
def lm() -> Iterator[Endpoint]:
    with endpoint(lambda _: "return word.upper()\n", log_prob=-0.001) as server:
        yield server


@pytest.fixture(scope="module")
def server(lm: Endpoint, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder: Path = tmp_path_factory.mktemp("project")
    (folder / "shapes.py").write_text(SHAPES)
    model_of(folder).save(folder / "model")
    with running(folder / "model", "--lm", lm.url) as server:
        ask(server, BUFFER)  # the model's name is looked up in the background
        wait_until(lambda: bool(ask(server, BUFFER + "a")["pending"] or lm.bodies))
        yield server


def ask(server: Running, text: str, **options: float | str) -> dict[str, object]:
    body = {"text": text, "offset": len(text), "file": "shapes.py", **options}
    response = httpx.post(f"{server.url}/v1/complete", json=body, timeout=60)
    assert response.status_code == 200, response.text
    answer: dict[str, object] = response.json()
    return answer


def generated(answer: dict[str, object]) -> list[str]:
    assert isinstance(answer["completions"], list)
    return [one["text"] for one in answer["completions"] if one["generated"]]


def test_a_request_that_waits_gets_the_generated_suggestion(server: Running) -> None:
    text = BUFFER.replace("shout", "scream")
    answer = ask(server, text, wait=20)
    assert generated(answer) == ["return word.upper()"]
    assert answer["pending"] is False
    assert generated(ask(server, text + "return ")) == ["word.upper()"]


def test_a_request_that_does_not_wait_says_that_more_may_come(
    server: Running, lm: Endpoint
) -> None:
    text = BUFFER.replace("shout", "whisper")
    lm.always = "trickle"
    try:
        answer = ask(server, text)
        assert answer["pending"] is True
        assert generated(answer) == []
    finally:
        lm.always = ""


@pytest.mark.parametrize("route", ["/v1/completions", "/infill"])
def test_a_route_that_cannot_wait_starts_no_generation(
    server: Running, lm: Endpoint, route: str
) -> None:
    text = BUFFER.replace("shout", f"cry{route.removeprefix('/v1')[1:]}")
    bodies = {
        "/v1/completions": {"prompt": text},
        "/infill": {"input_prefix": text, "input_suffix": "", "prompt": ""},
    }
    response = httpx.post(f"{server.url}{route}", json=bodies[route], timeout=60)
    assert response.status_code == 200, response.text
    answer = ask(server, text.replace("cry", "moan"), wait=20)  # sent after the other's delay
    assert generated(answer) == ["return word.upper()"]
    assert not any("def cry" in str(body["prompt"]) for body in lm.bodies)


def test_every_model_shows_its_own_functions(lm: Endpoint, tmp_path: Path) -> None:
    for name in ("circle", "square"):
        (tmp_path / name).mkdir()
        source = f'def {name}_area(side):\n    """Area of a {name}."""\n    return side * side\n'
        (tmp_path / name / "shapes.py").write_text(source)
        model_of(tmp_path / name).save(tmp_path / name / "model")
    text = BUFFER.replace("shout", "proclaim")
    folders = [f"{name}={tmp_path / name / 'model'}" for name in ("circle", "square")]
    with running(*folders, "--lm", lm.url) as server:
        for name in ("circle", "square"):
            ask(server, text, model=name)  # the model's name is looked up in the background

            def is_generated(name: str = name) -> bool:
                return bool(generated(ask(server, text, model=name, wait=5)))

            wait_until(is_generated)
            assert f"{name}_area" in json.dumps(lm.bodies[-1])


def test_a_client_that_disconnects_stops_the_generation(server: Running, lm: Endpoint) -> None:
    text = BUFFER.replace("shout", "mumble")
    lm.always = "trickle"
    before, asked = lm.hung_up, len(lm.bodies)
    body = json.dumps({"text": text, "offset": len(text), "file": "other.py", "wait": 30}).encode()
    parts = urlsplit(server.url)
    with socket.create_connection((parts.hostname, parts.port)) as connection:
        connection.sendall(
            b"POST /v1/complete HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
        )
        wait_until(lambda: len(lm.bodies) > asked)
    try:
        wait_until(lambda: lm.hung_up > before)
    finally:
        lm.always = ""
