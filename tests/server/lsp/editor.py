"""A headless editor connected to a real `redraft lsp` process."""

import asyncio
import itertools
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from lsprotocol import types
from pytest_lsp import LanguageClient, make_test_lsp_client

from tests.lm.endpoint import Endpoint

DEADLINE = 60.0
COMMAND = (sys.executable, "-m", "redraft", "lsp")

FULL = types.ClientCapabilities(
    general=types.GeneralClientCapabilities(),
    window=types.WindowClientCapabilities(work_done_progress=True),
    workspace=types.WorkspaceClientCapabilities(
        did_change_watched_files=types.DidChangeWatchedFilesClientCapabilities(
            dynamic_registration=True
        ),
        workspace_folders=True,
    ),
    text_document=types.TextDocumentClientCapabilities(
        completion=types.CompletionClientCapabilities(
            completion_item=types.ClientCompletionItemOptions(
                documentation_format=[types.MarkupKind.Markdown],
                resolve_support=types.ClientCompletionItemResolveOptions(["documentation"]),
                insert_text_mode_support=types.ClientCompletionItemInsertTextModeOptions(
                    [types.InsertTextMode.AsIs]
                ),
            )
        ),
        inline_completion=types.InlineCompletionClientCapabilities(),
    ),
)
"""Of an editor that can do all that the server makes use of."""

POOR = types.ClientCapabilities()
"""Capabilities of a minimal editor."""


Items = Sequence[types.CompletionItem]


class Editor:
    """Opens, changes, saves and completes one text after the other."""

    def __init__(self, client: LanguageClient) -> None:
        self.client = client
        self.registered: list[str] = []
        self._numbers = itertools.count()
        client.feature(types.CLIENT_REGISTER_CAPABILITY)(self._register())

    def _register(self) -> Callable[[types.RegistrationParams], None]:
        def register(params: types.RegistrationParams) -> None:
            self.registered.extend(each.method for each in params.registrations)

        return register

    async def initialize(
        self,
        capabilities: types.ClientCapabilities = FULL,
        *,
        options: Mapping[str, Any] | None = None,
        folder: Path | None = None,
    ) -> types.InitializeResult:
        """Begin a session, with a folder open."""
        uri = folder.as_uri() if folder else None
        folders = [types.WorkspaceFolder(uri, "work")] if uri else None
        return await self.client.initialize_session(
            types.InitializeParams(
                capabilities=capabilities,
                initialization_options=options,
                root_uri=uri,
                workspace_folders=folders,
            )
        )

    def open(self, text: str, uri: str = "") -> str:
        """Open a text under a new name, or this one."""
        uri = uri or f"file:///buffers/{next(self._numbers)}.py"
        opened = types.TextDocumentItem(uri, "python", 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(opened))
        return uri

    def change(self, uri: str, text: str, *place: int) -> None:
        """Replace the text between two (line, character) positions, or all of it."""
        change: types.TextDocumentContentChangeEvent
        if place:
            start, end = types.Position(*place[:2]), types.Position(*place[2:])
            change = types.TextDocumentContentChangePartial(types.Range(start, end), text)
        else:
            change = types.TextDocumentContentChangeWholeDocument(text)
        identifier = types.VersionedTextDocumentIdentifier(2, uri)
        params = types.DidChangeTextDocumentParams(identifier, [change])
        self.client.text_document_did_change(params)

    def save(self, path: Path) -> None:
        """Tell that a file was saved."""
        saved = types.TextDocumentIdentifier(path.as_uri())
        self.client.text_document_did_save(types.DidSaveTextDocumentParams(saved))

    async def complete(self, uri: str, line: int, character: int) -> types.CompletionList:
        """What the server answers for a position."""
        found = await self.client.text_document_completion_async(at(uri, line, character))
        assert isinstance(found, types.CompletionList)
        return found

    async def complete_end(self, text: str) -> types.CompletionList:
        """What the server answers at the end of a new text."""
        *above, last = text.split("\n")
        return await self.complete(self.open(text), len(above), len(last.encode("utf-16-le")) // 2)

    def request(self, method: str, params: object) -> "asyncio.Future[object]":
        """The answer to a request, also to one that the protocol does not allow."""
        number = f"by hand {next(self._numbers)}"
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        future: Future[object] = Future()
        self.client.protocol._request_futures[number] = future
        self.write(json.dumps(message).encode())
        return asyncio.wrap_future(future)

    def write(self, body: bytes) -> None:
        """Send a message as it stands, if it is one."""
        assert self.client._server is not None
        assert self.client._server.stdin is not None
        self.client._server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for something that the server will say."""
        end = time.monotonic() + DEADLINE
        while not condition():
            assert time.monotonic() < end, "the server did not say it in time"
            await asyncio.sleep(0.01)

    async def answered(self, ask: Callable[[], Awaitable[types.CompletionList]]) -> Items:
        """Ask until there is a suggestion."""
        end = time.monotonic() + DEADLINE
        while not (found := await ask()).items:
            assert time.monotonic() < end, "nothing was suggested in time"
            await asyncio.sleep(0.01)
        return found.items

    async def until_suggested(self, text: str, *labels: str) -> None:
        """Ask until one of these is the first suggestion at the end of a text."""
        end = time.monotonic() + DEADLINE
        while (found := await self.complete_end(text)).items[0].label not in labels:
            assert time.monotonic() < end, f"{found.items[0].label} is still suggested"
            await asyncio.sleep(0.01)

    async def until_generating(self, server: Endpoint, text: str) -> None:
        """Ask at the end of a text until a language model is asked as well."""
        end = time.monotonic() + DEADLINE
        while not server.bodies:
            assert time.monotonic() < end, "the language model was not asked in time"
            await self.complete_end(text)
            await asyncio.sleep(0.1)

    async def ready(self) -> None:
        """Wait for the model, and for the workspace to be read."""
        await self.until(lambda: any("of the workspace" in line for line in self.log))

    @property
    def log(self) -> list[str]:
        """The lines of the editor's log."""
        return [each.message for each in self.client.log_messages]

    @property
    def shown(self) -> list[str]:
        """The lines that the user saw."""
        return [each.message for each in self.client.messages]


def at(uri: str, line: int, character: int) -> types.CompletionParams:
    """Return completion params for a position."""
    return types.CompletionParams(
        types.TextDocumentIdentifier(uri), types.Position(line, character)
    )


async def stop(client: LanguageClient) -> None:
    """Let go of the server."""
    await client.stop()  # type: ignore[no-untyped-call]


@asynccontextmanager
async def running(*arguments: object) -> AsyncIterator[Editor]:
    """Run an editor with its server, and stop both at the end."""
    client = make_test_lsp_client()
    editor = Editor(client)
    await client.start_io(*COMMAND, *map(str, arguments))
    process = client._server
    assert process is not None
    try:
        yield editor
        if process.returncode is None and client.capabilities is not None:
            await asyncio.wait_for(client.shutdown_session(), DEADLINE)
    finally:
        if process.returncode is None:
            process.kill()
        await stop(client)
