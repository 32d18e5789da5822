"""Abandoned predictions: after a disconnect or timeout the model is free at once."""

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from redraft.server import schema
from tests.greetings import greeter
from tests.server.http.servers import (
    Gated,
    Running,
    asking,
    error_of,
    greetings,
    running,
    wait_until,
)

SLOW = """
import sys, time
from pathlib import Path
from redraft.model import RetrieveAndEdit
from redraft.server.http.app import AppConfig
from redraft.server.http.model_pool import ModelPoolConfig
from redraft.server.http.server import BindAddress, serve
from redraft.server.served_model import ServedModel

class SlowSyntax:
    "Finds no output valid, and takes its time: every search is as long as a search can be."

    def begins(self, text):
        time.sleep(0.01)
        return True

    def accepts(self, text):
        return False

def load():
    model = RetrieveAndEdit.load(Path(sys.argv[2]))
    editor = model.editor.with_syntax(SlowSyntax())
    return ServedModel("slow", RetrieveAndEdit(model.retriever, editor))

config = AppConfig(pool=ModelPoolConfig(time_limit=float(sys.argv[3])))
serve({"slow": load}, BindAddress(port=0), config, announce=print)
"""
PROMPT = 5.0
"""Seconds within which a model must answer others."""

IN_MEMORY_LIMIT = {"inputs": ["greet Ada"] * schema.MAX_INPUTS, "k": schema.MAX_CANDIDATES}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "slow"
    greeter(10, "lexical").save(folder)
    return folder


def seconds_to_retrieve(server: Running) -> float:
    """Return how long the model takes to answer another client."""
    asked = {"inputs": ["greet Ada"], "k": 1}
    started = time.monotonic()
    answer = httpx.post(f"{server.url}/v1/retrieve", json=asked, timeout=30)
    assert answer.json()["results"][0][0]["y"] == 'print("hello Ada")'
    return time.monotonic() - started


@contextlib.contextmanager
def asked_much(server: Running) -> Iterator[socket.socket]:
    """A client with a request that takes minutes; it leaves at the end."""
    url, body = httpx.URL(server.url), json.dumps(IN_MEMORY_LIMIT).encode()
    head = f"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
    with socket.create_connection((url.host, url.port or 0)) as raw:
        raw.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)
        yield raw


def batches(server: Running) -> str:
    """How many calls of the model there were."""
    lines = httpx.get(f"{server.url}/metrics").text.splitlines()
    return next((line for line in lines if line.startswith("redraft_batch_size_count")), "none")


def test_a_client_that_leaves_takes_its_work_with_it(folder: Path) -> None:
    with running(folder, 60.0, code=SLOW) as server:
        memory = Path(f"/proc/{server.process.pid}/statm")
        seconds_to_retrieve(server)
        before = int(memory.read_text().split()[1])
        with asked_much(server):
            wait_until(lambda: batches(server).endswith(" 1.0"))
        assert seconds_to_retrieve(server) < PROMPT
        assert batches(server).endswith(" 1.0"), "its other pieces must never be begun"
        for _ in range(5):
            with asked_much(server), asked_much(server):
                pass
        assert seconds_to_retrieve(server) < PROMPT
        assert int(memory.read_text().split()[1]) < 1.1 * before
        assert server.stop() == (0, "")


def test_work_ends_with_the_time_limit(folder: Path) -> None:
    with running(folder, 0.3, code=SLOW) as server:
        late = httpx.post(f"{server.url}/v1/predict", json=IN_MEMORY_LIMIT, timeout=30)
        assert late.status_code == 504
        assert error_of(late)["message"] == (
            "no result within 0.3 seconds; send a smaller request, or raise --time-limit"
        )
        # the limit holds for this request too, and the step that was under way may take as long
        retrieve = {"inputs": ["greet Ada"], "k": 1}
        wait_until(
            lambda: httpx.post(f"{server.url}/v1/retrieve", json=retrieve).status_code == 200
        )


def test_a_request_of_many_inputs_is_answered_in_pieces_and_in_order() -> None:
    gated = Gated("gated", greetings())
    gated.gate.set()
    names = [f"greet {name}" for name in ("Ada", "Curie", "Dirac", "Fermi")] * 16
    with asking({"gated": lambda: gated}) as client:
        answer = client.post("/v1/predict", json={"inputs": names, "k": 5})
        outputs = [ranked[0]["output"] for ranked in answer.json()["results"]]
        assert outputs == [f'print("hello {name.split()[1]}")' for name in names]
        assert gated.begun[0] == "predict 6"  # six inputs of five candidates each
        assert sum(int(each.split()[1]) for each in gated.begun) == 64


def test_a_wrong_input_of_a_later_piece_is_named_by_its_place_in_the_request() -> None:
    gated = Gated("gated", greetings())
    with asking({"gated": lambda: gated}) as client:
        inputs = [*["greet Ada"] * 50, {"other": "x"}]
        refused = client.post("/v1/predict", json={"inputs": inputs})
        assert refused.status_code == 422
        assert error_of(refused)["field"] == "inputs.50"
        assert gated.begun == []


def test_inputs_times_length_times_candidates_are_bounded() -> None:
    gated = Gated("gated", greetings())
    gated.gate.set()
    with asking({"gated": lambda: gated}) as client:
        longest = ["x" * schema.MAX_TEXT_LENGTH] * schema.MAX_INPUTS
        assert client.post("/v1/predict", json={"inputs": longest}).status_code == 200
        refused = client.post("/v1/predict", json={"inputs": longest, "k": 20})
        assert refused.status_code == 422
        assert error_of(refused)["message"] == (
            "the characters of the inputs times k are 25,600,000, the limit is 2,000,000; "
            "send fewer or shorter inputs, or a smaller k"
        )
