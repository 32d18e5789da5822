"""Files that change while a model is served: what changed is mined again, and nothing else.

Knows no model and no protocol: whoever watches is given the project as it is now.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from redraft.autocomplete.project import Project, Watch
from redraft.data.python_functions import SKIPPED_FOLDERS, Source, find_sources
from redraft.errors import MissingExtraError, RedraftError

DEBOUNCE_MS = 300
"""So long files must rest before they are read again."""

_MOST_RESTS = 10
"""After so many they are read even if they still change."""

_LOG = logging.getLogger(__name__)


class Watcher:
    """The functions under some paths, kept up to date; whoever watches is told of each change.

    Calls may come from any thread; one runs at a time, so that files may change while all are read.
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

    def read(self, watch: Watch = iter) -> Project:
        """The project as it is now, every file read; nobody is told."""
        with self._running:
            sources = self._find(self.paths)
            self.project = Project({}, []).updated(list(sources.values()), watch=watch)
            self._sources = sources
            return self.project

    def update(self, touched: Iterable[Path]) -> bool:
        """Read again what was touched of the sources; says whether a change was taken over.

        The folders are looked through only for a touched path that is not known yet. Where one
        of them goes at that moment, all is read with the next change, which its going is.
        """
        with self._running:
            # an editor may name anything; what has a NUL is no path
            self._touched.update(path for path in touched if "\0" not in str(path))
            try:
                places = {path.parent.resolve() / path.name for path in self._touched}
                places = {path for path in places if self._is_inside(path)}
                sources = self._sources_after(places)
            except OSError as error:
                _LOG.info("files changed while they were looked for: %s", error.strerror)
                return False
            self._touched.clear()
            return self._exchange(sources, places)

    async def run(self, stop: asyncio.Event) -> None:
        """Watch until the event is set."""
        folders = [path for path in self.paths if path.is_dir()]
        # a file that an editor replaces is another one to the system, but not to its folder
        parents = {path.parent for path in self.paths if path not in folders}
        watched = ((folders, True), (parents, False))
        await asyncio.gather(
            *(self._run(paths, stop, recursive=is_deep) for paths, is_deep in watched if paths)
        )

    async def _run(self, paths: Iterable[Path], stop: asyncio.Event, *, recursive: bool) -> None:
        try:
            from watchfiles import Change, awatch
        except ImportError as error:
            raise MissingExtraError("watchfiles", extra="lsp", purpose="watching files") from error
        try:
            async for changes in awatch(
                *paths,
                watch_filter=lambda _, path: self._is_inside(Path(path)),
                debounce=self._debounce_ms * _MOST_RESTS,
                step=self._debounce_ms,
                stop_event=stop,
                recursive=recursive,
                ignore_permission_denied=True,
            ):
                # a folder is modified with every file in it; only what it gained or lost is news
                touched = {
                    Path(path)
                    for change, path in changes
                    if change is not Change.modified or path.endswith(".py")
                }
                await asyncio.to_thread(self.update, touched)
        except OSError as error:
            _LOG.warning("changes of files cannot be watched: %s", error)

    def _sources_after(self, places: set[Path]) -> dict[Path, Source]:
        if any(self._is_news(path) for path in places):
            return self._find([path for path in self.paths if path.exists()])
        gone = {path for path in places if not path.is_file()}
        return {path: each for path, each in self._sources.items() if path not in gone}

    def _find(self, paths: Sequence[Path]) -> dict[Path, Source]:
        return {source.path: source for source in find_sources(paths, without=self._without)}

    def _is_inside(self, path: Path) -> bool:
        """Whether a path is one of those watched, or below one and not left out."""
        skipped = SKIPPED_FOLDERS | self._without
        for watched in self.paths:
            if path.is_relative_to(watched):
                parts = path.relative_to(watched).parts
                folders = parts[:-1] if path.suffix == ".py" else parts
                return not any(each in skipped or each.startswith(".") for each in folders)
        return False

    def _is_news(self, path: Path) -> bool:
        """Whether the sources may be others than those known: a new one, or a folder of them."""
        if path in self._sources:
            return False
        if path.suffix == ".py" and path.is_file():
            return True
        return path.is_dir() or any(path in known.parents for known in self._sources)

    def _exchange(self, sources: dict[Path, Source], places: set[Path]) -> bool:
        """Take over what changed of the sources, whose names more than one may share."""
        changed = places | (self._sources.keys() ^ sources.keys())
        either = {**self._sources, **sources}
        names = {either[path].name for path in changed & either.keys()}
        again = [source for source in sources.values() if source.name in names]
        before, self._sources = self.project, sources
        removed = names - {source.name for source in again}
        self.project = before.updated(again, removed=removed)
        for bad in self.project.skipped:
            if bad not in before.skipped:
                _LOG.info("%s; what it had before stays", bad)
        return self.project.files != before.files and self._tell()

    def _tell(self) -> bool:
        if not any(self.project.files.values()):
            paths = ", ".join(map(str, self.paths))
            _LOG.warning("%s: no function with a body is left; the examples stay", paths)
            return False
        try:
            self._on_change(self.project)
        except RedraftError as error:
            _LOG.warning("%s", error)
            return False
        except Exception as error:  # watching outlives a change that fails
            _LOG.error("a change of files was not taken over: %s", type(error).__name__)
            return False
        return True
