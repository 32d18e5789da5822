"""`redraft lsp` as an editor sees it: a real process over the protocol."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from tests.server.functions import model_of
from tests.server.lsp.editor import DEADLINE, FULL, POOR, Editor, at, running

pytestmark = pytest.mark.asyncio(loop_scope="module")

SHAPES = '''def area(side):
    """Area of a square."""
    return side * side


def corners(count):
    """Names of the corners of a ```polygon```."""
    names = [
        f"corner {at}" for at in range(count)
    ]
    return names
'''
SQUARE = 'def square(side):\n    """Area of a square."""\n    '


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("learned")
    (folder / "shapes.py").write_text(SHAPES)
    model_of(folder).save(folder / "model")
    return folder / "model"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop") / "100%25 déjà vu"
    folder.mkdir()
    (folder / "shapes.py").write_text(SHAPES)
    return folder


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def editor(model: Path, shop: Path) -> AsyncIterator[Editor]:
    """An editor with a folder open, once the server has read it."""
    async with running(model) as editor:
        result = await editor.initialize(FULL, options={"debounceMs": 10}, folder=shop)
        assert result.capabilities.inline_completion_provider is not None
        assert result.capabilities.position_encoding == types.PositionEncodingKind.Utf16
        await editor.ready()
        yield editor


async def test_an_item_says_what_is_inserted_and_where_it_is_from(editor: Editor) -> None:
    found = await editor.complete_end(SQUARE + "return")
    item = found.items[0]
    assert found.is_incomplete
    assert item.label == item.filter_text == "return side * side"
    assert re.fullmatch(r"\d+%, from area, shapes\.py:1", item.detail or "")
    assert item.insert_text_mode is types.InsertTextMode.AsIs
    assert isinstance(item.text_edit, types.TextEdit)
    assert item.text_edit.new_text == "return side * side"
    assert item.text_edit.range == types.Range(types.Position(2, 4), types.Position(2, 10))
    assert [each.sort_text for each in found.items] == sorted(
        each.sort_text or "" for each in found.items
    )


async def test_the_function_it_is_from_is_shown_on_demand(editor: Editor) -> None:
    item = (await editor.complete_end('def all(count):\n    """Names of the corners."""\n')).items[
        0
    ]
    assert item.documentation is None
    shown = await editor.client.completion_item_resolve_async(item)
    assert isinstance(shown.documentation, types.MarkupContent)
    assert shown.documentation.kind is types.MarkupKind.Markdown
    title, _, source = shown.documentation.value.partition("\n\n")
    assert title == "from corners, shapes.py:6"
    # the fence is longer than any in the code
    assert source.startswith("````python\ndef corners(count):\n")
    assert source.endswith("return names\n````")
    item.data = {"prototype": "gone"}
    assert (await editor.client.completion_item_resolve_async(item)).documentation is None


async def test_a_suggestion_of_several_lines_is_one_item(editor: Editor) -> None:
    text = 'def all(count):\n    """Names of the corners."""\n    names ='
    item = (await editor.complete_end(text)).items[0]
    assert item.label == "["
    assert isinstance(item.text_edit, types.TextEdit)
    assert item.text_edit.new_text.endswith("for at in range(count)\n    ]")


async def test_inline_suggestions_are_for_the_place_behind_the_cursor(editor: Editor) -> None:
    uri = editor.open(SQUARE + "return")
    context = types.InlineCompletionContext(types.InlineCompletionTriggerKind.Automatic)
    found = await editor.client.text_document_inline_completion_async(
        types.InlineCompletionParams(
            context, types.TextDocumentIdentifier(uri), types.Position(2, 10)
        )
    )
    assert isinstance(found, types.InlineCompletionList)
    assert found.items[0].insert_text == " side * side"
    here = types.Position(2, 10)
    assert found.items[0].range == types.Range(here, here)


async def test_an_editor_with_a_command_for_it_learns_which_function_was_borrowed(
    model: Path, shop: Path
) -> None:
    async with running(model) as editor:
        indexed: list[int] = []

        def note(params: Any) -> None:
            indexed.append(params.functions)

        editor.client.feature("$/redraft/index")(note)
        options = {"debounceMs": 10, "acceptCommand": "redraft.accepted"}
        await editor.initialize(FULL, options=options, folder=shop)
        await editor.ready()
        await editor.until(lambda: bool(indexed))
        assert indexed[-1] > 0
        uri = editor.open(SQUARE + "return")
        context = types.InlineCompletionContext(types.InlineCompletionTriggerKind.Automatic)
        found = await editor.client.text_document_inline_completion_async(
            types.InlineCompletionParams(
                context, types.TextDocumentIdentifier(uri), types.Position(2, 10)
            )
        )
        assert isinstance(found, types.InlineCompletionList)
        command = found.items[0].command
        assert command is not None
        assert command.command == "redraft.accepted"
        assert re.fullmatch(r"\d+%, from area, shapes\.py:1", command.title)
        identity, text = command.arguments or ()
        assert text == found.items[0].insert_text
        source: Any = await editor.request("redraft/source", {"id": identity})
        assert (source.title, source.file, source.line) == (
            "from area, shapes.py:1",
            "shapes.py",
            1,
        )
        assert source.source.endswith("return side * side")
        assert await editor.request("redraft/source", {"id": "other"}) is None
        assert await editor.request("redraft/source", {}) is None


@pytest.mark.parametrize("text", ["def half(", 'def half():\n    """Half of'])
async def test_where_nothing_is_suggested_the_list_is_empty_and_complete(
    editor: Editor, text: str
) -> None:
    assert await editor.complete_end(text) == types.CompletionList(False, ())


