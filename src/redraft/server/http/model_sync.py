"""Background task that reloads a served model when another program changes it."""

import asyncio
import logging

from redraft.errors import RedraftError
from redraft.server.http.app import Background
from redraft.server.http.model_pool import ModelPool, PooledModel

SECONDS = 1.0
"""Polling interval of a folder, longest wait for a store, and pause after an error."""

log = logging.getLogger(__name__)


def sync_model(name: str) -> Background:
    """Return the background task that keeps the model `name` up to date."""

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
