"""A worker thread that skips outdated requests: only the latest of each kind runs."""

import asyncio
import itertools
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


class LatestWorker:
    """Runs work in one thread, in order; skips work that is outdated before it starts.

    Work whose task is cancelled before it starts is skipped too.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="completing")
        self._counter = itertools.count()
        self._latest: dict[Hashable, int] = {}

    async def run(self, kind: Hashable, work: Callable[[], Result], *, otherwise: Result) -> Result:
        """Return the result of `work`, or `otherwise` if newer work of its kind replaced it."""
        number = self._latest[kind] = next(self._counter)

        def work_if_latest() -> Result:
            return work() if self._latest.get(kind) == number else otherwise

        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work_if_latest)
        finally:
            if self._latest.get(kind) == number:
                del self._latest[kind]
