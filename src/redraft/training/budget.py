"""As many steps as a time allows: measured on a few batches before the first one counts."""

import json
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from redraft.training.workers import ALONE, Workers

if TYPE_CHECKING:
    from redraft.training.loop import Task, TrainingConfig

_TIMED = 12
_EVALUATING = 0.3
"""The largest share of a budget that goes into scores on dev."""
_RESERVED = 0.15
"""The share of a budget that is kept for what was not measured: loading, saving, noise."""
_UPDATE = 1.1
"""A step with the update of the weights, which is not timed, beside one without."""


def within_budget(
    task: "Task", config: "TrainingConfig", plan: Path, *, workers: Workers = ALONE
) -> "TrainingConfig":
    """The settings with no more steps than the budget allows; a plan once made is kept."""
    if not config.budget:
        return config
    settings = workers.first(lambda: _read(plan))
    if settings is None:
        # all of them step at once, as they will
        step, evaluation = _seconds(task, config, workers)
        settings = workers.first(lambda: _make(plan, config, step, evaluation))
    return replace(config, **settings)


def _read(plan: Path) -> dict[str, Any] | None:
    if not plan.exists():
        return None
    settings: dict[str, Any] = json.loads(plan.read_text(encoding="utf-8"))
    return settings


def _make(plan: Path, config: "TrainingConfig", step: float, evaluation: float) -> dict[str, Any]:
    """The settings by what a step and an evaluation take, written down."""
    time_left = (1 - _RESERVED) * config.budget
    wished = math.ceil(config.steps / config.evaluate_every)
    evaluations = max(1, min(wished, int(_EVALUATING * time_left / max(evaluation, 1e-9))))
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


def _seconds(task: "Task", config: "TrainingConfig", workers: Workers) -> tuple[float, float]:
    """How long a step takes, in the mean of a few, and an evaluation; no weight is changed."""
    batches = task.batches(config.batch_size, seed=config.seed)[:_TIMED]
    generator = torch.Generator(next(task.network.parameters()).device).manual_seed(config.seed)
    started = time.monotonic()
    for rows in batches:
        cost = task.step(workers.share(rows) or rows[:1], generator=generator)
        cost.loss.backward()  # type: ignore[no-untyped-call]
        workers.add_up(task.network, cost)
        task.network.zero_grad(set_to_none=True)
    step = _UPDATE * (time.monotonic() - started) / len(batches)
    started = time.monotonic()
    if workers.is_first:
        task.network.eval()
        task.evaluate()
        task.network.train()
    return step, time.monotonic() - started
