"""A code base that a served model follows: its functions are the examples as they are now."""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

from redraft.autocomplete.project import Project
from redraft.errors import RedraftError
from redraft.serving.http.app import Background
from redraft.serving.http.hosting import HostedModel, Hosting
from redraft.serving.watch import Watcher

log = logging.getLogger(__name__)


def following(name: str, paths: Sequence[Path]) -> Background:
    """What keeps the examples of a model those of the Python files under some paths."""

    async def follow(hosting: Hosting) -> None:
        await hosting.loaded()
        hosted = hosting.find(name)
        if hosted.is_ready:  # if not, it is told already why
            try:
                await _follow(hosted, paths)
            except RedraftError as error:
                log.error("%s", error)

    return follow


async def _follow(hosted: HostedModel, paths: Sequence[Path]) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()

    def index(project: Project) -> None:
        change = hosted.beside(lambda served: served.index(project))
        asyncio.run_coroutine_threadsafe(change, loop).result()

    watcher = Watcher(paths, index)
    watching = asyncio.create_task(watcher.run(stop))  # before all is read: no change is missed
    try:
        project = await asyncio.to_thread(watcher.read)
        count = await hosted.beside(lambda served: served.index(project))
        log.info("%s: %d functions came or went; changes are watched", hosted.name, count)
        await watching
    finally:
        stop.set()
        await watching
