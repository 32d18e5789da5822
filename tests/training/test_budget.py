"""Time budgets: the number of steps is chosen once and stored."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from redraft.errors import TrainingInterrupted
from redraft.training import budget
from redraft.training.budget import within_budget
from redraft.training.checkpoint import Checkpoint
from redraft.training.schedule import TrainingConfig
from redraft.training.trainer import train
from tests.training.test_trainer import LineTask, weights

CONFIG = TrainingConfig(
    steps=100, batch_size=4, warmup_steps=10, evaluate_every=20, budget=10.0, learning_rate=0.05
)


def takes(seconds: float, monkeypatch: pytest.MonkeyPatch, *, evaluation: float = 0.0) -> None:
    """Fake the measured seconds of a step and of an evaluation."""
    monkeypatch.setattr(budget, "_measure_seconds", lambda *_: (seconds, evaluation))


def test_steps_and_schedule_shrink_to_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    takes(0.5, monkeypatch)
    planned = within_budget(LineTask(), CONFIG, tmp_path / "plan.json")
    assert planned.steps * 0.5 <= CONFIG.budget
    assert planned.steps >= 10
    assert planned.warmup_steps == pytest.approx(planned.steps / 10, abs=1)
    assert planned.evaluate_every == pytest.approx(planned.steps / 5, abs=1)
    one, other = (
        replace(each, steps=1, warmup_steps=1, evaluate_every=1) for each in (planned, CONFIG)
    )
    assert one == other  # nothing else is changed


def test_slow_evaluations_become_fewer_and_count_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    takes(0.1, monkeypatch, evaluation=1.0)
    planned = within_budget(LineTask(), CONFIG, tmp_path / "plan.json")
    evaluations = -(-planned.steps // planned.evaluate_every)
    assert evaluations == 2
    assert 0.1 * planned.steps + 1.0 * evaluations <= CONFIG.budget
    assert planned.steps >= 50


@pytest.mark.parametrize(("seconds", "steps"), [(1e-9, 100), (1e9, 1)])
def test_steps_are_never_more_than_configured_nor_none(
    seconds: float, steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    takes(seconds, monkeypatch)
    assert within_budget(LineTask(), CONFIG, tmp_path / "plan.json").steps == steps


def test_without_a_budget_nothing_is_measured_or_planned(tmp_path: Path) -> None:
    config = replace(CONFIG, budget=0.0)
    task = LineTask()
    assert within_budget(task, config, tmp_path / "plan.json") is config
    assert task.seen == []
    assert not (tmp_path / "plan.json").exists()


def test_measuring_changes_no_weight(tmp_path: Path) -> None:
    task = LineTask()
    before = weights(task)
    assert within_budget(task, CONFIG, tmp_path / "plan.json").steps == 100
    assert task.seen
    assert weights(task) == before
    assert all(parameter.grad is None for parameter in task.network.parameters())
    assert task.network.training


def test_a_resumed_run_keeps_its_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    takes(0.5, monkeypatch)
    whole = LineTask()
    done = train(whole, CONFIG, checkpoint=Checkpoint(tmp_path / "whole" / "checkpoint", "f"))
    assert 1 < done.step < 100
    first, second = LineTask(), LineTask()
    first.stop_at = 5
    checkpoint = Checkpoint(tmp_path / "stopped" / "checkpoint", "f")
    with pytest.raises(TrainingInterrupted, match=f"stopped at step 5 of {done.step}"):
        train(first, CONFIG, checkpoint=checkpoint)
    takes(0.01, monkeypatch)
    resumed = train(second, CONFIG, checkpoint=checkpoint)
    assert resumed.step == done.step
    assert weights(second) == weights(whole)
    plan = json.loads((tmp_path / "stopped" / "plan.json").read_text())
    assert plan["steps"] == done.step
