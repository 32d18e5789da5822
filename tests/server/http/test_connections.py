"""Hostile connections to real server processes: silent, half-sent, malformed, and not read."""

import contextlib
import json
import logging
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from redraft.server.http.middleware import HEADERS
from redraft.server.http.server import LOG_PERIOD, MAX_RECORDS, LogLimit
from tests.server.http.servers import SECONDS, Running, greetings, running

SERVER = """
import json, logging, resource, sys
from pathlib import Path
from redraft.server.http.app import AppConfig
from redraft.server.http.connections import ConnectionConfig
from redraft.server.http.server import BindAddress, loader, serve
logging.basicConfig(level=logging.WARNING)
descriptors, limits = int(sys.argv[3]), json.loads(sys.argv[4])
if descriptors:
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
config = AppConfig(connections=ConnectionConfig(**limits))
serve({"greet": loader("greet", Path(sys.argv[2]))}, BindAddress(port=0), config, announce=print)
"""
PROMPT = 5.0
"""Seconds within which a server under attack must answer."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "greet"
    greetings(3).save(folder)
    return folder


@contextlib.contextmanager
def limited(folder: Path, *, descriptors: int = 0, **limits: float) -> Iterator[Running]:
    """Run a server with limited file descriptors and connections."""
    with running(folder, descriptors, json.dumps(limits), code=SERVER) as server:
        yield server


@pytest.fixture(scope="module")
def impatient(folder: Path) -> Iterator[Running]:
    with limited(folder, head=0.3, idle=0.3, stalled=0.3) as server:
        yield server


@contextlib.contextmanager
def connections(server: Running, count: int, sent: bytes = b"") -> Iterator[list[socket.socket]]:
    """So many connections over which this was sent."""
    url = httpx.URL(server.url)
    with contextlib.ExitStack() as stack:
        opened = []
        for _ in range(count):
            raw = socket.create_connection((url.host, url.port or 0), timeout=SECONDS)
            opened.append(stack.enter_context(raw))
            raw.sendall(sent)
        yield opened


def received(raw: socket.socket) -> bytes:
    """Return all data until the server closes the connection."""
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := raw.recv(65_536):
            parts.append(part)
    return b"".join(parts)


def seconds_to_answer(server: Running) -> float:
    """How long a new client waits for the answer that the server lives."""
    started = time.monotonic()
    assert httpx.get(f"{server.url}/healthz", timeout=SECONDS).status_code == 200
    return time.monotonic() - started


def test_silent_connections_up_to_the_descriptor_limit_keep_nobody_out(folder: Path) -> None:
    with limited(folder, descriptors=128) as server:
        with connections(server, 150):
            assert [seconds_to_answer(server) < PROMPT for _ in range(3)] == [True] * 3
        code, said = server.stop()
    assert code == 0
    assert said == ""


def test_without_descriptors_it_backs_off_and_says_so_a_few_times(folder: Path) -> None:
    # as if other files of the process had taken the descriptors that connections count on
    with limited(folder, descriptors=64, max_open=1000) as server:
        with connections(server, 150):
            assert seconds_to_answer(server) < PROMPT
        code, said = server.stop()
    assert code == 0
    assert 1 <= len(said.splitlines()) <= MAX_RECORDS
    assert "no more connections can be opened: Too many open files" in said
    assert "Traceback" not in said


def test_half_sent_heads_are_refused_after_the_limit(impatient: Running) -> None:
    head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Half: "
    with connections(impatient, 300, head) as opened:
        for answer in map(received, opened):
            assert answer.startswith(b"HTTP/1.1 408 ")
            assert problem(answer) == "the headers of the request did not arrive in time"


def test_a_head_that_comes_byte_by_byte_gets_no_more_time(impatient: Running) -> None:
    started = time.monotonic()
    with connections(impatient, 1) as [raw], contextlib.suppress(ConnectionError):
        for byte in b"GET /healthz HTTP/1.1\r\nX-Slow: " + b"x" * 1000:
            raw.sendall(bytes([byte]))
            time.sleep(0.01)
        pytest.fail("it was never disconnected")
    assert time.monotonic() - started < 5


def test_silent_and_idle_connections_are_closed(impatient: Running) -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with connections(impatient, 2) as opened:
        assert [received(each) for each in opened] == [b"", b""]
    with connections(impatient, 1, request) as [raw]:
        assert received(raw).endswith(b'{"status":"ok","models":[]}')
    with connections(impatient, 1, request + request[:9]) as [raw]:  # the next is half sent
        assert received(raw).count(b"HTTP/1.1") >= 1


def test_a_client_that_does_not_read_is_disconnected(impatient: Running) -> None:
    request = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"

    def ask_without_end(raw: socket.socket) -> None:
        while True:
            raw.sendall(request * 50)
            time.sleep(0.01)

    with connections(impatient, 1) as [raw], pytest.raises(ConnectionError):
        ask_without_end(raw)


def test_where_all_connections_are_taken_the_one_that_waited_longest_makes_room(
    folder: Path,
) -> None:
    with limited(folder, max_open=8, head=SECONDS) as server, connections(server, 8) as opened:
        assert seconds_to_answer(server) < PROMPT
        assert received(opened[0]) == b""
        opened[7].sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert opened[7].recv(12) == b"HTTP/1.1 200"


def problem(answer: bytes) -> str:
    """The message of a refusal, which has the form and the headers of all others."""
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")[1:]
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    assert headers["content-type"] == "application/json"
    assert headers["connection"] == "close"
    assert headers["cache-control"] == "no-store"
    assert int(headers["content-length"]) == len(body)
    for name, value in HEADERS.items():
        assert headers[name.lower()] == value
    error = json.loads(body)["error"]
    assert set(error) == {"message", "field"}
    return str(error["message"])


HOST = b"Host: localhost\r\n"
POST = b"POST /v1/predict HTTP/1.1\r\nContent-Type: application/json\r\n" + HOST
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n"


@pytest.mark.parametrize(
    ("sent", "status", "message"),
    [
        (b"typed typed typed\r\n\r\n", 400, "not valid HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, "not valid HTTP"),
        (b"GET / HTTP/1.1\r\n\r\n", 400, "not valid HTTP"),
        (b"GET / HTTP/1.1\r\n" + HOST * 2 + b"\r\n", 400, "not valid HTTP"),
        (b"GET / HTTP/1.1\r\n" + HOST + b"no colon\r\n\r\n", 400, "not valid HTTP"),
        (b"GET / HTTP/1.1\r\n" + HOST + b"X: \x00\r\n\r\n", 400, "not valid HTTP"),
        (POST + b"Content-Length: -1\r\n\r\n", 400, "not valid HTTP"),
        (POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400, "not valid HTTP"),
        (POST + b"Transfer-Encoding: gzip\r\n\r\n", 501, "transfer encoding"),
        (CHUNKED + b"\r\nno size\r\n", 400, "not valid HTTP"),
        (b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"x" * 100_000, 431, "headers"),
    ],
)
def test_malformed_requests_are_refused_in_the_form_of_other_problems(
    impatient: Running, sent: bytes, status: int, message: str
) -> None:
    with connections(impatient, 1, sent) as [raw]:
        answer = received(raw)
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert message in problem(answer)


def test_many_malformed_requests_fill_no_log(folder: Path) -> None:
    with limited(folder) as server:
        for _ in range(30):
            with connections(server, 1, b"typed\r\n\r\n") as [raw]:
                received(raw)
        with connections(server, 1, CHUNKED + b"\r\n1\r\n{\r\nno size\r\n") as [raw]:
            received(raw)
        code, said = server.stop()
    assert code == 0
    assert len(said.splitlines()) == MAX_RECORDS
    assert said.splitlines()[-1].endswith("(further messages suppressed for a minute)")


def test_after_a_period_a_remark_is_logged_again() -> None:
    now = 0.0
    limit = LogLimit(clock=lambda: now)

    def log(line: int) -> bool:
        return limit.filter(logging.LogRecord("a", 30, "a.py", line, "at %d", (line,), None))

    assert [log(1) for _ in range(MAX_RECORDS + 2)] == [True] * MAX_RECORDS + [False] * 2
    assert log(2), "another place has its own count"
    now = LOG_PERIOD
    assert log(1)
