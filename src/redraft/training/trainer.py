"""The training loop: steps, validation and checkpoints. Knows no model.

All randomness is a function of the seed and the step, so that a run that was killed and resumed
ends with the same weights as an uninterrupted one. Several workers step on shards of the same
batches; only the main worker evaluates, logs and writes.
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

import torch
from torch import Tensor, nn

from redraft.errors import TrainingInterrupted
from redraft.training.budget import Plan, usable, within_budget
from redraft.training.checkpoint import Checkpoint, Progress
from redraft.training.ema import ExponentialMovingAverage, copy_weights
from redraft.training.process_group import check_alike
from redraft.training.progress import Report
from redraft.training.run_folder import LOG, PLAN
from redraft.training.schedule import RunOptions, TrainingConfig


@dataclass(frozen=True)
class StepLoss:
    """The loss of a batch, a mean over `token_count` tokens, and its metrics."""

    loss: Tensor
    metrics: dict[str, float]
    token_count: int  # the denominator of the loss
    tokens: int  # tokens of inputs and outputs, for throughput
    padded: int  # padding tokens


class Task(ABC):
    """A network to train, its batches, its loss and its validation."""

    network: nn.Module

    @abstractmethod
    def batches(self, batch_size: int, *, seed: int) -> list[list[int]]:
        """Return the batches of one epoch, as rows of the training examples."""

    def epoch_steps(self, batch_size: int) -> int:
        """Return the number of batches per epoch; override it where building them is slow."""
        return len(self.batches(batch_size, seed=0))

    @abstractmethod
    def step(self, rows: Sequence[int], *, generator: torch.Generator) -> StepLoss:
        """Return the loss of one batch; `generator` is the only source of randomness."""

    @abstractmethod
    def evaluate(self) -> dict[str, float]:
        """Return metrics on dev.

        The checkpoint with the highest first metric is kept; without metrics, the last one.
        """


WARMUP_STEPS = 50
"""Steps over which the learning rate rises from 0, if it decays; at most a sixth of the steps."""

SAVE_SECONDS = 60.0
"""Seconds between checkpoints, from which a stopped run resumes."""

REACH = 0.25
"""Longest horizon of the EMA as a share of all steps.

A decay of d averages over about 1 / (1 - d) steps. In a short run the decay is lowered to a horizon
of a quarter of the steps, so that early weights do not remain in the average.
"""

PATIENCE = 3
"""A run without a budget stops after this many evaluations, of eight, without a better one."""

EARLIEST_STOP = 200
"""No run stops early before this many steps: a few of them say nothing."""

MAX_GRAD_NORM = 5.0
"""Gradients are clipped to this norm."""


def train(
    task: Task,
    config: TrainingConfig,
    *,
    checkpoint: Checkpoint,
    options: RunOptions | None = None,
) -> Progress:
    """Train from the start or from `checkpoint`, and leave the network with the best weights."""
    started = time.monotonic()
    options = options or RunOptions()
    workers = options.workers
    check_alike(workers, checkpoint.fingerprint)
    plan = within_budget(task, config, options, path=checkpoint.folder.parent / PLAN)
    run = _Run(task, config, plan, checkpoint, options)
    run.started = started
    run.resume()
    with deferred_interrupt(*workers.stop_signals) as is_interrupted:
        while run.step < run.steps and not run.has_converged:
            run.advance()
            # A signal may reach one worker first, but all must stop at the same step.
            if workers.any(is_interrupted()):
                run.save()
                position = f"step {run.step:,} of {run.steps:,}"
                raise TrainingInterrupted(
                    f"stopped at {position}; the same command goes on from there"
                )
            if time.monotonic() - run.saved_at >= SAVE_SECONDS:
                run.save()
            run.revise()
    run.save()
    task.network.load_state_dict(run.best)
    return run.progress


@contextmanager
def deferred_interrupt(*signals: signal.Signals) -> Iterator[Callable[[], bool]]:
    """Defer the first of each of `signals` within the context, so that a step is completed.

    Yields a function that returns True after a signal; a second one is handled as usual.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False  # signals belong to the main thread
        return
    received: list[int] = []

    def record(number: int, _frame: object) -> None:
        signal.signal(number, previous[number])
        received.append(number)

    previous = {int(number): signal.signal(number, record) for number in signals}
    try:
        yield lambda: bool(received)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


