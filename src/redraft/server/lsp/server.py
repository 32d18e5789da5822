"""The language server: its settings, model, workspace index and messages to the editor.

One thread loads the model and reads files, another computes completions, and the event loop sends
all messages. An error message is one line and never contains the user's code.
"""

import asyncio
import itertools
import logging
import traceback
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lsprotocol import types
from pygls.exceptions import (
    FeatureRequestError,
    JsonRpcException,
    JsonRpcInternalError,
    PyglsError,
)
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol
from pygls.uris import to_fs_path

from redraft import __version__
from redraft.completion.languages.registry import is_known, language_named
from redraft.errors import PairsError, RedraftError
from redraft.server import responses, schema
from redraft.server.lsp.items import ItemStyle
from redraft.server.lsp.positions import Buffer, Cursor, find_cursor
from redraft.server.lsp.progress import work_in_background
from redraft.server.lsp.quiet import is_off, worth_showing
from redraft.server.lsp.settings import LspSettings
from redraft.server.lsp.workspace import WorkspaceFunctions, ask_to_watch
from redraft.server.waiting import finished

if TYPE_CHECKING:
    from redraft.completion.lm_completion import InstantCompleter
    from redraft.server.served_model import ServedModel

Result = TypeVar("Result")

MAX_PATH = 4096
"""Longest path of a document that is compared with the indexed files."""

MAX_PROTOTYPES = 200
"""Recent prototypes to cache, in case the editor requests their documentation."""

_LEVELS = {
    logging.ERROR: types.MessageType.Error,
    logging.WARNING: types.MessageType.Warning,
    logging.INFO: types.MessageType.Info,
}


class PlainProtocol(LanguageServerProtocol):
    """The protocol with one-line errors in place of stack traces, also for malformed requests."""

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Parse a message; respond with an error to an invalid request."""
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "id" in data and "method" in data:
                self._send_response(data["id"], error=error.to_response_error())
            raise

    def _send_response(
        self,
        msg_id: int | str,
        result: Any | None = None,
        error: types.ResponseError | None = None,
    ) -> None:
        if error is not None:
            is_internal = error.code == JsonRpcInternalError.CODE
            message = JsonRpcInternalError.MESSAGE if is_internal else error.message
            error = types.ResponseError(code=error.code, message=message)
        super()._send_response(msg_id, result, error)


class LatestWorker:
    """Runs work in one thread, in order; skips work that is outdated before it starts.

    Work whose task is cancelled before it starts is skipped too.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="completing")
        self._counter = itertools.count()
        self._latest: dict[Hashable, int] = {}

    async def run(self, kind: Hashable, work: Callable[[], Result], *, otherwise: Result) -> Result:
        """Return the result of `work`, or `otherwise` if newer work of its kind replaced it."""
        number = self._latest[kind] = next(self._counter)

        def work_if_latest() -> Result:
            return work() if self._latest.get(kind) == number else otherwise

        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work_if_latest)
        finally:
            if self._latest.get(kind) == number:
                del self._latest[kind]


