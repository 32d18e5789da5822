"""Training in two real processes equals training in one."""

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
import torch

from redraft.editing.neural import NeuralEditor
from redraft.errors import DistributedError, TrainingInterrupted
from redraft.models.autoencoder import NoisyAutoencoder
from redraft.models.config import AutoencoderConfig
from redraft.retrieval.bow import BowRetriever
from redraft.retrieval.encoder import DenseEncoder
from redraft.text.token_encoder import TokenEncoder, TokenEncoderConfig
from redraft.training.budget import within_budget
from redraft.training.editor_config import EditorConfig
from redraft.training.editor_task import EditorTask, train_editor
from redraft.training.process_group import (
    SINGLE_PROCESS,
    ProcessGroup,
    Ranks,
    check_alike,
    connected,
)
from redraft.training.progress import Report
from redraft.training.prototype_sampling import TopPrototypes, everywhere
from redraft.training.retriever_task import RetrieverTask, task_target
from redraft.training.schedule import RunOptions, TrainingConfig
from redraft.training.trainer import StepLoss, Task
from redraft.types import Example
from tests.greetings import NAMES
from tests.training.test_editor_task import CONFIG, NextOne, task
from tests.training.test_trainer import LineTask
from tests.workers import Team, environment, rendezvous_store, team

LONGER = [
    Example({"text": f"greet {name}" + " kindly" * (at % 5)}, f'print("hi {name}"' + ", 1" * at)
    for at, name in enumerate(NAMES)
]
"""Outputs of very different lengths: the workers' shares have other numbers of tokens."""


@pytest.fixture(scope="module")
def two() -> Iterator[Team]:
    with team(2) as found:
        yield found


NO_NOISE = cast(torch.Generator, None)
"""No two workers have their noise and their dropout in common: without a generator is none."""


def editor_task() -> Task:
    torch.manual_seed(0)
    found = task(NextOne(LONGER), LONGER)
    found.batches(16, seed=0)
    return found


def retriever_task() -> Task:
    torch.manual_seed(0)
    texts = [text for each in LONGER for text in (each.x["text"], each.y)]
    encoding = TokenEncoder.learn(texts, TokenEncoderConfig(min_count=1, pieces=0))
    config = AutoencoderConfig(word_width=8, width=8, embedding_dim=8, decoder_layers=1)
    network = NoisyAutoencoder(len(encoding.vocabulary), 1, config)
    encoder = DenseEncoder(network.encoder, encoding, ["text"])
    return RetrieverTask(network, encoder, LONGER, target=task_target, validate=lambda _: {})


TASKS = {"editor": editor_task, "retriever": retriever_task}


def gradients(workers: ProcessGroup, kind: str, rows: list[int]) -> dict[str, Any]:
    """Return the gradients, counts and loss of one batch, as in the training loop."""
    found = TASKS[kind]()
    own = workers.shard(rows)
    cost = found.step(own or rows[:1], generator=NO_NOISE)
    cost.loss.backward()  # type: ignore[no-untyped-call]
    empty = replace(cost, token_count=0, tokens=0, padded=0)
    cost = workers.all_reduce(found.network, cost if own else empty)
    named = found.network.named_parameters()
    return {
        "gradients": {n: None if p.grad is None else p.grad.numpy() for n, p in named},
        "counts": (cost.token_count, cost.tokens),
        "loss": cost.metrics["loss"],
        "rows": len(own),
    }


