"""What a language server holds: its settings, its model, the workspace, and who is told what.

The model is loaded and files are read in one thread, completions are computed in another, and all
messages are sent from the event loop. What goes wrong is one line; no code is ever part of it.
"""

import asyncio
import logging
import traceback
from collections import OrderedDict
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import FeatureRequestError, JsonRpcException, PyglsError
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from redraft import __version__
from redraft.errors import PairsError, RedraftError
from redraft.serving import schema
from redraft.serving.lsp.items import ItemStyle
from redraft.serving.lsp.positions import Buffer, Cursor, find_cursor
from redraft.serving.lsp.progress import work_in_background
from redraft.serving.lsp.protocol import PlainProtocol
from redraft.serving.lsp.settings import Settings
from redraft.serving.lsp.worker import LatestWorker
from redraft.serving.lsp.workspace import WorkspaceFunctions, ask_to_watch

if TYPE_CHECKING:
    from redraft.serving.served_model import ServedModel

PROTOTYPES = 200
"""Functions last suggested from, kept in case the editor asks to see them."""

_LEVELS = {
    logging.ERROR: types.MessageType.Error,
    logging.WARNING: types.MessageType.Warning,
    logging.INFO: types.MessageType.Info,
}


@dataclass(frozen=True)
class Suggestions:
    """What can be inserted at a cursor."""

    found: Sequence[schema.ShownCompletion]
    cursor: Cursor


class RedraftServer(LanguageServer):
    """A language server for one editor; the model comes in the background."""

    def __init__(self, model: Path, store: str | None = None) -> None:
        super().__init__("redraft", __version__, protocol_cls=PlainProtocol)
        self.model = model
        self.store = store
        self.settings = Settings()
        self.complaints: list[str] = []
        self.style = ItemStyle()
        self.served: ServedModel | None = None
        self.functions: WorkspaceFunctions | None = None
        self.is_shut_down = False
        self.prototypes: OrderedDict[str, schema.ShownPrototype] = OrderedDict()
        self._editor_watches = False
        self._worker = LatestWorker()
        self._background = ThreadPoolExecutor(1, thread_name_prefix="reading")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._told: set[str] = set()

    def log(self, message: str, level: int = logging.WARNING) -> None:
        """A line in the editor's log, once."""
        if message not in self._told:
            self._told.add(message)
            self.window_log_message(types.LogMessageParams(_LEVELS[level], f"redraft: {message}"))

    def show(self, message: str, kind: types.MessageType = types.MessageType.Warning) -> None:
        """A line that the editor shows to its user."""
        self.window_show_message(types.ShowMessageParams(kind, f"redraft: {message}"))

    def log_from_any_thread(self, message: str, level: int) -> None:
        """The same, sent from the event loop."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.log, message, level)

    def report_server_error(
        self, error: Exception, source: type[PyglsError] | type[JsonRpcException]
    ) -> None:
        """A line for what went wrong outside of a request; a request is told by its answer."""
        if source is not FeatureRequestError:
            self.log(f"a message was not understood ({type(error).__name__})")

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Work beside the messages; what goes wrong is told."""

        async def work_and_tell() -> None:
            try:
                await work
            except RedraftError as error:
                self.show(str(error), types.MessageType.Error)
            except Exception as error:
                self.show(fault(error), types.MessageType.Error)

        self._loop = asyncio.get_running_loop()
        task = self._loop.create_task(work_and_tell())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: work.close())  # if it was cancelled before it began

    async def prepare(self) -> None:
        """Load the model, then read the workspace."""
        folder = self.model
        if self.settings.model is not None:
            folder = self.settings.model.expanduser()
        served = await work_in_background(
            self,
            self._background,
            "redraft: loading the model",
            lambda _: _load(folder, self.store),
        )
        self.served = served
        self._editor_watches = await ask_to_watch(self)
        await self.open_folders()

    async def open_folders(self) -> None:
        """Borrow from the functions of the folders that are open now."""
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
            self.log(f"{count:,} functions of the workspace can be borrowed from", logging.INFO)
        else:
            self.log("the workspace has no function with a body; the model's own examples stay")

    async def suggest(self, kind: str, uri: str, position: types.Position) -> Suggestions | None:
        """What can be inserted at a position of an open text; None where nothing is known yet."""
        served, buffer = self.served, self.workspace.text_documents.get(uri)
        if served is None or not isinstance(buffer, Buffer):
            return None
        cursor = find_cursor(buffer, position)
        # half a character is read as a question mark, as mining does; places stay the same
        text = buffer.source.encode(errors="replace").decode()
        if len(text) > schema.LONGEST_BUFFER:
            raise PairsError(
                f"texts of more than {schema.LONGEST_BUFFER:,} characters are not completed"
            )
        request = schema.CompleteRequest(text=text, offset=cursor.offset, k=self.settings.k)
        found = await self._worker.run(
            (kind, uri), lambda: served.complete(request), otherwise=None
        )
        if found is None:
            return None
        self._remember(found)
        return Suggestions(found, cursor)

    def stop(self) -> None:
        """Begin nothing more."""
        self.is_shut_down = True
        if self.functions is not None:
            self.functions.close()
        for task in self._tasks:
            task.cancel()

    def _remember(self, found: Sequence[schema.ShownCompletion]) -> None:
        for each in found:
            if each.prototype is not None:
                self.prototypes[each.prototype.id] = each.prototype
                self.prototypes.move_to_end(each.prototype.id)
        while len(self.prototypes) > PROTOTYPES:
            self.prototypes.popitem(last=False)

    def _folders(self) -> list[Path]:
        """The folders of the workspace that are on this machine."""
        workspace = self.workspace
        uris = [each.uri for each in workspace.folders.values()] or [workspace.root_uri]
        paths = [to_fs_path(uri) for uri in uris if uri]
        return [Path(path) for path in paths if path and Path(path).is_dir()]


class EditorLog(logging.Handler):
    """What the library remarks, as lines in the editor's log."""

    def __init__(self, server: RedraftServer) -> None:
        super().__init__(logging.INFO)
        self._server = server

    def emit(self, record: logging.LogRecord) -> None:
        """Send a remark."""
        level = max((each for each in _LEVELS if each <= record.levelno), default=logging.INFO)
        self._server.log_from_any_thread(record.getMessage(), level)


def _load(folder: Path, store: str | None) -> "ServedModel":
    from redraft.experiment import stored_model
    from redraft.retrieve_and_edit import RetrieveAndEdit
    from redraft.serving.served_model import ServedModel

    # an editor's settings may name another model, which need not be in the store
    store = store if stored_model(folder) else None
    # without a folder: what an editor has open changes no model on disk
    served = ServedModel(folder.name, RetrieveAndEdit.load(folder, store=store))
    if not served.info().completes_python:
        raise PairsError(
            f"{folder}: completes no Python, since its examples are not functions; "
            "fit a model on what `redraft mine` writes"
        )
    buffer = "def f():\n    "
    served.complete(schema.CompleteRequest(text=buffer, offset=len(buffer)))  # the first is slow
    return served


def fault(error: Exception) -> str:
    """What kind of mistake of ours it was and where, but not what it says: that may be code."""
    place = traceback.extract_tb(error.__traceback__)[-1:]
    where = "".join(f" in {Path(frame.filename).name}:{frame.lineno}" for frame in place)
    return f"{type(error).__name__}{where}; please report it"
