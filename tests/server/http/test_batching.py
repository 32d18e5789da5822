"""The worker: batching and the order of tasks."""

import gc
import threading
import traceback
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import Future

import pytest

from redraft.editing.cancellation import NoLongerWantedError, check_cancelled
from redraft.server.http.batching import (
    BatchTask,
    BatchWorker,
    OverloadedError,
    single_task,
)

SECONDS = 30.0


class Desk:
    """A worker that is held until released, and the calls it has run."""

    def __init__(self, *, max_queue: int = 256) -> None:
        self.now = 0.0
        self.ran: list[tuple[str, list[int]]] = []
        self.worker = BatchWorker(
            "desk", max_queue=max_queue, clock=lambda: self.now, cpu_clock=lambda: self.now
        )
        self._held = threading.Event()
        self._go_on = threading.Event()

    def hold(self) -> None:
        """Give the worker something to do until `go_on`."""
        self.worker.submit(single_task(self._wait))
        assert self._held.wait(SECONDS)

    def go_on(self) -> None:
        """Let the worker work through all that has come."""
        self._go_on.set()
        self.worker.close(wait_seconds=SECONDS)

    def ask(self, item: int, *, lane: str = "", key: object = None, size: int = 1) -> "Future[int]":
        """Submit an item that is squared; it takes as many seconds as its lane's name says."""

        def square(items: Sequence[int]) -> list[int]:
            self.ran.append((lane, list(items)))
            self.now += float(lane or 0)
            if 13 in items:
                raise ValueError("thirteen")
            return [each * each for each in items]

        return self.worker.submit(BatchTask(square, item, lane, key, size))

    def _wait(self) -> None:
        self._held.set()
        assert self._go_on.wait(SECONDS)


@pytest.fixture
def desk() -> Iterator[Desk]:
    desk = Desk()
    yield desk
    desk.go_on()


def test_an_idle_worker_begins_at_once_with_what_there_is(desk: Desk) -> None:
    assert desk.ask(3, key="a").result(SECONDS) == 9
    assert desk.ran == [("", [3])]


def test_queued_tasks_with_the_same_key_are_batched(desk: Desk) -> None:
    desk.hold()
    futures = [desk.ask(item, key=item % 2) for item in range(6)] + [desk.ask(7), desk.ask(8)]
    desk.go_on()
    assert [each.result() for each in futures] == [0, 1, 4, 9, 16, 25, 49, 64]
    assert [items for _, items in desk.ran] == [[0, 2, 4], [1, 3, 5], [7], [8]]


def test_at_most_so_much_is_run_together_counted_by_size(desk: Desk) -> None:
    desk.hold()
    for _ in range(40):
        desk.ask(1, key="a")
    desk.ask(2, key="b", size=64)
    desk.ask(3, key="b")
    desk.go_on()
    assert [items for _, items in desk.ran] == [[1] * 32, [1] * 8, [2], [3]]


def test_one_that_fails_fails_alone(desk: Desk) -> None:
    desk.hold()
    good, bad, other = (desk.ask(item, key="a") for item in (2, 13, 3))
    desk.go_on()
    assert (good.result(), other.result()) == (4, 9)
    with pytest.raises(ValueError, match="thirteen"):
        bad.result()


def test_lanes_share_the_time_so_that_the_slow_do_not_starve_the_fast(desk: Desk) -> None:
    desk.hold()
    for item in range(3):
        desk.ask(item, lane="4")
    for item in range(6):
        desk.ask(item, lane="1")
    desk.go_on()
    assert [lane for lane, _ in desk.ran] == ["4", "1", "1", "1", "1", "4", "1", "1", "4"]


def test_a_lane_is_not_owed_the_time_in_which_it_had_nothing_to_do(desk: Desk) -> None:
    for item in range(5):
        desk.ask(item, lane="4").result(SECONDS)
    desk.hold()
    for item in range(2):
        desk.ask(item, lane="4")
    for item in range(9):
        desk.ask(item, lane="1")
    desk.go_on()
    # what the other had last it may have too, and not the sixteen seconds before
    assert [lane for lane, _ in desk.ran[5:10]] == ["1", "1", "1", "1", "4"]