class _Run:
    """The state of a training run between two steps."""

    def __init__(
        self,
        task: Task,
        config: TrainingConfig,
        plan: Plan,
        checkpoint: Checkpoint,
        options: RunOptions,
    ) -> None:
        self.task, self.config, self.plan, self.checkpoint = task, config, plan, checkpoint
        self.options, self.workers = options, options.workers
        self.optimiser = torch.optim.Adam(task.network.parameters(), lr=config.learning_rate)
        self.device = next(task.network.parameters()).device
        decay = min(config.ema_decay, 1 - 1 / max(1.0, REACH * plan.steps(0)))
        self.ema = ExponentialMovingAverage(task.network, decay)
        self.best = copy_weights(task.network)
        self.progress = Progress()
        self.started = self.saved_at = time.monotonic()
        self.epoch, self.order = -1, list[list[int]]()
        self.epoch_steps = task.epoch_steps(config.batch_size)
        self.log = checkpoint.folder.parent / LOG
        self.tokens, self.padded, self.busy, self.taken = 0, 0, 0.0, 0

    @property
    def step(self) -> int:
        """The number of steps that were taken."""
        return self.progress.step

    @property
    def steps(self) -> int:
        """The number of steps of the run, as planned by now."""
        return self.plan.steps(self.step)

    @property
    def has_converged(self) -> bool:
        """True if the last evaluations were no better than an earlier one; a budget is used up."""
        evaluated = self.plan.evaluated
        since_best = evaluated(self.step) - evaluated(self.progress.best_step)
        is_early = self.step < EARLIEST_STOP or bool(self.options.budget)
        return since_best >= PATIENCE and not is_early

    def resume(self) -> None:
        """Load the checkpoint, if any, and drop log lines that were written after it."""
        if not self.workers.broadcast(self.checkpoint.exists):
            if self.workers.is_main:
                self.log.parent.mkdir(parents=True, exist_ok=True)
                self.log.write_text("", encoding="utf-8")
            return
        self.progress, self.best, self.ema.weights = self.checkpoint.load(
            self.task.network, self.optimiser, workers=self.workers
        )
        self.started -= self.progress.seconds
        if self.workers.is_main and self.log.exists():
            text = self.log.read_text(encoding="utf-8")
            # A kill may have cut off the last line.
            lines = text[: text.rfind("\n") + 1].splitlines(keepends=True)
            logged = [line for line in lines if json.loads(line)["step"] <= self.step]
            self.log.write_text("".join(logged), encoding="utf-8")

    def save(self) -> None:
        if not self.workers.is_main:
            return
        network, ema = self.task.network, self.ema.weights
        self.checkpoint.save(network, self.optimiser, self.progress, best=self.best, ema=ema)
        self.saved_at = time.monotonic()

    def advance(self) -> None:
        """Take one step, validate if it is due, and report."""
        started, started_cores = time.monotonic(), time.process_time()
        rows = self._rows()
        seed = _mix(self.options.seed, self.step, self.workers.rank)
        generator = torch.Generator(self.device).manual_seed(seed)
        for group in self.optimiser.param_groups:
            group["lr"] = self.config.learning_rate * self._lr_factor()
        self.optimiser.zero_grad(set_to_none=True)
        shard = self.workers.shard(rows)
        # With fewer rows than workers some shards are empty: step on any row, with zero weight.
        result = self.task.step(shard or rows[:1], generator=generator)
        result.loss.backward()  # type: ignore[no-untyped-call]
        if not shard:
            result = replace(result, token_count=0, tokens=0, padded=0)
        result = self.workers.all_reduce(self.task.network, result)
        nn.utils.clip_grad_norm_(self.task.network.parameters(), MAX_GRAD_NORM)
        self.optimiser.step()
        self.progress = replace(self.progress, step=self.step + 1)
        self.ema.update(self.step)
        self.tokens, self.padded = self.tokens + result.tokens, self.padded + result.padded
        self.busy, self.taken = self.busy + time.monotonic() - started, self.taken + 1
        is_due = self.plan.evaluated(self.step) > self.plan.evaluated(self.step - 1)
        metrics = result.metrics | (self._evaluate() if is_due else {})
        self.progress = replace(
            self.progress,
            seconds=self.progress.seconds + time.monotonic() - started,
            core_seconds=self.progress.core_seconds + time.process_time() - started_cores,
        )
        self._report(metrics, logs=is_due)

    def revise(self) -> None:
        """Revise the number of steps by the speed of the run, if that is due.

        The revision is written: a run that is resumed before it takes the same steps.
        """
        if not self.options.budget or not self.plan.is_revisable(self.step):
            return

        def steps() -> int:
            left = usable(self.options.budget) - (time.monotonic() - self.started)
            speed = self.busy / self.taken
            affordable = self.plan.affordable(self.step, seconds=left, step_seconds=speed)
            return min(self.config.steps, affordable)

        revision = self.step, self.workers.broadcast(steps)
        self.plan = replace(self.plan, revisions=[*self.plan.revisions, revision])
        if self.workers.is_main:
            self.plan.write(self.checkpoint.folder.parent / PLAN)

    def _rows(self) -> Sequence[int]:
        """Return the batch of this step; the order differs between epochs."""
        epoch, index = divmod(self.step, self.epoch_steps)
        if epoch != self.epoch:
            seed = _mix(self.options.seed, -1 - epoch)
            self.order, self.epoch = self.task.batches(self.config.batch_size, seed=seed), epoch
        return self.order[index]

    def _lr_factor(self) -> float:
        """Return the factor of the learning rate at this step: linear warm-up and decay."""
        if not self.config.lr_decay:
            return 1.0
        warmup_steps = min(WARMUP_STEPS, math.ceil(self.steps / 6))
        warmup = min(1.0, (self.step + 1) / warmup_steps)
        return warmup * (1 - self.step / self.steps)

    def _evaluate(self) -> dict[str, float]:
        started = time.monotonic()
        metrics = self.workers.broadcast(self._validate)
        self.plan = replace(self.plan, evaluation_seconds=time.monotonic() - started)
        # Without metrics the last weights are taken.
        score = next(iter(metrics.values()), float(self.step))
        if score > self.progress.best_score:
            self.best = {name: weight.clone() for name, weight in self.ema.weights.items()}
            self.progress = replace(self.progress, best_step=self.step, best_score=score)
        return metrics

    def _validate(self) -> dict[str, float]:
        self.task.network.eval()
        with self.ema.applied():
            metrics = self.task.evaluate()
        self.task.network.train()
        return metrics

    def _report(self, metrics: dict[str, float], *, logs: bool) -> None:
        if not self.workers.is_main:
            return
        report = Report(
            self.step,
            self.plan.steps(self.step - 1),
            metrics,
            tokens_per_second=self.tokens / self.busy,
            padding=self.padded / (self.tokens + self.padded),
            seconds=self.progress.seconds,
            core_seconds=self.progress.core_seconds,
        )
        if logs:
            with self.log.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(asdict(report)) + "\n")
        if self.options.on_step is not None:
            self.options.on_step(report)


def _mix(seed: int, number: int, rank: int = 0) -> int:
    """Return a distinct seed for each step of a worker and each epoch of a run."""
    return (seed * 1_000_003 + number * 7919 + rank * 2_654_435_761 + 12345) % (1 << 62)
