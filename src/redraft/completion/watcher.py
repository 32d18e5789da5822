"""Watches source files and mines changed ones again.

Knows no model and no protocol: a callback receives the updated project.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from redraft.completion.languages.registry import suffixes
from redraft.completion.project import Progress, Project, sources_of
from redraft.errors import MissingExtraError, RedraftError
from redraft.mining.python_functions import SKIPPED_FOLDERS, Source

if TYPE_CHECKING:
    from watchfiles import Change

DEBOUNCE_MS = 300
"""Milliseconds without changes before files are read again."""

_MAX_DEBOUNCES = 10
"""Debounce periods after which files are read even if they still change."""

_LOG = logging.getLogger(__name__)


class Watcher:
    """Keeps the functions under `paths` up to date and calls `on_change` with each new project.

    Thread-safe: calls run one at a time, so files may change while all are being read.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        on_change: Callable[[Project], object],
        *,
        without: Iterable[str] = (),
        debounce_ms: int = DEBOUNCE_MS,
    ) -> None:
        self.paths = [path.resolve() for path in paths]
        self.project = Project({}, [])
        self._on_change = on_change
        self._without = frozenset(without)
        self._debounce_ms = debounce_ms
        self._sources: dict[Path, Source] = {}
        self._touched: set[Path] = set()
        self._running = threading.Lock()

    def read(self, watch: Progress = iter) -> Project:
        """Read every file and return the project, without calling `on_change`."""
        with self._running:
            sources = self._find(self.paths)
            self.project = Project({}, []).updated(list(sources.values()), watch=watch)
            self._sources = sources
            return self.project

    def update(self, touched: Iterable[Path]) -> bool:
        """Read the touched sources again; returns True if the project changed.

        Folders are searched only if a touched path is new. If one of them is deleted meanwhile,
        the touched paths are kept for the next update, which the deletion triggers.
        """
        with self._running:
            # an editor may send anything; a string with a NUL byte is not a path
            self._touched.update(path for path in touched if "\0" not in str(path))
            try:
                paths = {path.parent.resolve() / path.name for path in self._touched}
                paths = {path for path in paths if self._is_inside(path)}
                sources = self._sources_after(paths)
            except OSError as error:
                _LOG.info("files changed during the search: %s", error.strerror)
                return False
            self._touched.clear()
            return self._replace(sources, paths)

    async def run(self, stop: asyncio.Event) -> None:
        """Watch the files until `stop` is set."""
        folders = [path for path in self.paths if path.is_dir()]
        # watch the folders of single files: an editor may replace a file by a new one
        parents = {path.parent for path in self.paths if path not in folders}
        watched = ((folders, True), (parents, False))
        await asyncio.gather(
            *(self._run(paths, stop, recursive=is_deep) for paths, is_deep in watched if paths)
        )

    async def _run(self, paths: Iterable[Path], stop: asyncio.Event, *, recursive: bool) -> None:
        try:
            from watchfiles import awatch
        except ImportError as error:
            raise MissingExtraError("watchfiles", extra="lsp", purpose="watching files") from error
        try:
            async for changes in awatch(
                *paths,
                watch_filter=None,  # it would run in the event loop, once per file
                debounce=self._debounce_ms * _MAX_DEBOUNCES,
                step=self._debounce_ms,
                stop_event=stop,
                recursive=recursive,
                ignore_permission_denied=True,
            ):
                await asyncio.to_thread(self._update_changed, changes)
        except OSError as error:
            _LOG.warning("cannot watch for file changes: %s", error)

    def _update_changed(self, changes: "set[tuple[Change, str]]") -> None:
        """Read the changed sources again; does nothing if all changes are outside the paths."""
        from watchfiles import Change

        # a folder is modified with every file in it; only added and deleted entries matter
        touched = {
            Path(path)
            for change, path in changes
            if (change is not Change.modified or path.endswith(suffixes()))
            and self._is_inside(Path(path))
        }
        if touched:
            self.update(touched)

    def _sources_after(self, changed: set[Path]) -> dict[Path, Source]:
        if any(self._needs_search(path) for path in changed):
            return self._find([path for path in self.paths if path.exists()])
        deleted = {path for path in changed if not path.is_file()}
        return {path: source for path, source in self._sources.items() if path not in deleted}

    def _find(self, paths: Sequence[Path]) -> dict[Path, Source]:
        return {source.path: source for source in sources_of(paths, without=self._without)}

    def _is_inside(self, path: Path) -> bool:
        """Return True if `path` is a watched path, or below one and not in a skipped folder."""
        skipped = SKIPPED_FOLDERS | self._without
        for watched in self.paths:
            if path.is_relative_to(watched):
                parts = path.relative_to(watched).parts
                folders = parts[:-1] if path.suffix in suffixes() else parts
                return not any(name in skipped or name.startswith(".") for name in folders)
        return False

    def _needs_search(self, path: Path) -> bool:
        """Return True if the list of sources may change: a new file, or a folder."""
        if path in self._sources:
            return False
        if path.suffix in suffixes() and path.is_file():
            return True
        return path.is_dir() or any(path in source.parents for source in self._sources)

    def _replace(self, sources: dict[Path, Source], touched: set[Path]) -> bool:
        """Update the project from the new sources, several of which may share a name."""
        changed = touched | (self._sources.keys() ^ sources.keys())
        all_sources = {**self._sources, **sources}
        names = {all_sources[path].name for path in changed & all_sources.keys()}
        to_read = [source for source in sources.values() if source.name in names]
        before, self._sources = self.project, sources
        removed = names - {source.name for source in to_read}
        self.project = before.updated(to_read, removed=removed)
        for bad in self.project.skipped:
            if bad not in before.skipped:
                _LOG.info("%s; keeping its previous functions", bad)
        return self.project.files != before.files and self._notify()

    def _notify(self) -> bool:
        if not any(self.project.files.values()):
            paths = ", ".join(map(str, self.paths))
            _LOG.warning("%s: no function with a body is left; keeping the examples", paths)
            return False
        try:
            self._on_change(self.project)
        except RedraftError as error:
            _LOG.warning("%s", error)
            return False
        except Exception as error:  # keep watching after a failed change
            _LOG.error("cannot apply a file change: %s", type(error).__name__)
            return False
        return True
