"""Completion beside a language model: instant first, kept while typing, stopped when not wanted."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from redraft.completion.engine import CompletionEngine
from redraft.completion.lm_completion import GRACE, LmCompleter, LmCompletionSettings, LmGeneration
from redraft.completion.project import Project, empty_model, index_project
from redraft.lm.address import LmAddress
from redraft.lm.client import LmClient
from redraft.types import Completion
from tests.lm.endpoint import Endpoint, elapsed, endpoint
from tests.lm.test_client import FAULTS, KEY, LIMIT, SLACK

SHAPES = '''def area(side):
    """Area of a square."""
    return side * side


def volume(side):
    """Volume of a cube."""
    return side * side * side
'''
BUFFER = 'def square(side):\n    """Area of a private square."""\n    '
GENERATED = "total = side ** 2\n"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> CompletionEngine:
    folder = tmp_path_factory.mktemp("project")
    (folder / "shapes.py").write_text(SHAPES)
    return CompletionEngine(index_project(empty_model(), Project.read([folder]))[0])


class Typing:
    """A user who types in one file, completed by the engine and the endpoint."""

    def __init__(self, completer: LmCompleter, engine: CompletionEngine) -> None:
        self.completer, self.engine = completer, engine
        self.generation: LmGeneration | None = None

    def complete(self, typed: str = "", file: str = "/home/me/shapes.py") -> list[Completion]:
        """Return the suggestions that are ready."""
        text = BUFFER + typed
        suggested = self.completer.complete(self.engine, text, len(text), file=file)
        self.generation = suggested.generation
        return list(suggested.completions)

    def wait(self) -> None:
        """Wait for the generation."""
        if self.generation is not None:
            self.generation.future.exception(timeout=5)


Connect = Callable[..., Typing]


@pytest.fixture
def connect(engine: CompletionEngine) -> Iterator[Connect]:
    """Return a function that connects a typist to an endpoint."""
    clients: list[LmClient] = []

    def connect(server: Endpoint, time_limit: float = 20.0) -> Typing:
        client = LmClient(
            LmAddress.parse(server.url),
            time_limit=time_limit,
            backoff=0.01,
            environment={"REDRAFT_LM_KEY": KEY},
        )
        clients.append(client)
        completer = LmCompleter(client, LmCompletionSettings("tiny"))
        return Typing(completer, engine)

    yield connect
    for client in clients:
        client.close()


def texts(completions: list[Completion]) -> list[str]:
    return [one.text for one in completions]


def test_the_instant_suggestion_comes_first_and_the_generated_one_when_ready(
    connect: Connect,
) -> None:
    with endpoint(lambda _: GENERATED, log_prob=-0.001) as server:
        user = connect(server)
        first = user.complete()
        assert not any(one.is_generated for one in first)
        user.wait()
        second = user.complete()
    generated = [one for one in second if one.is_generated]
    assert texts(generated) == ["total = side ** 2"]
    assert generated[0].prototype is None
    assert 0 < (generated[0].probability or 0) < 1
    assert set(texts(first)) <= set(texts(second))
    [body] = server.bodies
    assert body["prompt"].endswith('private square."""\n   ')
    assert "# file: shapes.py\ndef area(side):" in body["prompt"]
    assert "/home/me" not in body["prompt"]


def test_text_that_agrees_needs_no_further_request(connect: Connect) -> None:
    with endpoint(lambda _: GENERATED, log_prob=-0.001) as server:
        user = connect(server)
        user.complete()
        user.wait()
        for typed in ("t", "total", "total ", "total = si", "total = side *"):
            shown = [one for one in user.complete(typed) if one.is_generated]
            assert [typed + one.text for one in shown] == ["total = side ** 2"], typed
        assert len(server.bodies) == 1
        user.complete("return x")
        user.wait()
    assert len(server.bodies) == 2


def test_typing_something_else_closes_the_connection(connect: Connect) -> None:
    with endpoint(lambda _: GENERATED, always="trickle") as server:
        user = connect(server)
        user.complete()
        old = user.generation
        assert old is not None
        wait_for(lambda: bool(old.pieces))
        server.always = ""
        user.complete("side = 2")
        assert old.future.cancelled()
        wait_for(lambda: server.hung_up == 1)
        user.wait()
    assert len(server.bodies) == 2


def test_a_generation_that_was_waited_for_leaves_a_newer_one_alone(connect: Connect) -> None:
    with endpoint(lambda _: GENERATED, always="trickle") as server:
        user = connect(server)
        user.complete()
        old = user.generation
        assert old is not None
        wait_for(lambda: bool(old.pieces))
        user.complete("side = 2")
        newer = user.generation
        assert newer is not None
        suggested = user.completer.complete(
            user.engine, BUFFER, len(BUFFER), file="/home/me/shapes.py", generation=old
        )
        assert suggested.generation is None
        assert not newer.is_done


def test_a_released_generation_stops_unless_it_is_asked_for_again(connect: Connect) -> None:
    with endpoint(lambda _: GENERATED, always="trickle") as server:
        user = connect(server)
        user.complete()
        kept = user.generation
        assert kept is not None
        wait_for(lambda: bool(kept.pieces))
        user.completer.release(kept)
        user.complete()
        time.sleep(GRACE * 1.5)
        assert not kept.is_done
        user.completer.release(kept)
        wait_for(lambda: server.hung_up == 1)
        assert kept.future.cancelled()


def test_fast_typing_sends_one_request(connect: Connect) -> None:
    with endpoint(lambda _: GENERATED) as server:
        user = connect(server)
        for end in range(8):
            user.complete("value = "[:end])
        user.wait()
    assert len(server.bodies) == 1


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_line_and_the_project_still_completes(
    fault: str, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    with endpoint(lambda _: GENERATED, always=fault) as server, caplog.at_level(logging.DEBUG):
        user = connect(server, LIMIT)
        start = time.monotonic()
        assert user.complete("return")
        assert elapsed(start) < LIMIT  # it does not wait
        user.wait()
        assert elapsed(start) < LIMIT + SLACK
        instant = user.complete("return")
        assert instant
        assert not any(one.is_generated for one in instant)
    lines = [one.getMessage() for one in caplog.records if one.name == "redraft.lm.client"]
    assert len(lines) == 1
    assert FAULTS[fault] in lines[0]
    for secret in (KEY, "private square", "side * side", "square"):
        assert secret not in caplog.text


def test_a_server_that_starts_later_is_found(
    engine: CompletionEngine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("redraft.completion.lm_completion.RETRY", 0.0)
    with endpoint(lambda _: GENERATED) as server:
        address = LmAddress.parse(server.url)
        with LmClient(address, backoff=0.01) as client:
            user = Typing(LmCompleter(client), engine)
            assert user.complete()  # looks for the model in the background
            wait_for(lambda: user.complete("r") is not None and user.generation is not None)
            user.wait()
    assert not caplog.records


def test_nothing_is_sent_outside_of_bodies(connect: Connect, engine: CompletionEngine) -> None:
    with endpoint() as server:
        user = connect(server)
        for text in ("def f(", 'def f():\n    """Doc'):
            suggested = user.completer.complete(engine, text, len(text))
            assert suggested.generation is None
        time.sleep(0.1)
    assert not server.bodies


def wait_for(condition: Callable[[], Any]) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < end
        threading.Event().wait(0.01)
