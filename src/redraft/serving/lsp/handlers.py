"""The language server: an editor's messages to what the server does, and its results back.

Knows the protocol's messages; computes nothing.
"""

import contextlib
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

from lsprotocol import types
from pygls.uris import to_fs_path

from redraft.errors import ConfigError, RedraftError
from redraft.serving.lsp.items import ItemStyle, completion_list, documentation, inline_list
from redraft.serving.lsp.positions import Buffer, Positions
from redraft.serving.lsp.server import EditorLog, RedraftServer, Suggestions, fault
from redraft.serving.lsp.settings import read_settings

HOST = "127.0.0.1"

_COMPLETION = types.CompletionOptions(
    trigger_characters=[".", "(", "[", "=", ",", " "], resolve_provider=True
)
_NOTHING_YET = types.CompletionList(is_incomplete=True, items=[])


def initialize(server: RedraftServer, params: types.InitializeParams) -> None:
    """Read what the editor can do and what it wants."""
    server.settings, server.complaints = read_settings(params.initialization_options)
    server.style = ItemStyle.of(params.capabilities)
    text_document = params.capabilities.text_document
    if text_document and text_document.inline_completion:
        options = types.InlineCompletionOptions()
        server.feature(types.TEXT_DOCUMENT_INLINE_COMPLETION, options)(complete_inline)


def initialized(server: RedraftServer, _: types.InitializedParams) -> None:
    """Say what was not understood, and begin to load the model."""
    for line in server.complaints:
        server.show(line)
    server.start(server.prepare())


def open_text(server: RedraftServer, params: types.DidOpenTextDocumentParams) -> None:
    """Hold a Python text in a buffer whose positions are the editor's."""
    opened = params.text_document
    if not (opened.language_id.startswith("python") or opened.uri.endswith((".py", ".pyi"))):
        return
    texts = server.workspace.text_documents
    texts[unquote(opened.uri)] = Buffer(
        opened.uri,
        source=opened.text,
        version=opened.version,
        language_id=opened.language_id,
        position_codec=Positions(server.workspace.position_encoding),
    )


async def complete(server: RedraftServer, params: types.CompletionParams) -> types.CompletionList:
    """The suggestions as a list."""
    suggestions = await _suggest(server, "list", params)
    if suggestions is None:
        return _NOTHING_YET
    return completion_list(suggestions.found, suggestions.cursor, server.style)


async def complete_inline(
    server: RedraftServer, params: types.InlineCompletionParams
) -> types.InlineCompletionList:
    """The suggestions as texts behind the cursor."""
    suggestions = await _suggest(server, "inline", params)
    if suggestions is None:
        return types.InlineCompletionList([])
    return inline_list(suggestions.found, suggestions.cursor)


async def _suggest(
    server: RedraftServer,
    kind: str,
    params: types.CompletionParams | types.InlineCompletionParams,
) -> Suggestions | None:
    """Suggestions at the cursor; what goes wrong is told once, and there are none."""
    try:
        return await server.suggest(kind, unquote(params.text_document.uri), params.position)
    except RedraftError as error:
        server.log(str(error))
    except Exception as error:
        server.log(fault(error), logging.ERROR)
    return None


def resolve(server: RedraftServer, item: types.CompletionItem) -> types.CompletionItem:
    """The item with the function that it borrows from, if that is still known."""
    identity = item.data.get("prototype") if isinstance(item.data, dict) else None
    prototype = server.prototypes.get(str(identity))
    if prototype is not None:
        item.documentation = documentation(prototype, server.style)
    return item


def save(server: RedraftServer, params: types.DidSaveTextDocumentParams) -> None:
    """Read the file again."""
    _touch(server, [params.text_document.uri])


def change_files(server: RedraftServer, params: types.DidChangeWatchedFilesParams) -> None:
    """Read the files again that the editor says have changed."""
    _touch(server, [change.uri for change in params.changes])


def _touch(server: RedraftServer, uris: list[str]) -> None:
    paths = [path for uri in uris if (path := to_fs_path(uri))]
    if server.functions is not None:
        server.functions.touch(map(Path, paths))


def change_folders(server: RedraftServer, _: types.DidChangeWorkspaceFoldersParams) -> None:
    """Borrow from the folders that are open now."""
    server.start(server.open_folders())


def shut_down(server: RedraftServer, _: None) -> None:
    """Begin nothing more."""
    server.stop()


HANDLERS: dict[str, Callable[..., object]] = {
    types.INITIALIZE: initialize,
    types.INITIALIZED: initialized,
    types.SHUTDOWN: shut_down,
    types.TEXT_DOCUMENT_DID_OPEN: open_text,
    types.TEXT_DOCUMENT_DID_SAVE: save,
    types.TEXT_DOCUMENT_COMPLETION: complete,
    types.COMPLETION_ITEM_RESOLVE: resolve,
    types.WORKSPACE_DID_CHANGE_WATCHED_FILES: change_files,
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: change_folders,
}
OPTIONS = {types.TEXT_DOCUMENT_COMPLETION: _COMPLETION}


def create_server(model: Path, store: str | None = None) -> RedraftServer:
    """A language server for a model's folder, with all it answers."""
    server = RedraftServer(model, store)
    for method, handler in HANDLERS.items():
        server.feature(method, OPTIONS.get(method))(handler)
    return server


def serve_stdio(server: RedraftServer) -> int:
    """Speak on standard input and output until the editor leaves; gives the exit code."""
    # whatever else is printed must not get between the messages
    stdout, sys.stdout = sys.stdout.buffer, sys.stderr
    return _serve(server, lambda: server.start_io(stdout=stdout))


def serve_tcp(server: RedraftServer, port: int) -> int:
    """Speak with the first who connects on this machine; gives the exit code."""
    try:
        return _serve(server, lambda: server.start_tcp(HOST, port))
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise ConfigError(f"port {port}: {reason}; name another with --tcp") from error


def _serve(server: RedraftServer, run: Callable[[], None]) -> int:
    logging.getLogger("pygls").setLevel(logging.CRITICAL + 1)  # it would log messages, with code
    library = logging.getLogger("redraft")
    library.addHandler(EditorLog(server))
    library.propagate = False
    with contextlib.suppress(SystemExit):  # how an editor's `exit` ends a connection
        run()
    return 0 if server.is_shut_down else 1
