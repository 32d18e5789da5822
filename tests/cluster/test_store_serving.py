"""Several servers on one store, under load: what one is told, the others answer from."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from redraft import Example
from redraft.persistence import load_model
from tests.baskets import write_project
from tests.cluster.models import outputs, save_stored
from tests.cluster.postgres_server import PASSWORD, PostgresServer
from tests.server.functions import model_of
from tests.server.http.servers import Running, running, wait_until
from tests.server.lsp.editor import running as running_editor

# of words that the encoder knows: others would look alike to it
NEW = [
    Example({"text": f"items of {name} {count} sum"}, f"new({name}, {count})")
    for count in (2, 4)
    for name in ("cards", "players", "minions", "decks")
]


def answer(server: Running, text: str, **options: Any) -> httpx.Response:
    asked = {"inputs": [text], **options}
    return httpx.post(f"{server.url}/v1/predict", json=asked, timeout=60)


def best(server: Running, text: str) -> str:
    response = answer(server, text)
    assert response.status_code == 200, response.text
    output: str = response.json()["results"][0][0]["output"]
    return output


@contextmanager
def load(*servers: Running) -> Iterator[list[int]]:
    """Questions without a pause to every server meanwhile; the status of each answer."""
    statuses: list[int] = []
    stop = threading.Event()

    def ask(server: Running) -> None:
        while not stop.is_set():
            question = answer(server, "max the first 2 items of decks", where={"verb": "max"})
            statuses.append(question.status_code)

    threads = [threading.Thread(target=ask, args=[each]) for each in servers]
    for thread in threads:
        thread.start()
    try:
        yield statuses
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_what_is_added_through_one_server_appears_through_the_other(
    examples: list[Example], tmp_path: Path, store: str
) -> None:
    schema = save_stored(examples, tmp_path / "model", store)
    with ExitStack() as stack:
        one, other = (
            stack.enter_context(running(tmp_path / "model", "--store", store)) for _ in range(2)
        )
        with load(one, other) as statuses:
            for at, example in enumerate(NEW):
                told, asked = (one, other) if at % 2 else (other, one)
                added = {"examples": [{"x": example.x["text"], "y": example.y}]}
                response = httpx.post(f"{told.url}/v1/examples", json=added, timeout=60)
                assert response.status_code == 200, response.text
                assert best(told, example.x["text"]) == example.y
                wait_until(lambda: best(asked, example.x["text"]) == example.y)  # noqa: B023
            identity = Example(NEW[0].x, NEW[0].y).identity
            gone = httpx.delete(f"{one.url}/v1/examples", params={"id": identity}, timeout=60)
            assert gone.json()["changed"] == 1
            wait_until(lambda: best(other, NEW[0].x["text"]) != NEW[0].y)
        assert len(statuses) > len(NEW)
        assert set(statuses) == {200}
        for each in (one, other):
            code, said = each.stop()
            assert code == 0
            assert "error" not in said
    expected = {each.y for each in (*examples, *NEW[1:])}
    assert set(outputs(store, schema)) == expected
    assert len(outputs(store, schema)) == len(expected)


def test_a_store_that_goes_away_is_told_to_who_asks_and_answers_when_it_is_back(
    examples: list[Example], tmp_path: Path, server: PostgresServer, store: str
) -> None:
    save_stored(examples, tmp_path / "model", store)
    question = "max the first 2 items of decks"
    with running(tmp_path / "model", "--store", store) as served:
        assert best(served, question) == "max(decks[:2])"
        server.crash()
        try:
            lost = answer(served, question)
            assert lost.status_code == 503
            message = "the store of the examples cannot be reached; retry soon"
            assert lost.json()["error"] == {"message": message, "field": None}
            added = {"examples": [{"x": NEW[0].x["text"], "y": NEW[0].y}]}
            refused = httpx.post(f"{served.url}/v1/examples", json=added, timeout=60)
            assert refused.status_code == 503
            assert httpx.get(f"{served.url}/healthz").status_code == 200
        finally:
            server.start()
        assert best(served, question) == "max(decks[:2])"
        again = httpx.post(f"{served.url}/v1/examples", json=added, timeout=60)
        assert again.json()["examples"] == len(examples) + 1
        code, said = served.stop()
        assert code == 0
        assert "no PostgreSQL server answers there" in said
        assert PASSWORD not in said


@pytest.mark.asyncio
async def test_an_editor_borrows_from_the_store_and_changes_nothing_there(
    tmp_path: Path, store: str
) -> None:
    shop = write_project(tmp_path / "shop", ("zinnia", "yucca"))
    model_of(shop).save(tmp_path / "model", store=store)
    before = list(load_model(tmp_path / "model", store=store).retriever.examples)
    other = write_project(tmp_path / "other", ("rose", "sage"))
    buffer = 'def add_{0}(self):\n    """Add the {0}."""\n    '
    async with running_editor(tmp_path / "model", "--store", store) as editor:
        await editor.initialize()
        found = await editor.answered(lambda: editor.complete_end(buffer.format("zinnia")))
        assert "zinnia" in found[0].label
    async with running_editor(tmp_path / "model", "--store", store) as editor:
        await editor.initialize(folder=other)
        await editor.ready()
        found = (await editor.complete_end(buffer.format("sage"))).items
        assert "sage" in found[0].label
    assert list(load_model(tmp_path / "model", store=store).retriever.examples) == before
