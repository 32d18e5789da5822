"""Plan a run: its steps and evaluations, reduced to a time budget by timing a few batches first."""

import json
import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from redraft.training.schedule import RunOptions, TrainingConfig
    from redraft.training.trainer import Task

EVALUATIONS = 8
"""Evaluations on dev per run; the best of these checkpoints is kept."""

_TIMED_STEPS = 12
_EVALUATION_SHARE = 0.3
"""Largest share of the budget for evaluation on dev."""
_RESERVED = 0.15
"""Share of the budget reserved for unmeasured work: loading, saving, variation."""
_UPDATE_FACTOR = 1.1
"""Cost of a step with the weight update, which is not timed, relative to one without."""


@dataclass(frozen=True)
class Plan:
    """The number of steps of a run, and of evaluations during it."""

    steps: int
    evaluations: int

    @property
    def evaluate_every(self) -> int:
        """The number of steps between evaluations."""
        return math.ceil(self.steps / self.evaluations)


def within_budget(
    task: "Task", config: "TrainingConfig", options: "RunOptions", *, path: Path
) -> Plan:
    """Return a plan of at most `config.steps` steps that fits the budget of `options`.

    It is written to `path`, and a run that is resumed reads it from there.
    """
    if not options.budget:
        return Plan(config.steps, EVALUATIONS)
    workers = options.workers
    plan = workers.broadcast(lambda: _read(path))
    if plan is None:
        # All workers step at once, as in training.
        step, evaluation = _measure_seconds(task, config, options)
        plan = workers.broadcast(
            lambda: _write(path, _plan(config.steps, options.budget, step, evaluation))
        )
    return Plan(**plan)


def _plan(steps: int, budget: float, step: float, evaluation: float) -> Plan:
    """Return the plan for at most `steps` steps, given the seconds of one and of an evaluation."""
    time_left = (1 - _RESERVED) * budget
    affordable = int(_EVALUATION_SHARE * time_left / max(evaluation, 1e-9))
    evaluations = max(1, min(EVALUATIONS, affordable))
    in_time = int((time_left - evaluations * evaluation) / step)
    return Plan(max(1, min(steps, in_time)), evaluations)


def _read(path: Path) -> dict[str, int] | None:
    if not path.exists():
        return None
    plan: dict[str, int] = json.loads(path.read_text(encoding="utf-8"))
    return plan


def _write(path: Path, plan: Plan) -> dict[str, int]:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(plan)), encoding="utf-8")
    return asdict(plan)


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
