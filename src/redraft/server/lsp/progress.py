"""Background work with progress reports in the editor."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

Item = TypeVar("Item")
Result = TypeVar("Result")

REPLY_TIMEOUT = 5.0
"""Seconds to wait for the editor's response to a request."""


class ProgressReport:
    """Reports progress from any thread; does nothing until `show` is set."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.show: Callable[[types.WorkDoneProgressReport], None] | None = None

    def __call__(self, message: str, percentage: int | None = None) -> None:
        """Report a message."""
        if self.show:
            state = types.WorkDoneProgressReport(message=message, percentage=percentage)
            self._loop.call_soon_threadsafe(self.show, state)

    def count(self, items: Sequence[Item], noun: str) -> Iterator[Item]:
        """Yield the items, and report each percent of progress as "3 of 10 `noun`"."""
        reported = -1
        for i, item in enumerate(items):
            percentage = 100 * i // len(items)
            if percentage != reported:
                reported = percentage
                self(f"{i:,} of {len(items):,} {noun}", percentage)
            yield item


async def work_in_background(
    server: LanguageServer,
    thread: ThreadPoolExecutor,
    title: str,
    work: Callable[[ProgressReport], Result],
    *,
    is_counted: bool = False,
) -> Result:
    """Run `work` in the thread and return its result; it does not wait for the editor's reply."""
    loop = asyncio.get_running_loop()
    report = ProgressReport(loop)
    working = loop.run_in_executor(thread, work, report)
    progress = server.work_done_progress
    token = str(uuid.uuid4())
    is_shown = await is_granted(
        server, "window.work_done_progress", lambda: progress.create_async(token)
    )
    if is_shown:
        begin = types.WorkDoneProgressBegin(title=title, percentage=0 if is_counted else None)
        progress.begin(token, begin)
        report.show = lambda state: progress.report(token, state)
    try:
        return await working
    finally:
        if is_shown:
            report.show = None
            progress.end(token, types.WorkDoneProgressEnd())
            progress.tokens.pop(token, None)


async def is_granted(
    server: LanguageServer, capability: str, request: Callable[[], Awaitable[object]]
) -> bool:
    """Send a request to an editor with this capability; returns True if it agrees in time."""
    if not get_capability(server.client_capabilities, capability):
        return False
    try:
        await asyncio.wait_for(request(), REPLY_TIMEOUT)
    except (TimeoutError, JsonRpcException):
        return False
    return True
