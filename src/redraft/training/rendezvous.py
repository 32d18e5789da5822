"""Rendezvous of the workers of one attempt, isolated from those of earlier attempts.

`torchrun` keeps one store across restarts. It still holds keys of dead workers, such as the
addresses that gloo would connect to, and workers on several machines get no common attempt number.
The main worker therefore generates a session name and sends it to the workers that request it now.
"""

import time
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    from torch.distributed import Store  # type: ignore[attr-defined]

_POLL_SECONDS = 0.05


def join_session(store: "Store", *, rank: int, size: int, timeout: timedelta) -> str:
    """Return a new session name, the same on all workers, once all have joined."""
    if rank == 0:
        return _open_session(store, size, timeout)
    request = uuid4().hex  # distinguishes the reply from replies to dead workers
    store.set(f"request/{rank}", request)
    store.wait([f"reply/{request}"], timeout)
    session: str = store.get(f"reply/{request}").decode()
    store.set(f"{session}/joined/{rank}", "")
    return session


def _open_session(store: "Store", size: int, timeout: timedelta) -> str:
    """Reply to all requests, also stale ones, until every rank has joined the new session."""
    session, deadline = uuid4().hex, time.monotonic() + timeout.total_seconds()
    missing = list(range(1, size))
    while missing:
        if time.monotonic() > deadline:
            ranks = ", ".join(map(str, missing))
            raise TimeoutError(f"waited {timeout.total_seconds():.0f} s for worker {ranks}")
        for rank in missing:
            if store.check([f"request/{rank}"]):
                store.set(f"reply/{store.get(f'request/{rank}').decode()}", session)
        time.sleep(_POLL_SECONDS)
        missing = [rank for rank in missing if not store.check([f"{session}/joined/{rank}"])]
    return session