@pytest.mark.parametrize("count", [16, 7, 1])
@pytest.mark.parametrize("kind", TASKS)
def test_two_workers_have_the_gradients_of_one(two: Team, kind: str, count: int) -> None:
    rows = list(range(len(LONGER)))[:: len(LONGER) // count][:count]
    expected = gradients(SINGLE_PROCESS, kind, rows)
    answers = two.run(gradients, kind, rows)
    assert [each["rows"] for each in answers] == [count - count // 2, count // 2]
    for each in answers:
        assert each["loss"] == pytest.approx(expected["loss"], abs=1e-5)
        assert each["counts"] == expected["counts"]
        for name, gradient in expected["gradients"].items():
            found = each["gradients"][name]
            assert (found is None) == (gradient is None), name
            assert gradient is None or abs(found - gradient).max() <= 1e-5, name
    largest = max(abs(g).max() for g in expected["gradients"].values() if g is not None)
    assert largest > 1e-2  # or the tolerance would say nothing


STILL = replace(
    CONFIG,
    network=replace(CONFIG.network, dropout=0.0),
    training=replace(CONFIG.training, steps=12, ema_decay=0.5, batch_size=16),
)


def trained(
    workers: ProcessGroup, folder: Path, config: EditorConfig = STILL, stop: int = 0
) -> dict[str, Any]:
    """A training in a folder of each worker's own; the last worker may be told to stop."""
    asked, heard = [], []

    def validate(editor: NeuralEditor) -> dict[str, float]:
        asked.append(editor)
        weights = next(editor.network.parameters()).detach()
        return {"score": weights.sum().item()}  # of no meaning, and the same after a stop

    def interrupt(self: EditorTask, *arguments: Any, **named: Any) -> StepLoss:
        steps.append(1)
        if len(steps) == stop and workers.rank == workers.size - 1:
            os.kill(os.getpid(), signal.SIGTERM if workers.size > 1 else signal.SIGINT)
        return step(self, *arguments, **named)

    def hear(report: Report) -> None:
        heard.append(report.shown["loss"])

    steps: list[int] = []
    step = EditorTask.step
    source = TopPrototypes(everywhere(BowRetriever.build(LONGER), LONGER), top=3)
    own = folder / str(workers.rank)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EditorTask, "step", interrupt)
        editor = train_editor(
            LONGER,
            source,
            config,
            validate=validate,
            folder=own,
            options=RunOptions(on_step=hear, workers=workers),
        )
    weights = {name: tensor.numpy() for name, tensor in editor.network.state_dict().items()}
    return {"weights": weights, "asked": len(asked), "losses": heard, "wrote": own.exists()}


def farthest(one: dict[str, Any], other: dict[str, Any], *, without: str = "none") -> float:
    names = [name for name in one if not name.endswith(without)]
    return max(float(abs(one[name] - other[name]).max()) for name in names)


IDLE = "key_value.bias"
"""No key's bias changes what is attended to: its gradient is rounding, and Adam makes it a step."""


def test_two_workers_end_with_the_weights_of_one_and_the_first_alone_writes(
    two: Team, tmp_path: Path
) -> None:
    alone = trained(SINGLE_PROCESS, tmp_path / "alone")
    first, second = two.run(trained, tmp_path / "two")
    assert farthest(first["weights"], alone["weights"], without=IDLE) < 1e-4
    assert farthest(first["weights"], second["weights"]) == 0
    assert first["losses"] == pytest.approx(alone["losses"], abs=1e-5)
    assert (first["asked"], second["asked"]) == (8, 0)
    assert second["losses"] == []
    assert (first["wrote"], second["wrote"]) == (True, False)


def test_a_signal_to_one_worker_stops_all_at_one_step_and_they_resume(
    two: Team, tmp_path: Path
) -> None:
    config = replace(STILL, network=replace(STILL.network, dropout=0.2))
    whole, _ = two.run(trained, tmp_path / "whole", config)
    for stopped in two.run(trained, tmp_path / "stopped", config, 5):
        assert stopped.startswith("TrainingInterrupted: stopped at step 5 of 12")
    assert not (tmp_path / "stopped" / "1").exists()
    for each in two.run(trained, tmp_path / "stopped", config):
        assert farthest(each["weights"], whole["weights"]) == 0  # also of dropout's choices


def test_one_process_resumes_a_run_of_two(two: Team, tmp_path: Path) -> None:
    whole = trained(SINGLE_PROCESS, tmp_path / "whole")
    two.run(trained, tmp_path / "stopped", STILL, 5)
    alone = trained(SINGLE_PROCESS, tmp_path / "stopped")
    assert farthest(alone["weights"], whole["weights"], without=IDLE) < 1e-4
    with pytest.raises(TrainingInterrupted):
        trained(SINGLE_PROCESS, tmp_path / "again", STILL, 5)


def planned(workers: ProcessGroup, folder: Path) -> int:
    config = TrainingConfig(steps=10**6, batch_size=4)
    path = folder / str(workers.rank) / "plan.json"
    options = RunOptions(budget=0.2, workers=workers)
    return within_budget(LineTask(), config, options, path=path).steps(0)


def test_a_budget_is_planned_once_for_all(two: Team, tmp_path: Path) -> None:
    first, second = two.run(planned, tmp_path)
    assert 1 <= first == second < 10**6
    assert two.run(planned, tmp_path) == [first, first]
    assert not (tmp_path / "1").exists()


def alike(workers: ProcessGroup, same: bool) -> str:
    check_alike(workers, "same" if same else str(workers.rank))
    return "alike"


def test_workers_with_different_pairs_or_settings_are_rejected(two: Team) -> None:
    assert two.run(alike, True) == ["alike"] * 2
    for answer in two.run(alike, False):
        assert answer.startswith("DistributedError: the workers were given different pairs")


def values(workers: ProcessGroup) -> list[Any]:
    looked: list[int] = []

    def look() -> dict[str, float]:
        looked.append(workers.rank)
        return {"a": float("-inf"), "b": 0.1}

    tensors = workers.broadcast_tensors(lambda: {"t": torch.arange(3), "empty": torch.zeros(0)})
    flags = [workers.any(workers.rank == 1), workers.any(False)]
    return [workers.broadcast(look), looked, tensors["t"].tolist(), flags]


def test_the_main_worker_broadcasts_its_values(two: Team) -> None:
    told = {"a": float("-inf"), "b": 0.1}
    first, second = two.run(values)
    assert first == [told, [0], [0, 1, 2], [True, False]]
    assert second == [told, [], [0, 1, 2], [True, False]]


def test_without_a_launcher_there_is_a_single_process() -> None:
    for variables in ({}, {"WORLD_SIZE": "1", "RANK": "0"}):
        with connected(variables) as workers:
            assert workers is SINGLE_PROCESS
    assert SINGLE_PROCESS.shard([3, 1, 2]) == [3, 1, 2]


@pytest.mark.parametrize("wrong", [{"RANK": "first"}, {"WORLD_SIZE": ""}])
def test_a_rank_that_is_no_number_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(DistributedError, match="expected numbers; start workers with torchrun"):
        Ranks.from_environment({"RANK": "0", "WORLD_SIZE": "2", **wrong})


def test_a_worker_that_waits_in_vain_says_so_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    store = rendezvous_store()
    variables = environment(store, rank=1, size=2)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with (
        pytest.raises(DistributedError, match=r"^worker 1 of 2 cannot reach the others") as caught,
        connected(variables, "cpu", timeout=timedelta(seconds=1)),
    ):
        pass
    assert "\n" not in str(caught.value)


def test_a_build_without_gloo_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributed, "is_backend_available", lambda _: False)
    with (
        pytest.raises(DistributedError, match="built without gloo"),
        connected({"RANK": "0", "WORLD_SIZE": "2"}, "cpu"),
    ):
        pass
