"""The pool of named models, each loaded and run in its own threads, outside the event loop.

Models are loaded one after another; afterwards none can delay or break another. Knows no protocol
and imports no model: the loader does, in the model's own thread.
"""

import asyncio
import contextlib
import functools
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from redraft.errors import RedraftError
from redraft.server import responses, schema
from redraft.server.http.batching import MAX_QUEUE, BatchTask, BatchWorker, single_task

if TYPE_CHECKING:
    from redraft.server.served_model import ServedModel

Loader = Callable[[], "ServedModel"]
Ranked = list[list[responses.CandidateSchema]]
Item = TypeVar("Item")
Result = TypeVar("Result")

log = logging.getLogger(__name__)

_PREDICT = "predict"
"""The lane of predictions."""


class UnknownModelError(RedraftError):
    """No model has this name."""


class NotReadyError(RedraftError):
    """The model is not loaded."""


class TimeLimitError(RedraftError):
    """The request exceeded the time limit."""


@dataclass(frozen=True)
class ModelPoolConfig:
    """Configuration of a pool: seconds per request, batching of predictions, and queue length."""

    time_limit: float = 30.0
    is_batching: bool = True
    max_queue: int = MAX_QUEUE


class PooledModel:
    """A model with two threads: one answers requests, the other changes the examples."""

    def __init__(
        self, name: str, load: Loader, config: ModelPoolConfig, *, on_batch: Callable[[int], None]
    ) -> None:
        self.name = name
        self.failure: str | None = None
        self._load = load
        self._config = config
        self._served: ServedModel | None = None
        self._on_batch = on_batch
        self._answers = BatchWorker(f"model {name}", max_queue=config.max_queue)
        self._changes = BatchWorker(f"model {name}", max_queue=config.max_queue)
        self.loading = self._answers.submit(single_task(self._open))

    def _open(self) -> None:
        try:
            self._served = self._load()
        except RedraftError as error:
            self.failure = str(error)
        except Exception as error:
            self.failure = f"{self.name}: cannot be loaded ({type(error).__name__})"
        if self.failure:
            log.error("%s", self.failure)

    @property
    def is_ready(self) -> bool:
        """True if the model is loaded."""
        return self._served is not None

    @property
    def served(self) -> "ServedModel":
        """Return the model; raises `NotReadyError` if it is not loaded."""
        if self._served is None:
            reason = "could not be loaded" if self.failure else "is still loading; retry soon"
            raise NotReadyError(f"model {self.name} {reason}")
        return self._served

    async def predict(self, request: schema.PredictRequest) -> Ranked:
        """Return the candidates for each input of the request, best first.

        The request is split into chunks of a few inputs, and a chunk is batched with waiting
        chunks of other requests. When the client disconnects or the time limit passes, the
        running chunk is stopped and the remaining ones are dropped.
        """
        served = self.served
        served.check_inputs(request.inputs)  # report an invalid input before any is predicted

        def predict(chunks: Sequence[schema.PredictRequest]) -> list[Ranked]:
            inputs = [x for chunk in chunks for x in chunk.inputs]
            self._on_batch(len(inputs))
            results = iter(served.predict(request.model_copy(update={"inputs": inputs})))
            return [[next(results) for _ in chunk.inputs] for chunk in chunks]

        key = _key(request) if self._config.is_batching else None
        results: Ranked = []
        async with self._time_limit():
            while remaining := request.inputs[len(results) :]:
                inputs = remaining[: max(1, self._answers.max_batch(_PREDICT) // request.k)]
                chunk = request.model_copy(update={"inputs": inputs})
                task = BatchTask(predict, chunk, _PREDICT, key, len(inputs) * request.k)
                ranked: Ranked = await self._submit(self._answers, task)
                results += ranked
        return results

    async def run(self, work: "Callable[[ServedModel], Result]", *, lane: str = "other") -> Result:
        """Return the result of `work`, run unbatched; lanes share the thread's time equally."""
        async with self._time_limit():
            return await self._submit(self._answers, self._task(work, lane=lane))

    async def run_in_background(self, work: "Callable[[ServedModel], Result]") -> Result:
        """Return the result of a change or another long operation, without blocking requests.

        If the time limit passes after the work has started, it is finished nevertheless.
        """
        task = self._task(work)
        async with self._time_limit(task):
            return await self._submit(self._changes, task)

    async def update(self, work: "Callable[[ServedModel], Result]") -> Result:
        """Return the result of a change for which no client waits, without a time limit."""
        return await self._submit(self._changes, self._task(work))

    def _task(
        self, work: "Callable[[ServedModel], Result]", *, lane: str = ""
    ) -> BatchTask[None, Result]:
        served = self.served
        return single_task(lambda: work(served), lane=lane)

    async def loaded(self) -> None:
        """Wait until the model is loaded or has failed to load."""
        await asyncio.wrap_future(self.loading)

    def close(self) -> None:
        """Finish the queued tasks and stop the threads."""
        self._answers.close()
        self._changes.close()

    @contextlib.asynccontextmanager
    async def _time_limit(self, change: "BatchTask[Any, Any] | None" = None) -> AsyncIterator[None]:
        """Raise `TimeLimitError` if the block takes longer than the time limit.

        With a `change`, the message says whether it had started.
        """
        limit = self._config.time_limit
        try:
            async with asyncio.timeout(limit):
                yield
        except TimeoutError as error:
            advice = "send a smaller request, or raise --time-limit"
            if change is not None and not change.future.cancel():
                advice = "but the change has started and will finish; check before you retry"
            raise TimeLimitError(f"no result within {limit:g} seconds; {advice}") from error

    async def _submit(self, worker: BatchWorker, task: "BatchTask[Item, Result]") -> Result:
        """Return the task's result; when cancelled, drop the task.

        A request is stopped even if it is running; a change is not.
        """
        future = worker.submit(task)
        try:
            return await asyncio.wrap_future(future)  # passes a cancellation on to the task
        except asyncio.CancelledError:
            if worker is self._answers:
                task.abandon()
            raise


class ModelPool:
    """All served models; the first is the default."""

    def __init__(
        self,
        loaders: Mapping[str, Loader],
        config: ModelPoolConfig,
        *,
        on_batch: Callable[[str, int], None],
    ) -> None:
        self.models = {
            name: PooledModel(name, load, config, on_batch=functools.partial(on_batch, name))
            for name, load in loaders.items()
        }

    def find(self, name: str | None) -> PooledModel:
        """Return the model with this name; the first model for None."""
        if name is None:
            return next(iter(self.models.values()))
        if name not in self.models:
            names = ", ".join(self.models)
            raise UnknownModelError(f"no model has this name; the models are: {names}")
        return self.models[name]

    @property
    def ready(self) -> list[PooledModel]:
        """Return the loaded models."""
        return [model for model in self.models.values() if model.is_ready]

    async def loaded(self) -> None:
        """Wait until every model is loaded or has failed to load."""
        await asyncio.gather(*(model.loaded() for model in self.models.values()))

    def close(self) -> None:
        """Finish the queued tasks and stop all threads."""
        for model in self.models.values():
            model.close()


def _key(request: schema.PredictRequest) -> tuple[object, ...]:
    """Return a key that is equal for requests that can share a batch."""
    # repr: 1 == True, but they are different filters
    where = tuple(sorted((key, repr(value)) for key, value in (request.where or {}).items()))
    return request.k, where, request.prototype
