"""One thread in which a model computes; of several that ask for the same, the last is answered."""

import asyncio
import itertools
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


class LatestWorker:
    """Work in one thread, in order; older work of the same kind is passed over if not begun.

    Work whose task is cancelled before it has begun is not done either.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="completing")
        self._numbers = itertools.count()
        self._latest: dict[Hashable, int] = {}

    async def run(self, kind: Hashable, work: Callable[[], Result], *, otherwise: Result) -> Result:
        """What the work gives, or `otherwise` if newer work of the kind came before it began."""
        number = self._latest[kind] = next(self._numbers)

        def work_if_latest() -> Result:
            return work() if self._latest.get(kind) == number else otherwise

        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work_if_latest)
        finally:
            if self._latest.get(kind) == number:
                del self._latest[kind]