class RedraftServer(LanguageServer):
    """A language server for one editor; loads the model in the background."""

    def __init__(
        self,
        model: Path | None,
        store: str | None = None,
        *,
        trusted: Sequence[Path] = (),
        completer: "InstantCompleter | None" = None,
    ) -> None:
        super().__init__("redraft", __version__, protocol_cls=PlainProtocol)
        self.model = model
        self.store = store
        self.trusted = trusted
        self.completer = completer
        self.settings = LspSettings()
        self.setting_warnings: list[str] = []
        self.style = ItemStyle()
        self.served: ServedModel | None = None
        self.functions: WorkspaceFunctions | None = None
        self.is_shut_down = False
        self.prototypes: OrderedDict[str, responses.PrototypeSchema] = OrderedDict()
        self._editor_watches = False
        self._worker = LatestWorker()
        self._background = ThreadPoolExecutor(1, thread_name_prefix="reading")
        self.loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._logged: set[str] = set()

    def log(self, message: str, level: int = logging.WARNING) -> None:
        """Write a message to the editor's log, unless it was logged before."""
        if message not in self._logged:
            self._logged.add(message)
            self.window_log_message(types.LogMessageParams(_LEVELS[level], f"redraft: {message}"))

    def show(self, message: str, kind: types.MessageType = types.MessageType.Warning) -> None:
        """Show a message to the user."""
        self.window_show_message(types.ShowMessageParams(kind, f"redraft: {message}"))

    def report_server_error(
        self, error: Exception, source: type[PyglsError] | type[JsonRpcException]
    ) -> None:
        """Log an error outside of a request; errors of requests are part of their responses."""
        if source is not FeatureRequestError:
            self.log(f"invalid message ({type(error).__name__})")

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` in the background and show its errors."""

        async def run() -> None:
            try:
                await work
            except Exception as error:
                self.show(describe_error(error), types.MessageType.Error)

        self.loop = asyncio.get_running_loop()
        task = self.loop.create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: work.close())  # if cancelled before it started

    async def prepare(self) -> None:
        """Load the model, then index the workspace."""
        folder = self.settings.model or self.model
        title = "redraft: loading the model" if folder else "redraft: starting"
        self.served = await work_in_background(
            self, self._background, title, lambda _: _load(folder, self.store, self.completer)
        )
        self._editor_watches = await ask_to_watch(self)
        await self.open_folders()

    async def open_folders(self) -> None:
        """Index the functions of the open folders."""
        if self.functions is not None:
            self.functions.close()
            self.functions = None
        folders = self._folders()
        if self.served is None or not folders or not self.settings.index:
            return
        self.functions = WorkspaceFunctions(
            self, self._background, served=self.served, settings=self.settings, folders=folders
        )
        if not self._editor_watches:
            self.start(self.functions.watch())
        count = await self.functions.index()
        if count:
            self.log(f"indexed {count:,} functions of the workspace", logging.INFO)
        else:
            self.log("the workspace has no functions; completing from the model's examples")

    async def suggest(
        self, kind: str, uri: str, position: types.Position, *, waits: bool = False
    ) -> tuple[Sequence[responses.CompletionSchema], Cursor] | None:
        """Return completions at a position of an open document, and the cursor there.

        None if the model is not loaded, the document is not open, or a newer request came. If there
        are none yet and it `waits`, those of a language model are waited for.
        """
        served, buffer = self.served, self.workspace.text_documents.get(uri)
        if served is None or not isinstance(buffer, Buffer):
            return None
        path, language = _path_of(uri), str(buffer.language_id)
        if is_off(self.settings, path, language):
            return None
        cursor = find_cursor(buffer, position)
        # replace lone surrogates by "?", as mining does; offsets stay the same
        text = buffer.source.encode(errors="replace").decode()
        if len(text) > schema.MAX_BUFFER_LENGTH:
            raise PairsError(
                f"documents above {schema.MAX_BUFFER_LENGTH:,} characters are not completed"
            )
        request = schema.CompleteRequest(
            text=text, offset=cursor.offset, k=self.settings.k, file=_file_of(path, language)
        )
        suggested = await self._suggest(served, (kind, uri), request, waits=waits)
        if suggested is None:
            return None
        shown = worth_showing(self.settings, suggested)
        self._cache_prototypes(shown)
        return shown, cursor

    async def _suggest(
        self,
        served: "ServedModel",
        key: Hashable,
        request: schema.CompleteRequest,
        *,
        waits: bool,
    ) -> Sequence[responses.CompletionSchema] | None:
        suggested = await self._worker.run(key, lambda: served.suggest(request), otherwise=None)
        if suggested is None:
            return None
        completions, generation = suggested
        if completions or generation is None or not waits:
            return completions
        try:
            await finished(generation.future, self.settings.lm_wait_ms / 1000)
        except asyncio.CancelledError:
            served.completer.release(generation)
            raise
        waited = await self._worker.run(
            (key, "waited"), lambda: served.suggest(request, generation), otherwise=None
        )
        return None if waited is None else waited[0]

    def stop(self) -> None:
        """Stop watching files and cancel background work."""
        self.is_shut_down = True
        if self.functions is not None:
            self.functions.close()
        for task in self._tasks:
            task.cancel()

    def _cache_prototypes(self, completions: Sequence[responses.CompletionSchema]) -> None:
        for completion in completions:
            if completion.prototype is not None:
                self.prototypes[completion.prototype.id] = completion.prototype
                self.prototypes.move_to_end(completion.prototype.id)
        while len(self.prototypes) > MAX_PROTOTYPES:
            self.prototypes.popitem(last=False)

    def _folders(self) -> list[Path]:
        """Return the folders of the workspace that exist on this machine."""
        workspace = self.workspace
        uris = [folder.uri for folder in workspace.folders.values()] or [workspace.root_uri]
        paths = [to_fs_path(uri) for uri in uris if uri]
        return [Path(path) for path in paths if path and Path(path).is_dir()]


class EditorLog(logging.Handler):
    """Logging handler that writes the library's messages, of any thread, to the editor's log."""

    def __init__(self, server: RedraftServer) -> None:
        super().__init__(logging.INFO)
        self._server = server

    def emit(self, record: logging.LogRecord) -> None:
        """Send a record to the editor."""
        level = max((level for level in _LEVELS if level <= record.levelno), default=logging.INFO)
        loop = self._server.loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._server.log, record.getMessage(), level)


def _path_of(uri: str) -> str | None:
    """Return the path of a document, None if it has none or an unusual one."""
    path = to_fs_path(uri)
    return path if path and len(path) <= MAX_PATH else None


def _file_of(path: str | None, language: str) -> str | None:
    """Return the path of a document, with the ending of its language if it has no known one."""
    if is_known("", path or ""):
        return path
    name = (path or "untitled").rpartition("/")[2]
    return name[-MAX_PATH // 2 :] + language_named(language).suffixes[0]


def _load(
    folder: Path | None, store: str | None, completer: "InstantCompleter | None"
) -> "ServedModel":
    served = _open(folder, store)
    if completer is not None:
        served.completer = completer
    return served


def _open(folder: Path | None, store: str | None) -> "ServedModel":
    from redraft.completion.project import empty_model
    from redraft.persistence import stored_model
    from redraft.server.served_model import ServedModel

    if folder is None:
        return ServedModel("workspace", empty_model())

    # the model may come from the editor's settings and not be in the store
    store = store if stored_model(folder) else None
    # the workspace must not change the model on disk
    served = ServedModel.open(folder.name, folder, store=store, persist=False)
    if not served.info().completes_python:
        raise PairsError(
            f"{folder}: cannot complete Python, since its examples are not functions; "
            "fit a model on the output of `redraft mine`"
        )
    buffer = "def f():\n    "
    # warm up: the first completion is slow
    served.complete(schema.CompleteRequest(text=buffer, offset=len(buffer)))
    return served


def describe_error(error: Exception) -> str:
    """Return the message of an error of ours, or the type and location of an internal error.

    The message of an internal error may contain user code.
    """
    if isinstance(error, RedraftError):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)[-1:]
    location = "".join(f" in {Path(frame.filename).name}:{frame.lineno}" for frame in frames)
    return f"{type(error).__name__}{location}; please report it"
