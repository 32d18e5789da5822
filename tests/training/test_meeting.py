"""Workers meet in a store that still holds what those of earlier attempts wrote."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from torch.distributed import HashStore  # type: ignore[attr-defined]

from redraft.training.meeting import meet

SOON = timedelta(seconds=20)


def attempt(store: HashStore, ranks: list[int], size: int) -> list[str]:
    """The names that workers of these ranks get, in any order of coming."""
    with ThreadPoolExecutor(size) as threads:
        asked = [threads.submit(meet, store, rank=rank, size=size, timeout=SOON) for rank in ranks]
        return [each.result() for each in asked]


@pytest.mark.parametrize("ranks", [[0, 1, 2], [2, 1, 0]])
def test_all_get_one_name_and_another_at_every_attempt(ranks: list[int]) -> None:
    store = HashStore()
    names = []
    for _ in range(3):
        store.set("asks/1", "dead")  # one that asked, and was killed before it was answered
        [name] = set(attempt(store, ranks, 3))
        names.append(name)
    assert len(set(names)) == 3


def test_one_that_died_while_all_met_is_not_waited_for_by_those_that_come_after() -> None:
    store = HashStore()
    with pytest.raises(RuntimeError):
        meet(store, rank=1, size=2, timeout=timedelta(milliseconds=10))
    [name] = set(attempt(store, [0, 1], 2))
    assert name


def test_who_is_missing_is_told() -> None:
    store = HashStore()
    with pytest.raises(TimeoutError, match=r"waited 0 s for worker 1, 2"):
        meet(store, rank=0, size=3, timeout=timedelta(milliseconds=200))
