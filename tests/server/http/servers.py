"""Servers for tests: models that wait at a gate, apps that are ready, and real processes."""

import contextlib
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from starlette.testclient import TestClient

from redraft import Example, RetrieveAndEdit
from redraft.completion.lm_completion import LmGeneration
from redraft.server import responses, schema
from redraft.server.http.app import AppConfig, create_app
from redraft.server.http.model_pool import Loader
from redraft.server.served_model import ServedModel, Suggestions
from tests.greetings import NAMES, greeting

SECONDS = 30.0
URL = "http://127.0.0.1"


def greetings(count: int = 10) -> RetrieveAndEdit:
    """A model that answers with the greeting of the nearest name, and learns nothing."""
    examples = [greeting(name) for name in NAMES[:count]]
    return RetrieveAndEdit.fit(examples, retriever="lexical", editor="verbatim")


def functions() -> RetrieveAndEdit:
    """A model of one Python function."""
    x = {"docstring": "The area.", "name": "area", "arguments": "side"}
    examples = [Example(x, "return side * side", {"package": "shapes"})]
    return RetrieveAndEdit.fit(examples, retriever="lexical", editor="verbatim")


class Gated(ServedModel):
    """Answers when its gate is open, and notes how many inputs each call had."""

    def __init__(self, name: str, model: RetrieveAndEdit) -> None:
        super().__init__(name, model)
        self.gate = threading.Event()
        self.begun: list[str] = []

    def predict(self, request: schema.PredictRequest) -> list[list[responses.CandidateSchema]]:
        self.begun.append(f"predict {len(request.inputs)}")
        assert self.gate.wait(SECONDS)
        return super().predict(request)

    def suggest(
        self, request: schema.CompleteRequest, generation: LmGeneration | None = None
    ) -> Suggestions:
        self.begun.append("complete")
        return super().suggest(request, generation)


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait until the condition holds."""
    deadline = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < deadline, "it did not come to be in time"
        time.sleep(0.005)


@contextlib.contextmanager
def asking(
    loaders: Mapping[str, Loader], config: AppConfig | None = None, token: str = ""
) -> Iterator[TestClient]:
    """A client of an app whose models are loaded."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    app = create_app(loaders, config)
    with TestClient(app, base_url=URL, headers=headers) as client:
        wait_until(lambda: client.get("/readyz").status_code == 200)
        yield client


def error_of(response: Any) -> dict[str, str | None]:
    """Return the error detail of a response."""
    error: dict[str, str | None] = response.json()["error"]
    assert set(error) == {"message", "field"}
    return error


@dataclass(frozen=True)
class Running:
    """A server process and where it is."""

    process: "subprocess.Popen[str]"
    url: str

    def stop(self) -> tuple[int, str]:
        """Stop the server and return its exit code and output."""
        self.process.terminate()
        _, said = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, said


@contextlib.contextmanager
def running(*arguments: object, code: str = "", ready: bool = True) -> Iterator[Running]:
    """`redraft serve` with these arguments in a real process, or other code that serves."""
    code = code or "from redraft.cli.app import main; main()"
    serve = ["serve", *map(str, arguments), "--port", "0"]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *serve],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        if found is None:
            raise AssertionError(process.communicate(timeout=SECONDS))
        if ready:
            wait_until(lambda: httpx.get(f"{found[0]}/readyz").status_code == 200)
        yield Running(process, found[0])
    finally:
        process.kill()
        process.communicate()
