"""Rendezvous in a store that still holds the keys of earlier attempts."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from torch.distributed import HashStore  # type: ignore[attr-defined]

from redraft.training.rendezvous import join_session

SOON = timedelta(seconds=20)


def attempt(store: HashStore, ranks: list[int], size: int) -> list[str]:
    """Return the session names of workers that join in the order of `ranks`."""
    with ThreadPoolExecutor(size) as threads:
        futures = [
            threads.submit(join_session, store, rank=rank, size=size, timeout=SOON)
            for rank in ranks
        ]
        return [future.result() for future in futures]


@pytest.mark.parametrize("ranks", [[0, 1, 2], [2, 1, 0]])
def test_all_workers_join_one_session_and_a_new_one_at_every_attempt(ranks: list[int]) -> None:
    store = HashStore()
    names = []
    for _ in range(3):
        store.set("request/1", "dead")  # of a worker that was killed before the reply
        [name] = set(attempt(store, ranks, 3))
        names.append(name)
    assert len(set(names)) == 3


def test_a_worker_that_died_in_the_rendezvous_does_not_block_the_next_attempt() -> None:
    store = HashStore()
    with pytest.raises(RuntimeError):
        join_session(store, rank=1, size=2, timeout=timedelta(milliseconds=10))
    [name] = set(attempt(store, [0, 1], 2))
    assert name


def test_the_error_names_the_missing_workers() -> None:
    store = HashStore()
    with pytest.raises(TimeoutError, match=r"waited 0 s for worker 1, 2"):
        join_session(store, rank=0, size=3, timeout=timedelta(milliseconds=200))
