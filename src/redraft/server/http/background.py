"""Background tasks that keep the examples of a model up to date with other programs or files."""

import asyncio
import itertools
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from redraft.completion.project import Project
from redraft.completion.watcher import Watcher
from redraft.errors import RedraftError
from redraft.mining.python_functions import Source
from redraft.server.http.app import Background
from redraft.server.http.model_pool import ModelPool, PooledModel

SECONDS = 1.0
"""Polling interval of a folder, longest wait for a store, and pause after an error."""

log = logging.getLogger(__name__)


def sync_model(name: str) -> Background:
    """Return the task that reloads the model `name` when another program changes it."""

    async def refresh(pool: ModelPool) -> None:
        pooled = pool.find(name)
        await pooled.loaded()
        has_failed = False
        while pooled.is_ready:  # a model that could not be loaded has been logged already
            try:
                await _refresh(pooled)
            except RedraftError as error:
                if not has_failed:  # logged once, not every second
                    log.error("%s; the previous version is still served", error)
                has_failed = True
                await asyncio.sleep(SECONDS)
            else:
                if has_failed:
                    log.info("%s: up to date again", name)
                has_failed = False

    return refresh


async def _refresh(pooled: PooledModel) -> None:
    served = pooled.served
    if served.has_store:
        await asyncio.to_thread(served.wait, SECONDS)
    else:
        await asyncio.sleep(SECONDS)
        if not served.is_outdated:
            return
    await pooled.update(lambda served: served.refresh())


def watch_files(name: str, paths: Sequence[Path]) -> Background:
    """Return the task that makes the functions under `paths` the examples of the model `name`."""

    async def watch(pool: ModelPool) -> None:
        pooled = pool.find(name)
        await pooled.loaded()
        if pooled.is_ready:  # a model that could not be loaded has been logged already
            try:
                await _watch(pooled, paths)
            except RedraftError as error:
                log.error("%s", error)

    return watch


async def _watch(pooled: PooledModel, paths: Sequence[Path]) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()

    def index(project: Project) -> None:
        change = pooled.update(lambda served: served.index(project))
        asyncio.run_coroutine_threadsafe(change, loop).result()

    def until_stopped(sources: Sequence[Source]) -> Iterator[Source]:
        return itertools.takewhile(lambda _: not stop.is_set(), sources)

    watcher = Watcher(paths, index)
    # start watching before reading, so that no change is missed
    watching = asyncio.create_task(watcher.run(stop))
    try:
        project = await asyncio.to_thread(watcher.read, until_stopped)
        count = await pooled.update(lambda served: served.index(project))
        log.info("%s: %d functions added or removed; watching for changes", pooled.name, count)
        await watching
    finally:
        stop.set()
        await watching
