"""Plan a run: its steps and evaluations, reduced to a time budget by the measured speed."""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from redraft.training.schedule import RunOptions, TrainingConfig
    from redraft.training.trainer import Task

EVALUATIONS = 8
"""Evaluations on dev per run; the best of these checkpoints is kept."""

_TIMED_STEPS = 12
_EVALUATION_SHARE = 0.3
"""Largest share of the budget for evaluation on dev."""
_RESERVED = 0.02
"""Share of the budget reserved for the last checkpoint."""
_REVISED_AFTER = 0.1
"""Share of the remaining steps after which the number of steps is revised."""
_UPDATE_FACTOR = 1.1
"""Cost of a step with the weight update, which is not timed, relative to one without."""


@dataclass(frozen=True)
class Plan:
    """The number of steps of a run, and of evaluations during it.

    `revisions` are pairs (step, steps), sorted, the first one at step 0: after `step` steps were
    taken, the run has `steps` in all.
    """

    revisions: Sequence[tuple[int, int]]
    evaluations: int = EVALUATIONS
    evaluation_seconds: float = 0.0  # of the latest evaluation

    def write(self, path: Path) -> None:
        """Write the plan to `path`."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    def steps(self, step: int) -> int:
        """Return the number of steps of the run, as planned after `step` of them."""
        return next(steps for start, steps in reversed(self.revisions) if start <= step)

    def evaluated(self, step: int) -> int:
        """Return the number of evaluations that are due by the end of `step` steps."""
        return step * self.evaluations // self.steps(step - 1) if step else 0

    def is_revisable(self, step: int) -> bool:
        """Return True if the number of steps is to be revised after `step` steps."""
        last, steps = self.revisions[-1]
        return step < steps and step - last >= max(1, int(_REVISED_AFTER * (steps - last)))

    def affordable(self, step: int, *, seconds: float, step_seconds: float) -> int:
        """Return the number of steps of a run that has `seconds` left after `step` of them."""
        evaluations = self.evaluations - self.evaluated(step)
        left = seconds - evaluations * self.evaluation_seconds
        return step + max(1, int(left / step_seconds))


def usable(budget: float) -> float:
    """Return the seconds of a budget that steps and evaluations may take."""
    return (1 - _RESERVED) * budget


def within_budget(
    task: "Task", config: "TrainingConfig", options: "RunOptions", *, path: Path
) -> Plan:
    """Return a plan of at most `config.steps` steps that fits the budget of `options`.

    It is written to `path`, and a run that is resumed reads it from there. The trainer revises it
    by the speed of the run, since a few timed steps may be slower or faster than the others.
    """
    if not options.budget:
        return Plan([(0, config.steps)])
    workers = options.workers
    text = workers.broadcast(lambda: path.read_text(encoding="utf-8") if path.exists() else None)
    plan: dict[str, Any] | None = json.loads(text) if text else None
    if plan is None:
        started = time.monotonic()
        # All workers step at once, as in training.
        step, evaluation = _measure_seconds(task, config, options)
        seconds = usable(options.budget) - (time.monotonic() - started)
        plan = workers.broadcast(lambda: asdict(_plan(config.steps, seconds, step, evaluation)))
        if workers.is_main:
            Plan(**plan).write(path)
    return Plan(**plan)


def _plan(steps: int, seconds: float, step: float, evaluation: float) -> Plan:
    """Return the plan for at most `steps` steps, given the seconds of one and of an evaluation."""
    evaluations = int(_EVALUATION_SHARE * seconds / max(evaluation, 1e-9))
    plan = Plan([(0, steps)], max(1, min(EVALUATIONS, evaluations)), evaluation)
    affordable = plan.affordable(0, seconds=seconds, step_seconds=step)
    return replace(plan, revisions=[(0, min(steps, affordable))])


def _measure_seconds(
    task: "Task", config: "TrainingConfig", options: "RunOptions"
) -> tuple[float, float]:
    """Return the mean seconds of a step and those of an evaluation; changes no weights."""
    workers, device = options.workers, next(task.network.parameters()).device
    batches = task.batches(config.batch_size, seed=options.seed)[:_TIMED_STEPS]
    generator = torch.Generator(device).manual_seed(options.seed)
    started = time.monotonic()
    for rows in batches:
        result = task.step(workers.shard(rows) or rows[:1], generator=generator)
        result.loss.backward()  # type: ignore[no-untyped-call]
        workers.all_reduce(task.network, result)
        task.network.zero_grad(set_to_none=True)
    step = _UPDATE_FACTOR * (time.monotonic() - started) / len(batches)
    started = time.monotonic()
    if workers.is_main:
        task.network.eval()
        task.evaluate()
        task.network.train()
    return step, time.monotonic() - started
