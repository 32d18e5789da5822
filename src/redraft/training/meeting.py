"""How the workers of one attempt find one another, and none of an attempt before it.

`torchrun` keeps one store over all restarts: what workers wrote that are dead, the addresses that
gloo would connect to among it, is still there. Nor does it tell workers on all machines a number
of the attempt. So the first worker makes a name up, and tells it to those that ask just now.
"""

import time
from datetime import timedelta
from typing import Protocol
from uuid import uuid4

_PAUSE = 0.05


class Store(Protocol):
    """What is needed of a store that all workers reach."""

    def set(self, key: str, value: str, /) -> None:
        """Write."""

    def get(self, key: str, /) -> bytes:
        """Read, once it is there."""

    def check(self, keys: list[str], /) -> bool:
        """Whether all are there."""

    def wait(self, keys: list[str], timeout: timedelta, /) -> None:
        """Go on when all are there."""


def meet(store: Store, *, rank: int, size: int, timeout: timedelta) -> str:
    """The same new name at all workers, once all have come."""
    return _invite(store, size, timeout) if rank == 0 else _ask(store, rank, timeout)


def _ask(store: Store, rank: int, timeout: timedelta) -> str:
    asked = uuid4().hex  # that no answer to the dead is taken for one
    store.set(f"asks/{rank}", asked)
    store.wait([f"answer/{asked}"], timeout)
    name = store.get(f"answer/{asked}").decode()
    store.set(f"{name}/here/{rank}", "")
    return name


def _invite(store: Store, size: int, timeout: timedelta) -> str:
    """Answer whoever asks, the dead among them, until all have come who have the new name."""
    name, deadline = uuid4().hex, time.monotonic() + timeout.total_seconds()
    missing = list(range(1, size))
    while missing:
        if time.monotonic() > deadline:
            told = ", ".join(map(str, missing))
            raise TimeoutError(f"waited {timeout.total_seconds():.0f} s for worker {told}")
        for rank in missing:
            if store.check([f"asks/{rank}"]):
                store.set(f"answer/{store.get(f'asks/{rank}').decode()}", name)
        time.sleep(_PAUSE)
        missing = [rank for rank in missing if not store.check([f"{name}/here/{rank}"])]
    return name
