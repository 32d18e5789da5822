"""A worker thread with dynamic batching: queued tasks with the same key run as one call.

An idle worker starts at once; only tasks that arrived during the last call are batched. Lanes
share the thread's time equally, so that no kind of task starves another. Knows no model and no
protocol.
"""

import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from redraft.editing.cancellation import NoLongerWantedError, cancelled_when
from redraft.errors import RedraftError

MAX_QUEUE = 256
MAX_BATCH = 32
"""Maximum size of a batch."""

CALL_SECONDS = 1.0
"""A batch that would take longer is smaller, so that other lanes get their turn."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class OverloadedError(RedraftError):
    """The worker takes no task now: its queue is full, or it is closed."""


@dataclass(frozen=True, eq=False)
class BatchTask(Generic[Item, Result]):
    """An item and the function `run` that computes the results of a batch of items.

    Tasks with the same key are batched; a task without a key runs alone. `size` is its share of
    a batch.
    """

    run: Callable[[Sequence[Item]], Sequence[Result]]
    item: Item
    lane: str = ""
    key: Hashable | None = None
    size: int = 1
    future: "Future[Result]" = field(default_factory=Future)
    abandoned: threading.Event = field(default_factory=threading.Event)

    def abandon(self) -> None:
        """Drop the task if it is queued, stop it if it is running."""
        self.abandoned.set()
        self.future.cancel()


def single_task(work: Callable[[], Result], *, lane: str = "") -> BatchTask[None, Result]:
    """Return the task of one call, which runs unbatched."""
    return BatchTask(lambda _: [work()], None, lane)


@dataclass(eq=False)
class _Lane:
    """A first-in, first-out queue of tasks, and the time that the lane has used the thread."""

    tasks: deque[BatchTask[Any, Any]] = field(default_factory=deque)
    used: float = 0.0
    unit_seconds: float = 0.0  # moving average of CPU time for a task of size 1

    @property
    def max_batch(self) -> int:
        """Return the size of a batch that takes about `CALL_SECONDS`, at least 1."""
        if self.unit_seconds * MAX_BATCH <= CALL_SECONDS:
            return MAX_BATCH
        return max(1, int(CALL_SECONDS / self.unit_seconds))

    def record(self, size: int, seconds: float) -> None:
        """Update the moving average with a batch of this size and CPU time."""
        measured = seconds / max(size, 1)
        self.unit_seconds = (self.unit_seconds + measured) / 2 if self.unit_seconds else measured

    def take(self, max_size: int) -> list[BatchTask[Any, Any]]:
        """Remove and return the first task and the tasks with its key that fit into the batch."""
        first = self.tasks.popleft()
        batch, size = [first], first.size
        if first.key is not None:
            others, self.tasks = self.tasks, deque()
            for task in others:
                if task.key == first.key and size + task.size <= max_size:
                    batch.append(task)
                    size += task.size
                else:
                    self.tasks.append(task)
        return batch


class BatchWorker:
    """A thread with its queues of tasks; `name` is the subject of its errors."""

    def __init__(
        self,
        name: str,
        *,
        max_queue: int = MAX_QUEUE,
        clock: Callable[[], float] = time.perf_counter,
        cpu_clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self._name = name
        self._max_queue = max_queue
        self._clock = clock
        self._cpu_clock = cpu_clock
        self._lanes: dict[str, _Lane] = {}
        self._changed = threading.Condition()
        self._served_at = 0.0  # `used` of the lane that was served last
        self._is_closed = False
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def submit(self, task: BatchTask[Item, Result]) -> "Future[Result]":
        """Queue a task and return its future; cancelling it before it starts drops the task."""
        with self._changed:
            if self._is_closed:
                raise OverloadedError(f"{self._name} is shutting down")
            if self._count() >= self._max_queue:
                self._drop_cancelled()
            if (waiting := self._count()) >= self._max_queue:
                raise OverloadedError(f"{self._name} has {waiting} requests waiting; retry soon")
            lane = self._lanes.setdefault(task.lane, _Lane())
            if not lane.tasks:  # an idle lane earns no credit
                lane.used = max(lane.used, self._served_at)
            lane.tasks.append(task)
            self._changed.notify()
        return task.future

    def max_batch(self, lane: str) -> int:
        """Return the current maximum size of a batch of this lane."""
        with self._changed:
            return self._lanes.setdefault(lane, _Lane()).max_batch

    def close(self, *, wait_seconds: float = 10.0) -> None:
        """Refuse new tasks, finish the queued ones and stop the thread."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join(wait_seconds)

    def _count(self) -> int:
        return sum(len(lane.tasks) for lane in self._lanes.values())

    def _drop_cancelled(self) -> None:
        for lane in self._lanes.values():
            lane.tasks = deque(task for task in lane.tasks if not task.future.cancelled())

    def _work(self) -> None:
        while taken := self._take():
            lane, tasks = taken
            started, cpu_started = self._clock(), self._cpu_clock()
            running = [task for task in tasks if task.future.set_running_or_notify_cancel()]
            if running:
                self._run(running)
            lane.used += self._clock() - started
            if running and not any(task.abandoned.is_set() for task in running):
                size = sum(task.size for task in running)
                lane.record(size, self._cpu_clock() - cpu_started)
            del taken, tasks, running  # release the inputs while the thread is idle

    def _take(self) -> tuple[_Lane, list[BatchTask[Any, Any]]] | None:
        """Return a batch of the lane that used the least time; None when closed and done."""
        with self._changed:
            while True:
                waiting = [lane for lane in self._lanes.values() if lane.tasks]
                if waiting:
                    lane = min(waiting, key=lambda lane: lane.used)
                    self._served_at = lane.used
                    return lane, lane.take(lane.max_batch)
                if self._is_closed:
                    return None
                self._changed.wait()

    def _run(self, tasks: Sequence[BatchTask[Any, Any]]) -> None:
        try:
            with cancelled_when(lambda: all(task.abandoned.is_set() for task in tasks)):
                results = tasks[0].run([task.item for task in tasks])
            finished = list(zip(tasks, results, strict=True))
        except NoLongerWantedError:
            for task in tasks:  # a new error: the traceback of the first keeps tensors alive
                task.future.set_exception(NoLongerWantedError())
        except BaseException as error:
            if len(tasks) == 1:
                # the frames hold tensors and, through the task, this error: a reference cycle
                traceback.clear_frames(error.__traceback__)
                tasks[0].future.set_exception(error)
                return
            for task in tasks:  # one bad task must not fail the others
                self._run([task])
        else:
            for task, result in finished:
                task.future.set_result(result)