def test_a_lane_that_had_much_time_before_gets_its_share_now(desk: Desk) -> None:
    desk.ask(0, lane="1").result(SECONDS)
    for item in range(5):
        desk.ask(item, lane="4").result(SECONDS)
    desk.hold()
    for item in range(20):
        desk.ask(item % 9, lane="1")
    desk.ask(0, lane="4")
    desk.go_on()
    assert "4" in [lane for lane, _ in desk.ran[6:12]]


def test_tasks_cancelled_before_they_start_are_never_run(desk: Desk) -> None:
    desk.hold()
    kept, dropped = desk.ask(2, key="a"), desk.ask(3, key="a")
    assert dropped.cancel()
    desk.go_on()
    assert kept.result() == 4
    assert [items for _, items in desk.ran] == [[2]]


def test_only_so_many_may_wait_and_the_cancelled_do_not_count() -> None:
    desk = Desk(max_queue=2)
    desk.hold()
    first, _ = desk.ask(1), desk.ask(2)
    with pytest.raises(OverloadedError, match="desk has 2 requests waiting; retry soon"):
        desk.ask(3)
    first.cancel()
    last = desk.ask(4)
    desk.go_on()
    assert last.result() == 16


def test_a_closed_worker_finishes_what_came_and_takes_no_more(desk: Desk) -> None:
    desk.hold()
    future = desk.ask(5)
    desk.go_on()
    assert future.result() == 25
    with pytest.raises(OverloadedError, match="desk is shutting down"):
        desk.ask(6)


def test_calls_get_smaller_where_they_take_longer_than_a_second(desk: Desk) -> None:
    desk.ask(0, lane="0.125", key="a", size=1).result(SECONDS)
    assert desk.worker.max_batch("0.125") == 8
    desk.hold()
    for item in range(20):
        desk.ask(item % 9, lane="0.125", key="a")
    desk.go_on()
    sizes = [len(items) for _, items in desk.ran]
    assert sizes[1] == 8  # the clock counts a call and not its items: the next may be larger
    assert sum(sizes) == 21
    assert desk.worker.max_batch("never used") == 32


def test_a_task_that_is_larger_than_a_call_is_run_alone(desk: Desk) -> None:
    desk.ask(0, lane="4", key="a").result(SECONDS)
    assert desk.worker.max_batch("4") == 1
    desk.hold()
    for item in range(3):
        desk.ask(item, lane="4", key="a", size=5)
    desk.go_on()
    assert [items for _, items in desk.ran] == [[0], [0], [1], [2]]


def test_a_running_batch_is_stopped_when_all_its_clients_have_left(desk: Desk) -> None:
    begun, steps = threading.Event(), 0

    def work(_: Sequence[int]) -> list[int]:
        nonlocal steps
        begun.set()
        while True:
            steps += 1
            check_cancelled()

    desk.hold()
    tasks = [BatchTask(work, item, key="a") for item in (1, 2)]
    futures = [desk.worker.submit(task) for task in tasks]
    desk._go_on.set()
    assert begun.wait(SECONDS)
    tasks[0].abandon()
    assert not futures[1].done(), "the other still waits"
    tasks[1].abandon()
    for future in futures:
        with pytest.raises(NoLongerWantedError):
            future.result(SECONDS)
    assert desk.ask(3).result(SECONDS) == 9


def test_errors_keep_no_tensors_alive() -> None:
    """An error refers to the frames of its traceback, and these to tensors."""

    class Tensors:
        pass

    held: list[weakref.ref[Tensors]] = []

    def fail(_: Sequence[int]) -> list[int]:
        tensors = Tensors()
        held.append(weakref.ref(tensors))
        raise ValueError("wrong")

    worker = BatchWorker("desk")
    gc.disable()
    try:
        error = worker.submit(BatchTask(fail, 1)).exception(SECONDS)
        worker.close()
        assert held[0]() is None
    finally:
        gc.enable()
    assert error is not None
    assert [frame.name for frame in traceback.extract_tb(error.__traceback__)][-1] == "fail"
