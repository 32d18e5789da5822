"""Handlers of LSP messages: convert requests to calls of the server, and results to responses.

Knows the protocol's messages; computes nothing.
"""

import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import unquote

from lsprotocol import types
from pygls.uris import to_fs_path

from redraft.errors import ConfigError, RedraftError
from redraft.server.lsp.connection import connect_stdio, connect_tcp
from redraft.server.lsp.items import ItemStyle, completion_list, documentation, inline_list
from redraft.server.lsp.positions import Buffer, Positions
from redraft.server.lsp.server import EditorLog, RedraftServer, Suggestions, describe_error
from redraft.server.lsp.settings import read_settings

HOST = "127.0.0.1"

_COMPLETION = types.CompletionOptions(
    trigger_characters=[".", "(", "[", "=", ",", " "], resolve_provider=True
)
_NOTHING_YET = types.CompletionList(is_incomplete=True, items=[])


def initialize(server: RedraftServer, params: types.InitializeParams) -> None:
    """Read the editor's settings and capabilities."""
    server.settings, server.setting_warnings = read_settings(
        params.initialization_options, trusted=server.trusted
    )
    server.style = ItemStyle.of(params.capabilities)
    text_document = params.capabilities.text_document
    if text_document and text_document.inline_completion:
        options = types.InlineCompletionOptions()
        server.feature(types.TEXT_DOCUMENT_INLINE_COMPLETION, options)(complete_inline)


def initialized(server: RedraftServer, _: types.InitializedParams) -> None:
    """Show warnings about the settings, and start to load the model."""
    for warning in server.setting_warnings:
        server.show(warning)
    server.start(server.prepare())


def open_text(server: RedraftServer, params: types.DidOpenTextDocumentParams) -> None:
    """Keep a Python document in a buffer with the editor's position encoding."""
    document = params.text_document
    if not (document.language_id.startswith("python") or document.uri.endswith((".py", ".pyi"))):
        return
    server.workspace.text_documents[unquote(document.uri)] = Buffer(
        document.uri,
        source=document.text,
        version=document.version,
        language_id=document.language_id,
        position_codec=Positions(server.workspace.position_encoding),
    )


async def complete(server: RedraftServer, params: types.CompletionParams) -> types.CompletionList:
    """Return the suggestions as a completion list."""
    suggestions = await _suggest(server, "list", params)
    if suggestions is None:
        return _NOTHING_YET
    return completion_list(suggestions.completions, suggestions.cursor, server.style)


async def complete_inline(
    server: RedraftServer, params: types.InlineCompletionParams
) -> types.InlineCompletionList:
    """Return the suggestions as inline completions."""
    suggestions = await _suggest(server, "inline", params)
    if suggestions is None:
        return types.InlineCompletionList([])
    return inline_list(suggestions.completions, suggestions.cursor)


async def _suggest(
    server: RedraftServer,
    kind: str,
    params: types.CompletionParams | types.InlineCompletionParams,
) -> Suggestions | None:
    """Return suggestions at the cursor; log errors and return None."""
    try:
        return await server.suggest(kind, unquote(params.text_document.uri), params.position)
    except RedraftError as error:
        server.log(str(error))
    except Exception as error:
        server.log(describe_error(error), logging.ERROR)
    return None


def resolve(server: RedraftServer, item: types.CompletionItem) -> types.CompletionItem:
    """Add the source of the prototype to the item, if it is still cached."""
    identity = item.data.get("prototype") if isinstance(item.data, dict) else None
    prototype = server.prototypes.get(str(identity))
    if prototype is not None:
        item.documentation = documentation(prototype, server.style)
    return item


def save(server: RedraftServer, params: types.DidSaveTextDocumentParams) -> None:
    """Re-index the saved file."""
    _touch(server, [params.text_document.uri])


def change_files(server: RedraftServer, params: types.DidChangeWatchedFilesParams) -> None:
    """Re-index the files that the editor reports as changed."""
    _touch(server, [change.uri for change in params.changes])


def _touch(server: RedraftServer, uris: list[str]) -> None:
    paths = [path for uri in uris if (path := to_fs_path(uri))]
    if server.functions is not None:
        server.functions.touch(map(Path, paths))


def change_folders(server: RedraftServer, _: types.DidChangeWorkspaceFoldersParams) -> None:
    """Index the folders that are now open."""
    server.start(server.open_folders())


def shut_down(server: RedraftServer, _: None) -> None:
    """Stop all work."""
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


def create_server(
    model: Path, store: str | None = None, *, trusted: Sequence[Path] = ()
) -> RedraftServer:
    """Return a language server for the model in a folder, with all handlers registered.

    The editor's settings may select another model only inside the `trusted` folders.
    """
    server = RedraftServer(model, store, trusted=trusted)
    for method, handler in HANDLERS.items():
        server.feature(method, OPTIONS.get(method))(handler)
    return server


def serve_stdio(server: RedraftServer) -> int:
    """Serve on standard input and output until the editor disconnects; returns the exit code."""
    # stray prints must not corrupt the protocol's messages
    stdout, sys.stdout = sys.stdout.buffer, sys.stderr
    return _serve(server, lambda: connect_stdio(server, sys.stdin.buffer, stdout))


def serve_tcp(server: RedraftServer, port: int) -> int:
    """Serve the first editor that connects to the local port; returns the exit code."""
    try:
        return _serve(server, lambda: connect_tcp(server, HOST, port))
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise ConfigError(f"port {port}: {reason}; choose another with --tcp") from error


def _serve(server: RedraftServer, run: Callable[[], None]) -> int:
    logging.getLogger("pygls").setLevel(logging.CRITICAL + 1)  # it would log the user's code
    library = logging.getLogger("redraft")
    library.addHandler(EditorLog(server))
    library.propagate = False
    run()
    return 0 if server.is_shut_down else 1
