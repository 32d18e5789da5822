"""Models under their names, each loaded and run in threads of its own, away from the event loop.

Models are loaded one after the other; what one does from then on, failing included, holds up no
other. Knows no protocol and imports no model: a loader does, in the model's own thread.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from redraft.errors import RedraftError
from redraft.serving import schema
from redraft.serving.http.batching import ClosedError, QueueFullError, Task, Worker, WorkerConfig

if TYPE_CHECKING:
    from redraft.serving.served_model import ServedModel

Loader = Callable[[], "ServedModel"]
Item = TypeVar("Item")
Result = TypeVar("Result")

log = logging.getLogger(__name__)


class UnknownModelError(RedraftError):
    """A name that no model has."""


class NotReadyError(RedraftError):
    """A model that is not loaded."""


class OverloadedError(RedraftError):
    """A model with more to do than may wait."""


class TimeLimitError(RedraftError):
    """An answer that was not there in time."""


@dataclass(frozen=True)
class HostingConfig:
    """How long an answer may take, how many may wait, and whether predictions are run together."""

    time_limit: float = 30.0
    is_batching: bool = True
    worker: WorkerConfig = field(default_factory=WorkerConfig)


class HostedModel:
    """A model with its threads: one answers, and one changes its examples meanwhile."""

    def __init__(
        self,
        name: str,
        load: Loader,
        config: HostingConfig,
        *,
        observe: Callable[[int], None] = lambda size: None,  # noqa: ARG005
    ) -> None:
        self.name = name
        self.failure: str | None = None
        self._load = load
        self._config = config
        self._served: ServedModel | None = None
        self._observe = observe
        self._answers = Worker(f"{name}: answers", config.worker)
        self._changes = Worker(f"{name}: changes", config.worker)
        self.loading = self._answers.call(self._open)

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
        """Whether it answers."""
        return self._served is not None

    @property
    def served(self) -> "ServedModel":
        """The model, once it is loaded."""
        if self._served is None:
            reason = "could not be loaded" if self.failure else "is being loaded; ask again soon"
            raise NotReadyError(f"model {self.name} {reason}")
        return self._served

    async def predict(self, request: schema.PredictRequest) -> list[list[schema.Answer]]:
        """The answers to each input, asked together with what else is waiting."""
        served = self.served

        def predict(
            requests: Sequence[schema.PredictRequest],
        ) -> list[list[list[schema.Answer]]]:
            inputs = [x for each in requests for x in each.inputs]
            self._observe(len(inputs))
            results = iter(served.predict(requests[0].model_copy(update={"inputs": inputs})))
            return [[next(results) for _ in each.inputs] for each in requests]

        key = _key(request) if self._config.is_batching else None
        size = len(request.inputs)
        task = Task(predict, request, "predict", key, size)
        return await self._submit(self._answers, task, limit=self._config.time_limit)

    async def answer(
        self, ask: "Callable[[ServedModel], Result]", *, lane: str = "other"
    ) -> Result:
        """What the model says, run alone; lanes share its time."""
        served = self.served
        task: Task[None, Result] = Task(lambda _: [ask(served)], None, lane)
        return await self._submit(self._answers, task, limit=self._config.time_limit)

    async def beside(self, work: "Callable[[ServedModel], Result]") -> Result:
        """What a change of the model comes to, or a long look at it; answers go on meanwhile."""
        served = self.served
        task: Task[None, Result] = Task(lambda _: [work(served)], None)
        return await self._submit(self._changes, task, limit=self._config.time_limit)

    async def follow(self, work: "Callable[[ServedModel], Result]") -> Result:
        """The same for no client: it may take as long as it takes."""
        served = self.served
        task: Task[None, Result] = Task(lambda _: [work(served)], None)
        return await self._submit(self._changes, task, limit=None)

    async def loaded(self) -> None:
        """Returns when it is loaded or has failed to."""
        await asyncio.wrap_future(self.loading)

    def close(self) -> None:
        """Finish what has come."""
        self._answers.close()
        self._changes.close()

    async def _submit(
        self, worker: Worker, task: "Task[Item, Result]", *, limit: float | None
    ) -> Result:
        try:
            return await asyncio.wait_for(asyncio.wrap_future(worker.submit(task)), limit)
        except QueueFullError as error:
            raise OverloadedError(
                f"model {self.name} has {self._config.worker.most_waiting} requests waiting; "
                "ask again soon"
            ) from error
        except ClosedError as error:
            raise NotReadyError(f"model {self.name} is being stopped") from error
        except asyncio.TimeoutError as error:
            advice = "ask for less, or raise --time-limit"
            if worker is self._changes and not task.future.cancel():
                advice = "but it was begun and will be done; look before you send it again"
            raise TimeLimitError(f"no answer within {limit:g} seconds; {advice}") from error


class Hosting:
    """All models that are served, the first of which answers where none is named."""

    def __init__(
        self,
        loaders: Mapping[str, Loader],
        config: HostingConfig | None = None,
        *,
        observe: Callable[[str, int], None] = lambda name, size: None,  # noqa: ARG005
    ) -> None:
        config = config or HostingConfig()
        self.models = {
            name: HostedModel(name, load, config, observe=_named(observe, name))
            for name, load in loaders.items()
        }

    def find(self, name: str | None) -> HostedModel:
        """The model of this name, or the first."""
        if name is None:
            return next(iter(self.models.values()))
        if name not in self.models:
            known = ", ".join(self.models)
            raise UnknownModelError(f"no model has this name; those served are: {known}")
        return self.models[name]

    @property
    def ready(self) -> list[HostedModel]:
        """The models that answer."""
        return [model for model in self.models.values() if model.is_ready]

    async def loaded(self) -> None:
        """Returns when every model is loaded or has failed to."""
        await asyncio.gather(*(model.loaded() for model in self.models.values()))

    def close(self) -> None:
        """Finish what has come."""
        for model in self.models.values():
            model.close()


def _key(request: schema.PredictRequest) -> tuple[object, ...]:
    """Equal for requests that one call can answer; 1 and True are equal but other filters."""
    where = tuple(sorted((key, repr(value)) for key, value in (request.where or {}).items()))
    return request.k, where, request.prototype


def _named(observe: Callable[[str, int], None], name: str) -> Callable[[int], None]:
    return lambda size: observe(name, size)
