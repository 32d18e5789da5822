"""Time budgets: the number of steps follows the speed of the run, and is stored."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from redraft.errors import TrainingInterrupted
from redraft.training import budget, trainer
from redraft.training.budget import Plan, within_budget
from redraft.training.checkpoint import Checkpoint
from redraft.training.progress import Report
from redraft.training.schedule import RunOptions, TrainingConfig
from redraft.training.trainer import StepLoss, train
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
    assert 8.0 <= planned.steps(0) * 0.5 <= TEN_SECONDS.budget
    assert planned.evaluated(planned.steps(0)) == budget.EVALUATIONS


def test_slow_evaluations_become_fewer_and_count_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    takes(0.1, monkeypatch, evaluation=1.0)
    planned = within_budget(LineTask(), CONFIG, TEN_SECONDS, path=tmp_path / "plan.json")
    assert planned.evaluations == 2
    assert 8.0 <= 0.1 * planned.steps(0) + 1.0 * planned.evaluations <= TEN_SECONDS.budget


@pytest.mark.parametrize(("seconds", "steps"), [(1e-9, 100), (1e9, 1)])
def test_steps_are_never_more_than_configured_nor_none(
    seconds: float, steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    takes(seconds, monkeypatch)
    planned = within_budget(LineTask(), CONFIG, TEN_SECONDS, path=tmp_path / "plan.json")
    assert planned.steps(0) == steps


def test_without_a_budget_nothing_is_measured_or_planned(tmp_path: Path) -> None:
    task = LineTask()
    plan = within_budget(task, CONFIG, RunOptions(), path=tmp_path / "plan.json")
    assert plan == Plan([(0, CONFIG.steps)], budget.EVALUATIONS)
    assert task.seen == []
    assert not (tmp_path / "plan.json").exists()


def test_measuring_changes_no_weight(tmp_path: Path) -> None:
    task = LineTask()
    before = weights(task)
    assert within_budget(task, CONFIG, TEN_SECONDS, path=tmp_path / "plan.json").steps(0) == 100
    assert task.seen
    assert weights(task) == before
    assert all(parameter.grad is None for parameter in task.network.parameters())
    assert task.network.training


class Clock:
    """A clock that only `advance` moves, for the trainer and its budget."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        clock = SimpleNamespace(monotonic=lambda: self.now, process_time=lambda: self.now)
        for module in (budget, trainer):
            monkeypatch.setattr(module, "time", clock)

    def advance(self, seconds: float) -> None:
        self.now += seconds


class TimedTask(LineTask):
    """A task whose step number n takes `seconds(n)`, the timed ones included."""

    def __init__(
        self, clock: Clock, seconds: Callable[[int], float], *, evaluation: float = 0.0
    ) -> None:
        super().__init__()
        self.clock, self.seconds, self.evaluation = clock, seconds, evaluation

    def step(self, rows: Sequence[int], *, generator: torch.Generator) -> StepLoss:
        self.clock.advance(self.seconds(len(self.seen)))
        return super().step(rows, generator=generator)

    def evaluate(self) -> dict[str, float]:
        self.clock.advance(self.evaluation)
        return super().evaluate()


SPEEDS: dict[str, Callable[[int], float]] = {
    "steady": lambda _: 0.1,
    "slow at first": lambda n: 0.3 if n < 12 else 0.1,
    "fast at first": lambda n: 0.02 if n < 12 else 0.1,
    "slow from the middle on": lambda n: 0.1 if n < 500 else 0.25,
    "fast from the middle on": lambda n: 0.25 if n < 200 else 0.1,
    "uneven": lambda n: 0.05 + 0.1 * (n % 3),
}
MANY = replace(CONFIG, steps=1_000_000, lr_decay=True)


@pytest.mark.parametrize("evaluation", [0.0, 1.5])
@pytest.mark.parametrize("speed", SPEEDS.values(), ids=SPEEDS.keys())
def test_the_budget_is_used_and_kept(
    speed: Callable[[int], float],
    evaluation: float,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    task = TimedTask(clock, speed, evaluation=evaluation)
    checkpoint = Checkpoint(tmp_path / "checkpoint", "f")
    reports: list[Report] = []
    options = RunOptions(budget=120.0, on_step=reports.append)
    train(task, MANY, checkpoint=checkpoint, options=options)
    assert 0.95 * 120 <= clock.now <= 120
    evaluations = sum("score" in report.shown for report in reports)
    assert budget.EVALUATIONS - 2 <= evaluations <= budget.EVALUATIONS + 2
    assert "score" in reports[-1].shown


def test_a_run_that_was_stopped_takes_the_steps_that_were_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    speed, options = SPEEDS["slow at first"], RunOptions(budget=20.0)
    first = TimedTask(clock, speed)
    first.stop_at = 100
    checkpoint = Checkpoint(tmp_path / "checkpoint", "f")
    with pytest.raises(TrainingInterrupted, match="stopped at step"):
        train(first, MANY, checkpoint=checkpoint, options=options)
    written = json.loads((tmp_path / "plan.json").read_text())["revisions"]
    spent, clock.now = clock.now, 1_000.0
    train(TimedTask(clock, speed), MANY, checkpoint=checkpoint, options=options)
    assert json.loads((tmp_path / "plan.json").read_text())["revisions"][: len(written)] == written
    assert 0.9 * 20 <= spent + clock.now - 1_000.0 <= 1.1 * 20


def test_a_resumed_run_keeps_its_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    takes(0.5, monkeypatch)
    monkeypatch.setattr(Plan, "is_revisable", lambda *_: False)  # real steps take no time
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
    assert plan["revisions"] == [[0, done.step]]
