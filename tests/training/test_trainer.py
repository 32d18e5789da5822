"""The training loop: resumption, checkpoint selection and logging."""

import json
import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from redraft.errors import ModelError, TrainingInterrupted
from redraft.training.checkpoint import Checkpoint
from redraft.training.progress import Report, last_report
from redraft.training.schedule import RunOptions, TrainingConfig
from redraft.training.trainer import EARLIEST_STOP, REACH, StepLoss, Task, train

CONFIG = TrainingConfig(steps=24, batch_size=4, learning_rate=0.05)


class LineTask(Task):
    """Fits a line through noisy points; its dev scores can be dictated."""

    def __init__(self, scores: Sequence[float] | None = None) -> None:
        torch.manual_seed(1)
        self.network = nn.Linear(1, 1)
        self.points = torch.linspace(-1, 1, 10)[:, None]
        self.scores = list(scores) if scores is not None else None
        self.seen: list[list[int]] = []
        self.stop_at: int | None = None

    def batches(self, batch_size: int, *, seed: int) -> list[list[int]]:
        order = torch.randperm(10, generator=torch.Generator().manual_seed(seed)).tolist()
        return [order[start : start + batch_size] for start in range(0, 10, batch_size)]

    def step(self, rows: Sequence[int], *, generator: torch.Generator) -> StepLoss:
        self.seen.append(list(rows))
        if self.stop_at == len(self.seen):
            os.kill(os.getpid(), signal.SIGINT)
        x = self.points[list(rows)]
        noise = torch.randn(x.shape, generator=generator)
        loss = (self.network(x) - 2 * x + 0.1 * noise).square().mean()
        return StepLoss(
            loss, {"loss": loss.item()}, token_count=len(rows), tokens=len(rows), padded=1
        )

    def evaluate(self) -> dict[str, float]:
        if self.scores is not None:
            return {"score": self.scores.pop(0)}
        return {"score": -abs(weights(self)[0] - 2)}


def weights(task: Task) -> list[float]:
    return [value for tensor in task.network.parameters() for value in tensor.flatten().tolist()]


def checkpoint(folder: Path, fingerprint: str = "f") -> Checkpoint:
    return Checkpoint(folder / "checkpoint", fingerprint)


@pytest.mark.parametrize("average", [0.0, 0.9])
def test_a_run_stopped_anywhere_and_resumed_ends_with_the_same_weights(
    tmp_path: Path, average: float
) -> None:
    config = replace(CONFIG, ema_decay=average)
    whole = LineTask()
    train(whole, config, checkpoint=checkpoint(tmp_path / "whole"))
    for stop in (1, 7, 12, 23):
        first = LineTask()
        first.stop_at = stop
        with pytest.raises(TrainingInterrupted, match=f"stopped at step {stop} of 24; the same"):
            train(first, config, checkpoint=checkpoint(tmp_path / str(stop)))
        second = LineTask()
        train(second, config, checkpoint=checkpoint(tmp_path / str(stop)))
        assert weights(second) == weights(whole)
        assert first.seen + second.seen == whole.seen


def test_the_ema_horizon_is_limited_to_a_share_of_a_short_run(tmp_path: Path) -> None:
    at_most = 1 - 1 / (REACH * CONFIG.steps)
    ended = []
    for average in (0.998, at_most, 0.5, 0.0):
        task, config = LineTask(), replace(CONFIG, ema_decay=average)
        train(task, config, checkpoint=checkpoint(tmp_path / str(average)))
        ended.append(weights(task))
    assert ended[0] == ended[1]
    assert len(set(map(tuple, ended))) == 3


def test_a_finished_run_is_not_run_again(tmp_path: Path) -> None:
    first, second = LineTask(), LineTask()
    train(first, CONFIG, checkpoint=checkpoint(tmp_path))
    train(second, CONFIG, checkpoint=checkpoint(tmp_path))
    assert second.seen == []
    assert weights(second) == weights(first)


def test_the_network_ends_with_the_weights_that_scored_best(tmp_path: Path) -> None:
    early = LineTask(scores=[0.1, 0.2, 1.0])
    train(early, replace(CONFIG, steps=3), checkpoint=checkpoint(tmp_path / "early"))
    task = LineTask(scores=[1.0, 0.5, 0.9, 0.2, 0.1, 0.3, 0.9, 0.8])
    progress = train(task, CONFIG, checkpoint=checkpoint(tmp_path / "all"))
    assert (progress.best_step, progress.best_score) == (3, 1.0)
    assert weights(task) == weights(early)


