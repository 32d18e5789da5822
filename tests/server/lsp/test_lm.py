"""A language model behind `redraft lsp`: when its suggestion arrives, and what stops it."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from lsprotocol import types

from tests.conftest import Run
from tests.lm.endpoint import Endpoint, endpoint
from tests.server.lsp.editor import FULL, Editor, at, running

pytestmark = pytest.mark.asyncio(loop_scope="module")

SHAPES = 'def area(side):\n    """Area of a square."""\n    return side * side\n'
NEW = 'def mystery(word):\n    """Something private."""\n    '


@pytest.fixture(scope="module")
def server() -> Iterator[Endpoint]:
    with endpoint(lambda _: "return word.upper()\n", log_prob=-0.001) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def editor(
    server: Endpoint, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Editor]:
    folder = tmp_path_factory.mktemp("project")
    (folder / "shapes.py").write_text(SHAPES)
    async with running("--lm", server.url) as editor:
        await editor.initialize(FULL, options={"lmWaitMs": 20_000}, folder=folder)
        await editor.ready()
        # the model's name is looked up in the background
        await editor.until_generating(server, NEW)
        yield editor


def end_of(text: str) -> tuple[int, int]:
    *above, last = text.split("\n")
    return len(above), len(last)


async def inline(editor: Editor, uri: str, text: str) -> list[str]:
    params = types.InlineCompletionParams(
        types.InlineCompletionContext(types.InlineCompletionTriggerKind.Automatic),
        types.TextDocumentIdentifier(uri),
        types.Position(*end_of(text)),
    )
    found = await editor.client.text_document_inline_completion_async(params)
    assert isinstance(found, types.InlineCompletionList)
    return [str(item.insert_text) for item in found.items]


async def test_an_inline_completion_waits_if_nothing_else_is_suggested(editor: Editor) -> None:
    text = NEW.replace("mystery", "riddle") + "word = str(word)\n    "
    assert await inline(editor, editor.open(text), text) == ["return word.upper()"]


async def test_a_list_is_asked_for_again_and_then_has_it(editor: Editor) -> None:
    text = NEW.replace("mystery", "puzzle") + "word = str(word)\n    "
    uri = editor.open(text)
    typed = types.CompletionContext(types.CompletionTriggerKind.TriggerForIncompleteCompletions)
    params = at(uri, *end_of(text))
    params.context = typed
    first = await editor.client.text_document_completion_async(params)
    assert isinstance(first, types.CompletionList)
    assert first.is_incomplete
    items = await editor.answered(lambda: editor.complete(uri, *end_of(text)))
    assert items[0].label == "return word.upper()"
    assert (items[0].detail or "").endswith("%, language model")


async def test_an_outdated_request_does_not_stop_the_generation_of_a_newer_one(
    editor: Editor, server: Endpoint
) -> None:
    text = NEW.replace("mystery", "enigma") + "word = str(word)\n    "
    uri, asked = editor.open(text), len(server.bodies)
    server.always = "trickle"
    outdated = asyncio.ensure_future(inline(editor, uri, text))
    await editor.until(lambda: len(server.bodies) > asked)
    server.always = ""
    typed = text + "other = 1\n    "
    editor.change(uri, typed)
    assert await inline(editor, uri, typed) == ["return word.upper()"]
    assert await outdated == []


async def test_a_cancelled_request_stops_the_generation(editor: Editor, server: Endpoint) -> None:
    text = NEW.replace("mystery", "slow") + "word = str(word)\n    "
    server.always = "trickle"
    before, asked = server.hung_up, len(server.bodies)
    requests = editor.client.protocol._request_futures
    known = set(requests)
    waiting = asyncio.ensure_future(inline(editor, editor.open(text), text))
    await editor.until(lambda: len(server.bodies) > asked)
    waiting.cancel()
    [number] = [key for key, one in requests.items() if key not in known]
    editor.client.cancel_request(types.CancelParams(number))
    try:
        await editor.until(lambda: server.hung_up > before)
    finally:
        server.always = ""


async def test_the_log_has_no_code_and_no_prompt(editor: Editor) -> None:
    said = "\n".join([*editor.log, *editor.shown])
    assert "private" not in said
    assert "word" not in said


async def test_a_remote_address_must_be_confirmed(redraft: Run) -> None:
    done = redraft("lsp", "--lm", "https://api.example.com/v1")
    assert done.returncode == 2
    assert "confirm that with --lm-remote" in done.stderr
