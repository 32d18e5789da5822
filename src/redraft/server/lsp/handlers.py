"""Handlers of LSP messages: convert requests to calls of the server, and results to responses.

Knows the protocol's messages; computes nothing.
"""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.uris import to_fs_path

from redraft.completion.languages.registry import is_known
from redraft.errors import RedraftError
from redraft.server.lsp.items import (
    ItemStyle,
    completion_list,
    documentation,
    inline_list,
    source,
)
from redraft.server.lsp.positions import Buffer, Cursor, Positions
from redraft.server.lsp.server import RedraftServer, describe_error
from redraft.server.lsp.settings import read_settings
from redraft.server.responses import CompletionSchema

if TYPE_CHECKING:
    from redraft.completion.lm_completion import InstantCompleter

SOURCE = "redraft/source"
"""Request of our own: the function that a suggestion borrows from, by its id."""

_NOTHING_YET = types.CompletionList(is_incomplete=True, items=[])


def initialize(server: RedraftServer, params: types.InitializeParams) -> None:
    """Read the editor's settings and capabilities."""
    server.settings, server.setting_warnings = read_settings(
        params.initialization_options, trusted=server.trusted
    )
    server.style = ItemStyle.of(params.capabilities)
    if get_capability(params.capabilities, "text_document.inline_completion"):
        options = types.InlineCompletionOptions()
        server.feature(types.TEXT_DOCUMENT_INLINE_COMPLETION, options)(complete_inline)


def initialized(server: RedraftServer, _: types.InitializedParams) -> None:
    """Show warnings about the settings, and start to load the model."""
    for warning in server.setting_warnings:
        server.show(warning)
    server.start(server.prepare())


def open_text(server: RedraftServer, params: types.DidOpenTextDocumentParams) -> None:
    """Keep a document of a known language in a buffer with the editor's position encoding."""
    document = params.text_document
    if not is_known(document.language_id, document.uri):
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
    context = params.context
    is_asked = context is None or context.trigger_kind is types.CompletionTriggerKind.Invoked
    suggestions = await _suggest(server, "list", params, waits=is_asked)
    if suggestions is None or (not suggestions[0] and server.completer is not None):
        return _NOTHING_YET  # the editor asks again with the next keystroke
    return completion_list(*suggestions, server.style)


async def complete_inline(
    server: RedraftServer, params: types.InlineCompletionParams
) -> types.InlineCompletionList:
    """Return the suggestions as inline completions."""
    suggestions = await _suggest(server, "inline", params, waits=True)
    if suggestions is None:
        return types.InlineCompletionList([])
    return inline_list(*suggestions, server.settings.accept_command)


async def _suggest(
    server: RedraftServer,
    kind: str,
    params: types.CompletionParams | types.InlineCompletionParams,
    *,
    waits: bool,
) -> tuple[Sequence[CompletionSchema], Cursor] | None:
    """Return completions and the cursor; log errors and return None."""
    try:
        uri = unquote(params.text_document.uri)
        return await server.suggest(kind, uri, params.position, waits=waits)
    except Exception as error:
        is_ours = isinstance(error, RedraftError)
        server.log(describe_error(error), logging.WARNING if is_ours else logging.ERROR)
        return None


def resolve(server: RedraftServer, item: types.CompletionItem) -> types.CompletionItem:
    """Add the source of the prototype to the item, if it is still cached."""
    identity = item.data.get("prototype") if isinstance(item.data, dict) else None
    prototype = server.prototypes.get(str(identity))
    if prototype is not None:
        item.documentation = documentation(prototype, server.style)
    return item


def show_source(server: RedraftServer, params: Any) -> dict[str, Any] | None:
    """Return the function with the id in `params`, if it is still cached."""
    prototype = server.prototypes.get(str(getattr(params, "id", None)))
    return None if prototype is None else source(prototype)


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
    SOURCE: show_source,
    types.WORKSPACE_DID_CHANGE_WATCHED_FILES: change_files,
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: change_folders,
}
_OPTIONS = {
    types.TEXT_DOCUMENT_COMPLETION: types.CompletionOptions(
        trigger_characters=[".", "(", "[", "=", ",", " "], resolve_provider=True
    )
}


def create_server(
    model: Path | None,
    store: str | None = None,
    *,
    trusted: Sequence[Path] = (),
    completer: "InstantCompleter | None" = None,
) -> RedraftServer:
    """Return a language server with all handlers registered.

    `model` is the folder of a model; without one, the workspace alone is completed from.

    The editor's settings may select another model only inside the `trusted` folders. `completer`
    may ask a language model.
    """
    server = RedraftServer(model, store, trusted=trusted, completer=completer)
    for method, handler in HANDLERS.items():
        server.feature(method, _OPTIONS.get(method))(handler)
    return server
