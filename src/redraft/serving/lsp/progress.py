"""Work in the background, and how far it got, as an editor shows it."""

import asyncio
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

Item = TypeVar("Item")
Result = TypeVar("Result")

PATIENCE = 5.0
"""Seconds that an editor has to answer what it is asked."""


class Report:
    """How far work got; may be called from any thread, and does nothing before it is shown."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.show: Callable[[types.WorkDoneProgressReport], None] | None = None

    def __call__(self, message: str, percentage: int | None = None) -> None:
        """Show a message."""
        if self.show:
            state = types.WorkDoneProgressReport(message=message, percentage=percentage)
            self._loop.call_soon_threadsafe(self.show, state)

    def count(self, items: Sequence[Item], what: str) -> Iterator[Item]:
        """The items, and for each hundredth of them a message."""
        shown = -1
        for at, item in enumerate(items):
            percentage = 100 * at // len(items)
            if percentage != shown:
                shown = percentage
                self(f"{at:,} of {len(items):,} {what}", percentage)
            yield item


async def work_in_background(
    server: LanguageServer,
    thread: ThreadPoolExecutor,
    title: str,
    work: Callable[[Report], Result],
    *,
    is_counted: bool = False,
) -> Result:
    """What the work gives; it begins at once, whatever the editor does to show it."""
    loop = asyncio.get_running_loop()
    report = Report(loop)
    working = loop.run_in_executor(thread, work, report)
    progress = server.work_done_progress
    token = await _create_token(server)
    if token is not None:
        begin = types.WorkDoneProgressBegin(title=title, percentage=0 if is_counted else None)
        progress.begin(token, begin)
        report.show = lambda state: progress.report(token, state)
    try:
        return await working
    finally:
        if token is not None:
            report.show = None
            progress.end(token, types.WorkDoneProgressEnd())
            progress.tokens.pop(token, None)


async def _create_token(server: LanguageServer) -> str | None:
    """A name under which the editor shows progress, unless it cannot."""
    if not get_capability(server.client_capabilities, "window.work_done_progress"):
        return None
    token = str(uuid.uuid4())
    try:
        await asyncio.wait_for(server.work_done_progress.create_async(token), PATIENCE)
    except (asyncio.TimeoutError, JsonRpcException):
        return None
    return token
