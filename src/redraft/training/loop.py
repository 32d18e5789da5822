"""The training loop: steps, dev scores, checkpoints. Names no model.

Everything random is a function of the seed and the step, so that a run that was killed and
resumed ends with the weights of one that was not. Several workers step on shares of the same
batches; the first of them alone evaluates, tells and writes.
"""

import json
import math
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from redraft.errors import TrainingInterrupted
from redraft.training.averaging import AveragedWeights, copy_weights
from redraft.training.budget import within_budget
from redraft.training.checkpoint import Checkpoint, Kept, Progress
from redraft.training.workers import ALONE, Workers, check_alike


@dataclass(frozen=True)
class TrainingConfig:
    """How long and how fast."""

    steps: int = 1000
    batch_size: int = 16
    learning_rate: float = 1e-3
    warmup_steps: int = 0
    decay: bool = False
    clip: float = 5.0
    evaluate_every: int = 100
    patience: int = 0
    seed: int = 0
    average: float = 0.0  # what a step counts in the mean of weights beside the next; see REACH
    budget: float = 0.0  # seconds: fewer steps if they would take longer; 0 is no limit
    save_seconds: float = 60.0


@dataclass(frozen=True)
class StepLoss:
    """What a step costs: the loss to descend, a mean over what is counted, and what to show."""

    loss: Tensor
    shown: dict[str, float]
    counted: int
    tokens: int
    padded: int

    def uncounted(self) -> "StepLoss":
        """The same, to weigh nothing beside what others counted."""
        return replace(self, counted=0, tokens=0, padded=0)


class Task(ABC):
    """What is trained: a network, its batches and its losses."""

    network: nn.Module

    @abstractmethod
    def batches(self, batch_size: int, *, seed: int) -> list[list[int]]:
        """One epoch of batches, as rows of the training examples."""

    def epoch_steps(self, batch_size: int) -> int:
        """How many batches an epoch has; a task may know without making them."""
        return len(self.batches(batch_size, seed=0))

    @abstractmethod
    def step(self, rows: Sequence[int], *, generator: torch.Generator) -> StepLoss:
        """The loss of one batch, its noise drawn from the generator."""

    @abstractmethod
    def evaluate(self) -> dict[str, float]:
        """Figures on dev; the first chooses the checkpoint, higher is better; none: the last."""


@dataclass(frozen=True)
class Report:
    """What an observer of a run is told after a step."""

    step: int
    steps: int
    shown: dict[str, float]
    tokens_per_second: float
    padding: float
    seconds: float
    # of all cores together, of the first worker: what else the machine does counts for little
    core_seconds: float


Observer = Callable[[Report], None]

REACH = 0.25
"""The share of all steps that a mean of weights is over at most: a short run forgets its begin."""

LOG = "log.jsonl"
"""Where a run's reports are written, beside its checkpoint."""


def last_report(folder: Path) -> Report:
    """What was told last of the run in a folder; its times are those of all its parts."""
    last = (folder / LOG).read_text(encoding="utf-8").splitlines()[-1]
    return Report(**json.loads(last))


def train(
    task: Task,
    config: TrainingConfig,
    *,
    checkpoint: Checkpoint,
    observer: Observer | None = None,
    workers: Workers = ALONE,
) -> Progress:
    """Train to the end or go on from the checkpoint; the network ends with the best weights."""
    check_alike(workers, checkpoint.fingerprint)
    plan = checkpoint.folder.parent / "plan.json"
    config = within_budget(task, config, plan, workers=workers)
    run = _Run(task, config, checkpoint, observer=observer, workers=workers)
    run.resume()
    with deferred_interrupt(*workers.stop_signals) as is_interrupted:
        while run.step < config.steps and not run.has_stalled():
            run.advance()
            # a signal reaches one worker before another, and all must stop at the same step
            if workers.is_any(is_interrupted()):
                run.save()
                place = f"step {run.step:,} of {config.steps:,}"
                raise TrainingInterrupted(
                    f"stopped at {place}; the same command goes on from there"
                )
            if time.monotonic() - run.saved_at >= config.save_seconds:
                run.save()
    run.save()
    task.network.load_state_dict(run.best)
    return run.progress()


