"""Time budgets: the number of steps is chosen once and stored."""

import json
from pathlib import Path

import pytest

from redraft.errors import TrainingInterrupted
from redraft.training import budget
from redraft.training.budget import Plan, within_budget
from redraft.training.checkpoint import Checkpoint
from redraft.training.schedule import RunOptions, TrainingConfig
from redraft.training.trainer import train
from tests.training.test_trainer import LineTask, weights

CONFIG = TrainingConfig(steps=100, batch_size=4, learning_rate=0.05)
TEN_SECONDS = RunOptions(budget=10.0)


def takes(seconds: float, monkeypatch: pytest.MonkeyPatch, *, evaluation: float = 0.0) -> None:
    """Fake the measured seconds of a step and of an evaluation."""
    monkeypatch.setattr(budget, "_measure_seconds", lambda *_: (seconds, evaluation))


def test_steps_and_schedule_shrink_to_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    takes(0.5, monkeypatch)
    planned = within_budget(LineTask(), CONFIG, TEN_SECONDS, path=tmp_path / "plan.json")
    assert planned.steps * 0.5 <= TEN_SECONDS.budget
    assert planned.steps >= 10
    assert planned.evaluate_every == pytest.approx(planned.steps / budget.EVALUATIONS, abs=1)


def test_slow_evaluations_become_fewer_and_count_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    takes(0.1, monkeypatch, evaluation=1.0)
    planned = within_budget(LineTask(), CONFIG, TEN_SECONDS, path=tmp_path / "plan.json")
    evaluations = -(-planned.steps // planned.evaluate_every)
    assert evaluations == 2
    assert 0.1 * planned.steps + 1.0 * evaluations <= TEN_SECONDS.budget
    assert planned.steps >= 50


@pytest.mark.parametrize(("seconds", "steps"), [(1e-9, 100), (1e9, 1)])
def test_steps_are_never_more_than_configured_nor_none(
    seconds: float, steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    takes(seconds, monkeypatch)
    assert (
        within_budget(LineTask(), CONFIG, TEN_SECONDS, path=tmp_path / "plan.json").steps == steps
    )


def test_without_a_budget_nothing_is_measured_or_planned(tmp_path: Path) -> None:
    task = LineTask()
    plan = within_budget(task, CONFIG, RunOptions(), path=tmp_path / "plan.json")
    assert plan == Plan(CONFIG.steps, budget.EVALUATIONS)
    assert task.seen == []
    assert not (tmp_path / "plan.json").exists()


def test_measuring_changes_no_weight(tmp_path: Path) -> None:
    task = LineTask()
    before = weights(task)
    assert within_budget(task, CONFIG, TEN_SECONDS, path=tmp_path / "plan.json").steps == 100
    assert task.seen
    assert weights(task) == before
    assert all(parameter.grad is None for parameter in task.network.parameters())
    assert task.network.training


def test_a_resumed_run_keeps_its_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    takes(0.5, monkeypatch)
    whole = LineTask()
    checkpoint = Checkpoint(tmp_path / "whole" / "checkpoint", "f")
    done = train(whole, CONFIG, checkpoint=checkpoint, options=TEN_SECONDS)
    assert 1 < done.step < 100
    first, second = LineTask(), LineTask()
    first.stop_at = 5
    checkpoint = Checkpoint(tmp_path / "stopped" / "checkpoint", "f")
    with pytest.raises(TrainingInterrupted, match=f"stopped at step 5 of {done.step}"):
        train(first, CONFIG, checkpoint=checkpoint, options=TEN_SECONDS)
    takes(0.01, monkeypatch)
    resumed = train(second, CONFIG, checkpoint=checkpoint, options=TEN_SECONDS)
    assert resumed.step == done.step
    assert weights(second) == weights(whole)
    plan = json.loads((tmp_path / "stopped" / "plan.json").read_text())
    assert plan["steps"] == done.step
