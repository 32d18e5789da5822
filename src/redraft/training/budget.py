"""As many steps as a time allows: measured on a few batches before the first one counts."""

import json
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from redraft.training.loop import Task, TrainingConfig

_TIMED = 5
_RESERVED = 0.15
"""The share of a budget that is kept for what was not measured: loading, saving, noise."""


def within_budget(task: "Task", config: "TrainingConfig", plan: Path) -> "TrainingConfig":
    """The settings with no more steps than the budget allows; a plan once made is kept."""
    if not config.budget:
        return config
    if plan.exists():
        return replace(config, **json.loads(plan.read_text(encoding="utf-8")))
    seconds = _seconds_a_step(task, config)
    steps = max(1, min(config.steps, int((1 - _RESERVED) * config.budget / seconds)))
    settings: dict[str, Any] = {
        "steps": steps,
        "warmup_steps": math.ceil(config.warmup_steps * steps / config.steps),
        "evaluate_every": max(1, math.ceil(config.evaluate_every * steps / config.steps)),
    }
    plan.parent.mkdir(parents=True, exist_ok=True)
    plan.write_text(json.dumps(settings), encoding="utf-8")
    return replace(config, **settings)


def _seconds_a_step(task: "Task", config: "TrainingConfig") -> float:
    """The mean over a few batches, and the share of an evaluation; no weight is changed."""
    batches = task.batches(config.batch_size, seed=config.seed)[:_TIMED]
    generator = torch.Generator(next(task.network.parameters()).device).manual_seed(config.seed)
    started = time.monotonic()
    for rows in batches:
        task.step(rows, generator=generator).loss.backward()  # type: ignore[no-untyped-call]
        task.network.zero_grad(set_to_none=True)
    step = (time.monotonic() - started) / len(batches)
    started = time.monotonic()
    task.network.eval()
    task.evaluate()
    task.network.train()
    return step + (time.monotonic() - started) / config.evaluate_every
