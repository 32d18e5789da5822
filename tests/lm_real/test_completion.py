"""Completion in a project with a real language model."""

import time
from pathlib import Path

import httpx
import pytest

from redraft.completion.engine import CompletionEngine
from redraft.completion.lm_completion import LmCompleter
from redraft.completion.project import Project, empty_model, index_project
from redraft.lm.client import LmClient

CLIENT = '''class Client:
    def users(self):
        """List the users."""
        response = self.session.get(self.base_url + "/users")
        response.raise_for_status()
        return response.json()

    def orders(self):
        """List the orders."""
        response = self.session.get(self.base_url + "/orders")
        response.raise_for_status()
        return response.json()
'''
BUFFER = '''def shout(word):
    """Return the word in upper case."""
    return '''


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> CompletionEngine:
    folder: Path = tmp_path_factory.mktemp("project")
    (folder / "client.py").write_text(CLIENT)
    return CompletionEngine(index_project(empty_model(), Project.read([folder]))[0])


def test_it_writes_what_no_function_has_and_reuses_the_prompt(
    client: LmClient, engine: CompletionEngine
) -> None:
    completer = LmCompleter(client)
    completer.connect()
    first = completer.complete(engine, BUFFER, len(BUFFER), file="client.py")
    assert first.generation is not None
    first.generation.future.result(60)
    ready = completer.complete(engine, BUFFER, len(BUFFER), file="client.py")
    [written] = [one for one in ready.completions if one.is_generated]
    assert written.text.startswith("word.upper()")
    assert written.prototype is None
    assert 0 < (written.probability or 0) < 1
    sent = client.sent
    typed = BUFFER + "w"
    again = completer.complete(engine, typed, len(typed), file="client.py")
    assert any("w" + one.text == written.text for one in again.completions)
    assert client.sent == sent


def test_a_cancelled_generation_frees_the_server(
    client: LmClient, engine: CompletionEngine
) -> None:
    completer = LmCompleter(client)
    completer.connect()
    long = BUFFER.replace("in upper case.", "in upper case. " * 300)
    suggested = completer.complete(engine, long, len(long), file="client.py")
    assert suggested.generation is not None
    time.sleep(0.3)
    suggested.generation.cancel()
    slots = str(client.address.url).removesuffix("/v1") + "/slots"
    end = time.monotonic() + 30
    while any(slot["is_processing"] for slot in httpx.get(slots, timeout=30).json()):
        assert time.monotonic() < end, "the server goes on"
        time.sleep(0.1)