LONG = replace(CONFIG, steps=2 * EARLIEST_STOP)  # evaluated every 50 steps


def test_a_run_stops_once_dev_scores_have_stopped_improving(tmp_path: Path) -> None:
    task = LineTask(scores=[0.1, 1.0, 0.5, 0.9, 0.2, 0.1, 0.3, 0.9])
    progress = train(task, LONG, checkpoint=checkpoint(tmp_path))
    assert (progress.best_step, progress.step) == (100, 250)
    again = LineTask(scores=[])
    assert train(again, LONG, checkpoint=checkpoint(tmp_path)).step == 250
    assert weights(again) == weights(task)


def test_a_short_run_does_not_stop_early(tmp_path: Path) -> None:
    task = LineTask(scores=[1.0, *[0.5] * 7])
    assert train(task, CONFIG, checkpoint=checkpoint(tmp_path)).step == 24


def test_a_run_with_a_budget_uses_it_up(tmp_path: Path) -> None:
    task = LineTask(scores=[1.0, *[0.5] * 30])
    options = RunOptions(budget=600.0)
    assert train(task, LONG, checkpoint=checkpoint(tmp_path), options=options).step == LONG.steps


def test_every_epoch_sees_every_row_once_in_another_order(tmp_path: Path) -> None:
    task = LineTask()
    train(task, CONFIG, checkpoint=checkpoint(tmp_path))
    epochs = [
        [row for batch in task.seen[start : start + 3] for row in batch]
        for start in range(0, 24, 3)
    ]
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 8


def test_another_seed_gives_another_run(tmp_path: Path) -> None:
    first, second = LineTask(), LineTask()
    train(first, CONFIG, checkpoint=checkpoint(tmp_path / "a"))
    train(second, CONFIG, checkpoint=checkpoint(tmp_path / "b"), options=RunOptions(seed=1))
    assert first.seen != second.seen


def test_a_checkpoint_of_other_pairs_or_settings_is_rejected(tmp_path: Path) -> None:
    train(LineTask(), replace(CONFIG, steps=2), checkpoint=checkpoint(tmp_path, "one"))
    with pytest.raises(
        ModelError, match="other pairs or settings; delete the folder to start over"
    ):
        train(LineTask(), CONFIG, checkpoint=checkpoint(tmp_path, "two"))


def test_the_log_has_a_line_for_every_evaluation_and_none_twice(tmp_path: Path) -> None:
    first = LineTask()
    first.stop_at = 15
    with pytest.raises(TrainingInterrupted):
        train(first, CONFIG, checkpoint=checkpoint(tmp_path))
    with (tmp_path / "log.jsonl").open("a") as stream:  # as a run killed after its last save
        stream.write('{"step": 18}\n{"step": 2')
    train(LineTask(), CONFIG, checkpoint=checkpoint(tmp_path))
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [3, 6, 9, 12, 15, 18, 21, 24]
    for name in ("seconds", "core_seconds"):  # of both parts together
        times = [row[name] for row in rows]
        assert times == sorted(times)
    assert last_report(tmp_path) == Report(**rows[-1])
    assert {"loss", "score"} <= set(rows[2]["shown"])


def test_the_callback_is_called_after_every_step(tmp_path: Path) -> None:
    heard: list[Report] = []
    train(
        LineTask(),
        CONFIG,
        checkpoint=checkpoint(tmp_path),
        options=RunOptions(on_step=heard.append),
    )
    assert [report.step for report in heard] == list(range(1, 25))
    assert 0 < heard[-1].padding < 1
    assert heard[-1].tokens_per_second > 0


@pytest.mark.parametrize("decay", [False, True])
def test_the_learning_rate_is_constant_or_warms_up_and_decays(decay: bool, tmp_path: Path) -> None:
    config = replace(CONFIG, steps=24, lr_decay=decay, learning_rate=1.0)
    rates: list[float] = []
    task = LineTask()
    step = torch.optim.Adam.step

    def spy(self: torch.optim.Adam, *arguments: object) -> object:
        rates.append(self.param_groups[0]["lr"])
        return step(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim.Adam, "step", spy)
        train(task, config, checkpoint=checkpoint(tmp_path))
    if not decay:
        assert rates == [1.0] * 24
    else:
        warmup = [1 / 4, 2 / 4, 3 / 4, *[1.0] * 21]  # a sixth of the steps
        expected = [factor * (1 - step / 24) for step, factor in enumerate(warmup)]
        assert rates == pytest.approx(expected)
