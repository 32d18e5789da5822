"""Bodies that cost more to parse than they say: counted before they are parsed."""

import contextlib
import json
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.server.http.app import AppConfig
from redraft.server.http.body_limit import MAX_VALUES, count_values
from redraft.server.http.middleware import SecurityConfig
from redraft.server.served_model import ServedModel
from tests.server.http.servers import SECONDS, asking, error_of, greetings, running, wait_until

JSON = {"Content-Type": "application/json"}
TEXTS = st.text(st.sampled_from('a,[{"\\\n é'))
VALUES = st.recursive(
    st.none() | st.integers() | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
)


def marks(value: Any) -> int:
    """Commas and opening brackets that a value is written with, outside of its strings."""
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return 1 + max(len(value) - 1, 0) + sum(map(marks, inner))
    return 0


@given(VALUES)
def test_marks_within_strings_do_not_count(value: Any) -> None:
    assert count_values(json.dumps(value).encode()) == marks(value)
    assert count_values(json.dumps(value, ensure_ascii=False).encode()) == marks(value)


@given(st.binary())
def test_any_bytes_can_be_counted(body: bytes) -> None:
    assert 0 <= count_values(body) <= len(body)


def test_a_text_full_of_commas_is_read_and_as_many_values_are_not() -> None:
    with asking({"greetings": lambda: ServedModel("greetings", greetings())}) as client:
        texts = [',[{"\\' * 3_000] * 40
        assert client.post("/v1/predict", json={"inputs": texts}).status_code == 200
        body = b'{"inputs":[' + b"[]," * MAX_VALUES + b"[]]}"
        refused = client.post("/v1/predict", content=body, headers=JSON)
        assert refused.status_code == 413
        assert error_of(refused)["message"] == (
            "the body has more than 150,000 values; send less at once"
        )


def test_large_bodies_together_are_bounded_and_given_back() -> None:
    config = AppConfig(security=SecurityConfig(max_total_bytes=150_000))
    loaders = {"greetings": lambda: ServedModel("greetings", greetings())}
    large = {"inputs": ["x" * 20_000] * 5}
    with asking(loaders, config) as client:
        for _ in range(5):
            assert client.post("/v1/predict", json=large).status_code == 200
        refused = client.post("/v1/predict", json={"inputs": ["x" * 20_000] * 10})
        assert refused.status_code == 503
        assert error_of(refused)["message"] == "too many large requests at once; retry soon"
        assert refused.headers["Retry-After"] == "1"
        assert client.post("/v1/predict", json=large).status_code == 200


def test_large_bodies_that_come_slowly_keep_no_small_one_out(tmp_path: Path) -> None:
    greetings(3).save(tmp_path / "greet")
    head = b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with running(tmp_path / "greet") as server, contextlib.ExitStack() as stack:
        url = httpx.URL(server.url)
        for _ in range(18):
            raw = socket.create_connection((url.host, url.port or 0), timeout=SECONDS)
            stack.enter_context(raw)
            with contextlib.suppress(ConnectionError):  # the last is refused before it is whole
                raw.sendall(head + b"Content-Length: 8000000\r\n\r\n" + b" " * 7_900_000)
        refused = 'redraft_requests_total{route="other",status="503"}'
        wait_until(lambda: refused in httpx.get(f"{server.url}/metrics").text)
        asked = {"inputs": ["greet Ada"]}
        assert httpx.post(f"{server.url}/v1/predict", json=asked).status_code == 200


@pytest.mark.parametrize("value", [b"[]", b"{}"])
def test_ten_large_bodies_at_once_hold_up_nobody(tmp_path: Path, value: bytes) -> None:
    greetings(3).save(tmp_path / "greet")
    body = b'{"inputs":[' + (value + b",") * 2_600_000 + value + b"]}"
    with running(tmp_path / "greet") as server, ThreadPoolExecutor(10) as pool:

        def memory() -> int:
            pages = Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]
            return int(pages) * 4096

        def send() -> int:
            url = f"{server.url}/v1/predict"
            return httpx.post(url, content=body, headers=JSON, timeout=SECONDS).status_code

        before, seconds, most = memory(), [], 0
        sent = [pool.submit(send) for _ in range(10)]
        while not all(each.done() for each in sent):
            answer = httpx.get(f"{server.url}/healthz", timeout=SECONDS)
            seconds.append(answer.elapsed.total_seconds())
            most = max(most, memory())
        assert {each.result() for each in sent} == {413}
        assert max(seconds) < 4, "without the count it was eight seconds and more"
        assert most - before < 400_000_000
