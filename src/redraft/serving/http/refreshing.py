"""A served model whose store others change too: its examples are those that the store has."""

import asyncio
import logging

from redraft.errors import RedraftError
from redraft.serving.http.app import Background
from redraft.serving.http.hosting import HostedModel, Hosting

SECONDS = 1.0
"""So long one wait for a change takes at most, and so long a lost store is left alone."""

log = logging.getLogger(__name__)


def refreshing(name: str) -> Background:
    """What lets a model answer from what others have added to its store."""

    async def refresh(hosting: Hosting) -> None:
        hosted = hosting.find(name)
        await hosted.loaded()
        is_lost = False
        while hosted.is_ready:  # if not, it is told already why
            try:
                await _refresh(hosted)
            except RedraftError as error:
                if not is_lost:  # told once, and not every second
                    log.error("%s; what was read of it stays", error)
                is_lost = True
                await asyncio.sleep(SECONDS)
            else:
                if is_lost:
                    log.info("%s: the store is back", name)
                is_lost = False

    return refresh


async def _refresh(hosted: HostedModel) -> None:
    await asyncio.to_thread(hosted.served.wait, SECONDS)
    await hosted.follow(lambda served: served.refresh())
