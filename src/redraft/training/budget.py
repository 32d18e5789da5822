"""Choose the number of steps that fit a time budget, by timing a few batches first."""

import json
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from redraft.training.process_group import SINGLE_PROCESS, ProcessGroup

if TYPE_CHECKING:
    from redraft.training.schedule import TrainingConfig
    from redraft.training.trainer import Task

_TIMED_STEPS = 12
_EVALUATION_SHARE = 0.3
"""Largest share of the budget for evaluation on dev."""
_RESERVED = 0.15
"""Share of the budget reserved for unmeasured work: loading, saving, variation."""
_UPDATE_FACTOR = 1.1
"""Cost of a step with the weight update, which is not timed, relative to one without."""


def within_budget(
    task: "Task", config: "TrainingConfig", plan: Path, *, workers: ProcessGroup = SINGLE_PROCESS
) -> "TrainingConfig":
    """Return `config` with at most as many steps as fit its budget.

    The result is written to `plan`, and a run that is resumed reads it from there.
    """
    if not config.budget:
        return config
    settings = workers.broadcast(lambda: _read(plan))
    if settings is None:
        # All workers step at once, as in training.
        step, evaluation = _measure_seconds(task, config, workers)
        settings = workers.broadcast(lambda: _write_plan(plan, config, step, evaluation))
    return replace(config, **settings)


def _read(plan: Path) -> dict[str, Any] | None:
    if not plan.exists():
        return None
    settings: dict[str, Any] = json.loads(plan.read_text(encoding="utf-8"))
    return settings


def _write_plan(
    plan: Path, config: "TrainingConfig", step: float, evaluation: float
) -> dict[str, Any]:
    """Choose settings by the seconds of a step and of an evaluation, and write them to `plan`."""
    time_left = (1 - _RESERVED) * config.budget
    configured = math.ceil(config.steps / config.evaluate_every)
    evaluations = max(
        1, min(configured, int(_EVALUATION_SHARE * time_left / max(evaluation, 1e-9)))
    )
    steps = int((time_left - evaluations * evaluation) / step)
    steps = max(1, min(config.steps, steps))
    settings: dict[str, Any] = {
        "steps": steps,
        "warmup_steps": math.ceil(config.warmup_steps * steps / config.steps),
        "evaluate_every": math.ceil(steps / evaluations),
    }
    plan.parent.mkdir(parents=True, exist_ok=True)
    plan.write_text(json.dumps(settings), encoding="utf-8")
    return settings


def _measure_seconds(
    task: "Task", config: "TrainingConfig", workers: ProcessGroup
) -> tuple[float, float]:
    """Return the mean seconds of a step and those of an evaluation; changes no weights."""
    batches = task.batches(config.batch_size, seed=config.seed)[:_TIMED_STEPS]
    generator = torch.Generator(next(task.network.parameters()).device).manual_seed(config.seed)
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