async def test_texts_change_by_pieces(editor: Editor) -> None:
    uri = editor.open("\f" + SQUARE.replace("square(", "😀(") + "return\n\n\n")
    editor.change(uri, "square", 0, 5, 0, 7)  # the smile is two units long
    editor.change(uri, "", 3, 0, 99, 99)  # to the end, wherever that is
    editor.change(uri, "return\n", 2, 4, 2, 999)
    editor.change(uri, "    ", 3, 0, 3, 0)
    item = (await editor.complete(uri, 2, 999)).items[0]
    assert isinstance(item.text_edit, types.TextEdit)
    assert item.text_edit.new_text == "return side * side"
    editor.change(uri, "def half(")
    assert (await editor.complete(uri, 0, 9)).items == ()


async def test_a_text_may_change_or_close_while_it_is_completed(editor: Editor) -> None:
    uri = editor.open(SQUARE)
    asked = [asyncio.ensure_future(editor.complete(uri, 2, 4)) for _ in range(3)]
    editor.change(uri, "")
    closed = types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri))
    editor.client.text_document_did_close(closed)
    await asyncio.wait_for(asyncio.gather(*asked), DEADLINE)
    assert (await editor.complete(uri, 2, 4)).items == ()


async def test_other_languages_are_left_alone(editor: Editor) -> None:
    uri = "file:///buffers/notes.md"
    opened = types.TextDocumentItem(uri, "markdown", 1, SQUARE)
    editor.client.text_document_did_open(types.DidOpenTextDocumentParams(opened))
    assert (await editor.complete(uri, 2, 4)).items == ()


async def test_requests_that_an_editor_gave_up_are_not_computed(editor: Editor) -> None:
    slow = "def slow():\n" + "    value = [1, 2, 3]\n" * 45_000
    lines = slow.count("\n")
    slow_uri, uri = editor.open(slow), editor.open(SQUARE)
    protocol, method = editor.client.protocol, types.TEXT_DOCUMENT_COMPLETION
    first = protocol.send_request(method, at(slow_uri, lines, 0))
    given_up = protocol.send_request(method, at(uri, 2, 4), msg_id="given up")
    older = protocol.send_request(method, at(uri, 2, 4))
    newer = protocol.send_request(method, at(uri, 2, 4))
    protocol.notify(types.CANCEL_REQUEST, types.CancelParams("given up"))
    with pytest.raises(JsonRpcException) as caught:
        await asyncio.wait_for(asyncio.wrap_future(given_up), DEADLINE)
    assert caught.value.code == types.LSPErrorCodes.RequestCancelled
    assert not first.done()
    passed_over = await asyncio.wait_for(asyncio.wrap_future(older), DEADLINE)
    assert passed_over == types.CompletionList(True, ())
    answered = await asyncio.wait_for(asyncio.wrap_future(newer), DEADLINE)
    assert answered.items
    assert first.done()


async def test_errors_are_one_line_without_a_traceback(editor: Editor) -> None:
    requests: list[tuple[str, object, int]] = [
        ("textDocument/unheard", {}, -32601),
        ("workspace/executeCommand", {"command": "unheard"}, -32602),
        ("textDocument/completion", {"textDocument": 7}, -32602),
        ("textDocument/completion", "secret", -32602),
    ]
    for method, params, code in requests:
        with pytest.raises(JsonRpcException) as caught:
            await asyncio.wait_for(editor.request(method, params), DEADLINE)
        assert (caught.value.code, caught.value.data) == (code, None)
        assert "\n" not in caught.value.message
    editor.write(b'{"secret"')
    editor.write(b"[]")
    editor.change("file:///never/opened.py", "secret", 0, 0, 0, 0)
    for kind in ("JSONDecodeError", "AttributeError", "JsonRpcInternalError"):
        line = f"redraft: invalid message ({kind})"
        await editor.until(lambda: line in editor.log)  # noqa: B023
    assert "secret" not in "".join(editor.log + editor.shown)
    assert (await editor.complete_end(SQUARE)).items


