"""A code base that a served model follows: its functions are the examples as they are now."""

import asyncio
import itertools
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from redraft.autocomplete.project import Project
from redraft.data.python_functions import Source
from redraft.errors import RedraftError
from redraft.serving.http.app import Background
from redraft.serving.http.hosting import HostedModel, Hosting
from redraft.serving.watch import Watcher

log = logging.getLogger(__name__)


def following(name: str, paths: Sequence[Path]) -> Background:
    """What keeps the examples of a model those of the Python files under some paths."""

    async def follow(hosting: Hosting) -> None:
        hosted = hosting.find(name)
        await hosted.loaded()
        if hosted.is_ready:  # if not, it is told already why
            try:
                await _follow(hosted, paths)
            except RedraftError as error:
                log.error("%s", error)

    return follow


async def _follow(hosted: HostedModel, paths: Sequence[Path]) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()

    def index(project: Project) -> None:
        change = hosted.follow(lambda served: served.index(project))
        asyncio.run_coroutine_threadsafe(change, loop).result()

    def until_stopped(sources: Sequence[Source]) -> Iterator[Source]:
        return itertools.takewhile(lambda _: not stop.is_set(), sources)

    watcher = Watcher(paths, index)
    watching = asyncio.create_task(watcher.run(stop))  # before all is read: no change is missed
    try:
        project = await asyncio.to_thread(watcher.read, until_stopped)
        count = await hosted.follow(lambda served: served.index(project))
        log.info("%s: %d functions came or went; changes are watched", hosted.name, count)
        await watching
    finally:
        stop.set()
        await watching