@contextmanager
def deferred_interrupt(*signals: signal.Signals) -> Iterator[Callable[[], bool]]:
    """Within it the first of each signal is remembered, so that no step is torn; not the second."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False  # signals belong to the main thread
        return
    received: list[int] = []

    def remember(number: int, _frame: object) -> None:
        signal.signal(number, previous[number])
        received.append(number)

    previous = {int(each): signal.signal(each, remember) for each in signals}
    try:
        yield lambda: bool(received)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


class _Run:
    """The state of a training between two steps."""

    def __init__(
        self,
        task: Task,
        config: TrainingConfig,
        checkpoint: Checkpoint,
        *,
        observer: Observer | None,
        workers: Workers,
    ) -> None:
        self.task, self.config, self.checkpoint, self.observer = task, config, checkpoint, observer
        self.workers = workers
        self.optimiser = torch.optim.Adam(task.network.parameters(), lr=config.learning_rate)
        self.device = next(task.network.parameters()).device
        decay = min(config.average, 1 - 1 / max(1.0, REACH * config.steps))
        self.average = AveragedWeights(task.network, decay)
        self.best = copy_weights(task.network)
        self.step, self.best_step, self.best_score = 0, 0, -math.inf
        self.seconds, self.core_seconds, self.saved_at = 0.0, 0.0, time.monotonic()
        self.epoch, self.order = -1, list[list[int]]()
        self.epoch_steps = task.epoch_steps(config.batch_size)
        self.log = checkpoint.folder.parent / LOG
        self.tokens, self.padded, self.busy = 0, 0, 0.0

    def progress(self) -> Progress:
        times = self.seconds, self.core_seconds
        return Progress(self.step, self.best_step, self.best_score, *times)

    def resume(self) -> None:
        """Go on from the checkpoint if there is one; forget what was logged after it."""
        if not self.workers.first(self.checkpoint.exists):
            if self.workers.is_first:
                self.log.parent.mkdir(parents=True, exist_ok=True)
                self.log.write_text("", encoding="utf-8")
            return
        kept, progress = self.checkpoint.load(
            self.task.network, self.optimiser, workers=self.workers
        )
        self.best, self.average.weights = kept.best, kept.average
        self.step, self.best_step = progress.step, progress.best_step
        self.best_score, self.seconds = progress.best_score, progress.seconds
        self.core_seconds = progress.core_seconds
        if self.workers.is_first and self.log.exists():
            text = self.log.read_text(encoding="utf-8")
            # a kill may have torn the last line: what has no end was not logged
            lines = text[: text.rfind("\n") + 1].splitlines(keepends=True)
            logged = [line for line in lines if json.loads(line)["step"] <= self.step]
            self.log.write_text("".join(logged), encoding="utf-8")

    def save(self) -> None:
        if not self.workers.is_first:
            return
        kept = Kept(self.best, self.average.weights)
        self.checkpoint.save(self.task.network, self.optimiser, kept, self.progress())
        self.saved_at = time.monotonic()

    def has_stalled(self) -> bool:
        """Whether dev has not improved for as many evaluations as there is patience."""
        waited = (self.step - self.best_step) // self.config.evaluate_every
        return 0 < self.config.patience <= waited

    def advance(self) -> None:
        """One step, and after every so many the figures on dev."""
        started, cores = time.monotonic(), time.process_time()
        rows = self._rows()
        seed = _mix(self.config.seed, self.step, self.workers.rank)
        generator = torch.Generator(self.device).manual_seed(seed)
        for group in self.optimiser.param_groups:
            group["lr"] = self.config.learning_rate * self._rate()
        self.optimiser.zero_grad(set_to_none=True)
        own = self.workers.share(rows)
        # with fewer rows than workers some have none: they step on any, and it does not count
        cost = self.task.step(own or rows[:1], generator=generator)
        cost.loss.backward()  # type: ignore[no-untyped-call]
        cost = self.workers.add_up(self.task.network, cost if own else cost.uncounted())
        nn.utils.clip_grad_norm_(self.task.network.parameters(), self.config.clip)
        self.optimiser.step()
        self.step += 1
        self.average.update(self.step)
        self.tokens, self.padded = self.tokens + cost.tokens, self.padded + cost.padded
        self.busy += time.monotonic() - started
        is_due = self.step % self.config.evaluate_every == 0 or self.step == self.config.steps
        shown = cost.shown | (self._evaluate() if is_due else {})
        self.seconds += time.monotonic() - started
        self.core_seconds += time.process_time() - cores
        self._tell(shown, logs=is_due)

    def _rows(self) -> Sequence[int]:
        """The batch of this step; every epoch has its own order."""
        epoch, at = divmod(self.step, self.epoch_steps)
        if epoch != self.epoch:
            seed = _mix(self.config.seed, -1 - epoch)
            self.order, self.epoch = self.task.batches(self.config.batch_size, seed=seed), epoch
        return self.order[at]

    def _rate(self) -> float:
        """The share of the learning rate at this step: up in the warm-up, down if it decays."""
        warm = (
            min(1.0, (self.step + 1) / self.config.warmup_steps)
            if self.config.warmup_steps
            else 1.0
        )
        left = 1 - self.step / self.config.steps
        return warm * left if self.config.decay else warm

    def _evaluate(self) -> dict[str, float]:
        figures = self.workers.first(self._figures)
        # without figures there is nothing to choose by: the last weights are taken
        score = next(iter(figures.values()), float(self.step))
        if score > self.best_score:
            self.best = {name: each.clone() for name, each in self.average.weights.items()}
            self.best_step, self.best_score = self.step, score
        return figures

    def _figures(self) -> dict[str, float]:
        self.task.network.eval()
        with self.average.applied():
            figures = self.task.evaluate()
        self.task.network.train()
        return figures

    def _tell(self, shown: dict[str, float], *, logs: bool) -> None:
        if not self.workers.is_first:
            return
        report = Report(
            self.step,
            self.config.steps,
            shown,
            tokens_per_second=self.tokens / self.busy,
            padding=self.padded / (self.tokens + self.padded),
            seconds=self.seconds,
            core_seconds=self.core_seconds,
        )
        if logs:
            with self.log.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(asdict(report)) + "\n")
        if self.observer is not None:
            self.observer(report)


def _mix(seed: int, number: int, rank: int = 0) -> int:
    """A seed of its own for every step of a worker and every epoch of a run."""
    return (seed * 1_000_003 + number * 7919 + rank * 2_654_435_761 + 12345) % (1 << 62)