async def test_documents_that_are_too_long_are_logged_once(editor: Editor) -> None:
    uri = editor.open("#" * 1_000_001)
    for _ in range(2):
        assert (await editor.complete(uri, 0, 0)).items == ()
    line = "redraft: documents above 1,000,000 characters are not completed"
    assert editor.log.count(line) == 1


async def test_saved_files_are_borrowed_from_at_once(editor: Editor, shop: Path) -> None:
    path = shop / "lengths.py"
    path.write_text('def edge(area):\n    """Length of an edge."""\n    return area**0.5\n')
    editor.save(path)
    text = 'def root(area):\n    """Length of an edge."""\n    return'
    await editor.until_suggested(text, "return area**0.5")
    path.write_text('def edge(area):\n    """Length of an edge."""\n    return sqrt(area)\n')
    watched(editor, path, types.FileChangeType.Changed)
    await editor.until_suggested(text, "return sqrt(area)")
    path.write_text('def edge(area):\n    """Length of an edge."""\n    return half(\n')
    editor.save(path)
    await editor.until(lambda: any("keeping its previous functions" in line for line in editor.log))
    await editor.until_suggested(text, "return sqrt(area)")
    path.unlink()
    watched(editor, path, types.FileChangeType.Deleted)
    await editor.until_suggested(text, "return area * area", "return names")


def watched(editor: Editor, path: Path, kind: types.FileChangeType) -> None:
    """Tell as an editor does that watches the files itself."""
    assert editor.registered == [types.WORKSPACE_DID_CHANGE_WATCHED_FILES]
    change = types.FileEvent(path.as_uri(), kind)
    editor.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([change]))


async def test_progress_is_shown_while_the_model_loads_and_files_are_read(editor: Editor) -> None:
    seen: list[list[object]] = [list(each) for each in editor.client.progress_reports.values()]
    begins = [each for reports in seen for each in reports[:1]]
    titles = [each.title for each in begins if isinstance(each, types.WorkDoneProgressBegin)]
    assert titles == ["redraft: loading the model", "redraft: indexing the workspace"]
    assert all(isinstance(reports[-1], types.WorkDoneProgressEnd) for reports in seen)


async def test_a_folder_that_is_opened_takes_the_place_of_the_other(
    model: Path, shop: Path, tmp_path: Path
) -> None:
    (tmp_path / "lengths.py").write_text("def edge(area):\n    return area**0.5\n")
    async with running(model) as editor:
        await editor.initialize(FULL, folder=shop)
        await editor.ready()
        added = [types.WorkspaceFolder(tmp_path.as_uri(), "new")]
        removed = [types.WorkspaceFolder(shop.as_uri(), "old")]
        event = types.WorkspaceFoldersChangeEvent(added, removed)
        editor.client.workspace_did_change_workspace_folders(
            types.DidChangeWorkspaceFoldersParams(event)
        )
        await editor.until_suggested(SQUARE + "return", "return side**0.5")


async def test_an_editor_that_can_do_little_is_served_too(model: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    async with running(model) as editor:
        result = await editor.initialize(POOR, options={"debounceMs": 10}, folder=work)
        assert result.capabilities.inline_completion_provider is None
        early = await editor.complete_end(SQUARE)
        assert early == types.CompletionList(True, ())  # the model cannot be there yet
        line = "redraft: the workspace has no functions; completing from the model's examples"
        await editor.until(lambda: line in editor.log)
        assert editor.client.progress_reports == {}
        item = (await editor.complete_end(SQUARE + "return")).items[0]
        assert isinstance(item.documentation, str)
        assert item.documentation.endswith("    return side * side")
        assert (item.data, item.insert_text_mode) == (None, None)
        (work / "new.py").write_text("def edge(area):\n    return area**0.5\n")
        await editor.until_suggested(
            SQUARE + "return", "return side**0.5"
        )  # without a notification


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
async def test_positions_are_counted_as_the_editor_counts(
    model: Path, encoding: types.PositionEncodingKind
) -> None:
    general = types.GeneralClientCapabilities(position_encodings=["utf-7", encoding])
    text = f'{SQUARE}smile = "é😀𝔘"; return'
    units = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]

    def width(text: str) -> int:
        return len(text.encode(f"{encoding}-le" if units > 1 else encoding)) // units

    last = text.split("\n")[-1]
    start, end = width(last.removesuffix("return")), width(last)
    async with running(model) as editor:
        result = await editor.initialize(
            types.ClientCapabilities(general=general), options={"index": False}
        )
        assert result.capabilities.position_encoding == encoding
        uri = editor.open(text)
        found = await editor.answered(lambda: editor.complete(uri, 2, end))
        edit = found[0].text_edit
        assert isinstance(edit, types.TextEdit)
        assert edit.range == types.Range(types.Position(2, start), types.Position(2, end))
        assert edit.new_text == "return side * side"
        editor.change(uri, "x", 2, end, 2, end)
        editor.change(uri, "", 2, end, 2, end + 1)
        assert (await editor.complete(uri, 2, end)).items[0].text_edit == edit
