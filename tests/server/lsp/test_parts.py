"""The parts of the language server that need no editor: positions, items, settings, the worker."""

import asyncio
import threading
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from redraft.server.lsp.handlers import complete, create_server
from redraft.server.lsp.items import MAX_LINES, ItemStyle, completion_list, documentation
from redraft.server.lsp.positions import Buffer, Positions, find_cursor
from redraft.server.lsp.progress import ProgressReport
from redraft.server.lsp.server import LatestWorker
from redraft.server.lsp.settings import LspSettings, read_settings
from redraft.server.responses import CompletionSchema, PrototypeSchema
from tests.server.lsp.editor import at

TEXTS = st.text(st.sampled_from("ab_ é😀𝔘\f\u2028\x85\t\r\n"), max_size=30)
ENCODINGS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
MARKDOWN = ItemStyle(markup=types.MarkupKind.Markdown)


def buffer_of(text: str, encoding: str = "utf-16") -> Buffer:
    return Buffer("file:///a.py", source=text, position_codec=Positions(encoding))


def position_of(text: str, offset: int, encoding: str) -> types.Position:
    """Counted another way: by what the text before has of line ends and of bytes."""
    before = text[:offset].replace("\r\n", "\n").replace("\r", "\n")
    name, units = ENCODINGS[encoding]
    last = before.rpartition("\n")[2]
    return types.Position(before.count("\n"), len(last.encode(name)) // units)


@given(TEXTS, st.integers(0, 30), st.sampled_from(sorted(ENCODINGS)))
def test_every_place_in_a_text_is_found_by_its_position(
    text: str, offset: int, encoding: str
) -> None:
    offset = min(offset, len(text))
    if text[offset - 1 : offset + 1] == "\r\n":
        offset -= 1  # within a line end there is no place
    cursor = find_cursor(buffer_of(text, encoding), position_of(text, offset, encoding))
    assert cursor.offset == offset
    assert cursor.position == position_of(text, offset, encoding)
    assert text[:offset].endswith(cursor.word)


@given(TEXTS, TEXTS, st.integers(0, 30), st.integers(0, 30), st.sampled_from(sorted(ENCODINGS)))
def test_a_text_that_changes_by_pieces_is_the_editors(
    text: str, new: str, start: int, end: int, encoding: str
) -> None:
    text = text.replace("\r", "")  # else a change could part a line end
    start, end = sorted((min(start, len(text)), min(end, len(text))))
    buffer = buffer_of(text, encoding)
    places = [position_of(text, offset, encoding) for offset in (start, end)]
    buffer.apply_change(types.TextDocumentContentChangePartial(types.Range(*places), new))
    assert buffer.source == text[:start] + new + text[end:]


@pytest.mark.parametrize(("line", "character"), [(0, 99), (1, 99), (7, 0), (7, 99)])
def test_positions_past_an_end_are_clamped(line: int, character: int) -> None:
    text = "first\n𝔘nd"
    found = find_cursor(buffer_of(text), types.Position(line, character))
    assert found.offset == (5 if line == 0 else len(text))


def shown(text: str, probability: float | None = 0.5, **x: str) -> CompletionSchema:
    fields = {"docstring": "", "name": "f", "arguments": "a", **x}
    prototype = PrototypeSchema(
        id="1", x=fields, y="return a\n# é", meta={"file": "a.py", "line": 3}, distance=0.1
    )
    return CompletionSchema(text=text, token="x", probability=probability, prototype=prototype)


def test_an_item_replaces_the_word_that_it_goes_on_with() -> None:
    cursor = find_cursor(buffer_of("    😀 = se"), types.Position(0, 11))
    [item] = completion_list([shown("lf.all()")], cursor, MARKDOWN).items
    assert item.label == item.filter_text == "self.all()"
    assert item.detail == "50%, from f, a.py:3"
    assert isinstance(item.text_edit, types.TextEdit)
    assert item.text_edit.new_text == "self.all()"
    assert item.text_edit.range == types.Range(types.Position(0, 9), types.Position(0, 11))


def test_indentation_is_inserted_and_not_shown() -> None:
    cursor = find_cursor(buffer_of("def f():\n"), types.Position(1, 0))
    [item] = completion_list([shown("    if a:\n        b()")], cursor, MARKDOWN).items
    assert item.label == "if a:"
    assert isinstance(item.text_edit, types.TextEdit)
    assert item.text_edit.new_text == "    if a:\n        b()"


def test_a_source_function_is_shown_as_it_stood() -> None:
    prototype = shown("", docstring="").prototype
    assert prototype is not None
    source = "def f(a):\n    return a\n    # é"
    assert documentation(prototype, MARKDOWN) == types.MarkupContent(
        types.MarkupKind.Markdown, f"from f, a.py:3\n\n```python\n{source}\n```"
    )
    assert documentation(prototype, ItemStyle()) == f"from f, a.py:3\n\n{source}"
    long = prototype.model_copy(update={"y": "a\n" * 1000})
    assert str(documentation(long, ItemStyle())).endswith("a\n…")
    assert str(documentation(long, ItemStyle())).count("\n") == MAX_LINES + 2


def test_settings_are_read_as_far_as_they_are_understood() -> None:
    assert read_settings(None) == (LspSettings(), [])
    assert read_settings({"k": 3, "without": ["tests"]})[0].without == ("tests",)
    settings, lines = read_settings([1])
    assert settings == LspSettings()
    assert lines == ["initializationOptions must be an object; the defaults are used"]
    assert read_settings({"k": None}) == (LspSettings(), [])
    assert read_settings({"k": 3, "without": [1, 2], "index": False}) == (
        LspSettings(k=3, index=False),
        ["setting 'without' is ignored: input should be a valid string"],
    )


@pytest.mark.asyncio
async def test_of_work_that_waits_only_the_latest_of_a_kind_is_done() -> None:
    worker, go_on, done = LatestWorker(), threading.Event(), list[str]()

    def work(name: str) -> str:
        done.append(name)
        return name

    blocked = asyncio.create_task(worker.run("a", go_on.wait, otherwise=False))
    await asyncio.sleep(0)
    tasks = [
        asyncio.create_task(worker.run(kind, partial(work, name), otherwise="no"))
        for kind, name in [("b", "b1"), ("b", "b2"), ("a", "a1"), ("c", "c1"), ("b", "b3")]
    ]
    await asyncio.sleep(0)
    tasks[3].cancel()
    await asyncio.wait([tasks[3]])
    await asyncio.sleep(0)  # the thread's own work is cancelled after the task
    go_on.set()
    results = await asyncio.gather(blocked, *tasks, return_exceptions=True)
    assert [str(each) for each in results] == ["True", "no", "no", "a1", "", "b3"]
    assert isinstance(results[4], asyncio.CancelledError)
    assert done == ["a1", "b3"]


@pytest.mark.asyncio
async def test_progress_is_reported_per_percent_from_any_thread() -> None:
    report, reported = (
        ProgressReport(asyncio.get_running_loop()),
        list[types.WorkDoneProgressReport](),
    )
    assert list(report.count(range(3), "files")) == [0, 1, 2]  # before it is shown
    report.show = reported.append
    counted = await asyncio.to_thread(lambda: list(report.count(range(1000), "files")))
    await asyncio.sleep(0)
    assert counted == list(range(1000))
    assert [each.percentage for each in reported] == list(range(100))
    assert reported[7].message == "70 of 1,000 files"


@pytest.mark.asyncio
async def test_a_mistake_of_ours_is_one_line_without_code(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise ValueError("def secret(): pass")

    server = create_server(Path("model"))
    logged: list[types.LogMessageParams] = []
    monkeypatch.setattr(server, "suggest", fail)
    monkeypatch.setattr(server, "window_log_message", logged.append)
    for _ in range(2):
        assert not (await complete(server, at("file:///a.py", 0, 0))).items
    [line] = logged
    assert line.type is types.MessageType.Error
    assert line.message.startswith("redraft: ValueError in test_parts.py:")
    assert line.message.endswith("; please report it")
