"""The index of the open workspace, updated as files change."""

import asyncio
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from redraft.completion.languages.registry import suffixes
from redraft.completion.project import Project
from redraft.completion.watcher import Watcher
from redraft.server.lsp.progress import ProgressReport, is_granted, work_in_background
from redraft.server.lsp.settings import LspSettings

if TYPE_CHECKING:
    from redraft.server.served_model import ServedModel

_WATCHED = types.DidChangeWatchedFilesRegistrationOptions(
    watchers=[types.FileSystemWatcher(glob_pattern=f"**/*{ending}") for ending in suffixes()]
)


INDEX_CHANGED = "$/redraft/index"
"""Notification with the number of indexed functions; editors may ignore what begins with `$/`."""


class WorkspaceFunctions:
    """Indexes the functions of the workspace's folders into a served model."""

    def __init__(
        self,
        server: LanguageServer,
        thread: ThreadPoolExecutor,
        *,
        served: "ServedModel",
        settings: LspSettings,
        folders: Sequence[Path],
    ) -> None:
        self._server = server
        self._thread = thread
        self._served = served
        self._debounce = settings.debounce_ms / 1000
        self._watcher = Watcher(
            folders,
            self._index,
            without=settings.without,
            debounce_ms=max(settings.debounce_ms, 1),
        )
        self._loop = asyncio.get_running_loop()
        self._touched: set[Path] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._stop = asyncio.Event()

    async def index(self) -> int:
        """Read all files, make their functions the examples and return their number."""
        title = "redraft: indexing the workspace"
        return await work_in_background(
            self._server, self._thread, title, self._read, is_counted=True
        )

    async def watch(self) -> None:
        """Watch the files until closed, for an editor that does not report changes."""
        await self._watcher.run(self._stop)

    def touch(self, paths: Iterable[Path]) -> None:
        """Re-index these files after the debounce time."""
        self._touched.update(paths)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(self._debounce, self._update)

    def close(self) -> None:
        """Stop watching."""
        self._stop.set()
        if self._timer is not None:
            self._timer.cancel()

    def _update(self) -> None:
        touched, self._touched = self._touched, set()
        self._thread.submit(self._watcher.update, touched)

    def _read(self, report: ProgressReport) -> int:
        project = self._watcher.read(lambda sources: report.count(sources, "files"))
        functions = sum(map(len, project.files.values()))
        if functions:
            report(f"{functions:,} functions")
            self._index(project)
        return functions

    def _index(self, project: Project) -> None:
        """Make the functions of a project the examples, and tell the editor their number."""
        self._served.index(project)
        functions = {"functions": self._served.info().examples}
        self._loop.call_soon_threadsafe(self._server.protocol.notify, INDEX_CHANGED, functions)


async def ask_to_watch(server: LanguageServer) -> bool:
    """Ask the editor to report changed files; returns True if it will."""
    method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
    registration = types.RegistrationParams([types.Registration("watched-files", method, _WATCHED)])
    return await is_granted(
        server,
        "workspace.did_change_watched_files.dynamic_registration",
        lambda: server.client_register_capability_async(registration),
    )
