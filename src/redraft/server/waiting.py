"""Waiting for a generation of a language model in an event loop."""

import asyncio
import contextlib
from concurrent.futures import Future
from typing import Any


async def finished(future: "Future[Any]", seconds: float) -> None:
    """Wait until a future of another thread is done, for at most `seconds`."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def tell(_: "Future[Any]") -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(done.set)

    future.add_done_callback(tell)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await done.wait()
