"""A thread that works through tasks: what is alike and has arrived is run as one call.

Nothing waits for company: an idle worker begins at once, and only what came meanwhile is run
together. Lanes share the thread's time equally, so that no kind of task starves another. Knows
no model and no protocol.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class QueueFullError(Exception):
    """More is waiting than the worker takes."""


class ClosedError(Exception):
    """The worker takes no more tasks."""


@dataclass(frozen=True)
class WorkerConfig:
    """How much may wait, and how much is run as one."""

    most_waiting: int = 256
    most_at_once: int = 32


@dataclass(frozen=True, eq=False)
class Task(Generic[Item, Result]):
    """An item, and what makes results of it and of items with the same key.

    Without a key it is run alone. `size` is what it counts for when tasks are run together.
    """

    run: Callable[[Sequence[Item]], Sequence[Result]]
    item: Item
    lane: str = ""
    key: Hashable | None = None
    size: int = 1
    future: "Future[Result]" = field(default_factory=Future)


@dataclass(eq=False)
class _Lane:
    """Tasks in the order in which they came, and how long the lane has had the thread."""

    tasks: deque[Task[Any, Any]] = field(default_factory=deque)
    used: float = 0.0

    def take(self, most: int) -> list[Task[Any, Any]]:
        """The first task, and as many later ones as may be run with it."""
        first = self.tasks.popleft()
        taken, size = [first], first.size
        if first.key is not None:
            others, self.tasks = self.tasks, deque()
            for each in others:
                if each.key == first.key and size + each.size <= most:
                    taken.append(each)
                    size += each.size
                else:
                    self.tasks.append(each)
        return taken


class Worker:
    """A thread of its own, with what waits for it."""

    def __init__(
        self,
        name: str,
        config: WorkerConfig | None = None,
        *,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._config = config or WorkerConfig()
        self._clock = clock
        self._lanes: dict[str, _Lane] = {}
        self._changed = threading.Condition()
        self._served_at = 0.0  # what the lane had used that was served last
        self._is_closed = False
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def submit(self, task: Task[Item, Result]) -> "Future[Result]":
        """The result to be; cancelled before the task is begun, it never is."""
        with self._changed:
            if self._is_closed:
                raise ClosedError
            if self._count() >= self._config.most_waiting:
                self._drop_cancelled()
                if self._count() >= self._config.most_waiting:
                    raise QueueFullError
            lane = self._lanes.setdefault(task.lane, _Lane())
            if not lane.tasks:  # time in which a lane had nothing to do is not owed to it
                lane.used = max(lane.used, self._served_at)
            lane.tasks.append(task)
            self._changed.notify()
        return task.future

    def call(self, function: Callable[[], Result], *, lane: str = "") -> "Future[Result]":
        """The result to be of one call that is run alone."""
        return self.submit(Task(lambda _: [function()], None, lane))

    def close(self, *, wait_seconds: float = 10.0) -> None:
        """Finish what has come and take nothing more."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join(wait_seconds)

    def _count(self) -> int:
        return sum(len(lane.tasks) for lane in self._lanes.values())

    def _drop_cancelled(self) -> None:
        for lane in self._lanes.values():
            lane.tasks = deque(each for each in lane.tasks if not each.future.cancelled())

    def _work(self) -> None:
        while taken := self._take():
            lane, tasks = taken
            started = self._clock()
            self._run([each for each in tasks if each.future.set_running_or_notify_cancel()])
            lane.used += self._clock() - started
            del taken, tasks  # else the last inputs would be held until others come

    def _take(self) -> tuple[_Lane, list[Task[Any, Any]]] | None:
        """What the lane does next that has had the least time; none when all is done and closed."""
        with self._changed:
            while True:
                waiting = [lane for lane in self._lanes.values() if lane.tasks]
                if waiting:
                    lane = min(waiting, key=lambda lane: lane.used)
                    self._served_at = lane.used
                    return lane, lane.take(self._config.most_at_once)
                if self._is_closed:
                    return None
                self._changed.wait()

    def _run(self, tasks: Sequence[Task[Any, Any]]) -> None:
        if not tasks:
            return
        try:
            results = tasks[0].run([each.item for each in tasks])
            answered = list(zip(tasks, results, strict=True))
        except BaseException as error:
            if len(tasks) == 1:
                tasks[0].future.set_exception(error)
                return
            for each in tasks:  # what is wrong with one must not fail the others
                self._run([each])
            return
        for task, result in answered:
            task.future.set_result(result)
