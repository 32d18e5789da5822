"""`torchrun … -m redraft fit`: real workers, killed and stopped, end as one process does."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file

from redraft.data.pairs import write_pairs
from redraft.storage.artifact import open_artifact
from tests.conftest import Run, sixty_examples

STEPS = 120
CONFIG = f"""
[retriever.network]
word_width = 16
width = 8
embedding_dim = 16
decoder_layers = 1
[retriever.training]
steps = {STEPS}
batch_size = 8
[editor.network]
word_width = 16
width = 16
decoder_layers = 1
dropout = 0.0
word_dropout = 0.0
[editor.decoding]
max_length = 12
[editor.training]
steps = {STEPS}
batch_size = 16
"""
PARTS = {
    "retriever": ("--retriever", "task", "--editor", "verbatim"),
    "editor": ("--retriever", "lexical", "--editor", "neural"),
}
TRAINED = {"retriever": "retriever/encoder", "editor": "editor"}
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--max-restarts", "3", "--standalone"]
FIT = str(Path(__file__).parent / "fit_saving_often.py")
PATIENCE = 600


@dataclass(frozen=True)
class Whole:
    """A finished run of two workers: the file of its pairs, and its messages."""

    pairs: Path
    said: str


def arguments(part: str, pairs: Path, out: str) -> list[str]:
    config = pairs.parent / "config.toml"
    config.write_text(CONFIG)
    given = ["fit", pairs, "-o", pairs.parent / out, *PARTS[part], "--config", config]
    return [str(each) for each in given]


@contextmanager
def launched(fit: list[str], workers: int = 2) -> Iterator["subprocess.Popen[str]"]:
    command = [*TORCHRUN, "--nproc-per-node", str(workers), FIT, *fit]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()


def finish(process: "subprocess.Popen[str]") -> tuple[list[str], str]:
    """The lines on stdout and what stood on stderr, of a run that went well."""
    out, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, told
    return out.splitlines(), told


def worker(process: "subprocess.Popen[str]", rank: int) -> int:
    """The process number of one of the workers."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            variables = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue  # it has ended meanwhile
        if parent == process.pid and f"RANK={rank}".encode() in variables:
            return int(folder.name)
    raise AssertionError(f"no worker {rank}")


def read_until(process: "subprocess.Popen[str]", step: int) -> str:
    """What is told until a step of the training is."""
    assert process.stderr is not None
    told = ""
    for line in process.stderr:
        told += line
        found = re.search(r"step (\d+) of", line)
        if found and int(found[1]) >= step:
            return told
    raise AssertionError(told)


def last_loss(told: str) -> float:
    """The loss of the last step; there is no other after it."""
    [found] = re.findall(rf"step {STEPS} of {STEPS}  done  loss ([\d.]+)", told)
    return float(found)


def weights(folder: Path, part: str) -> dict[str, NDArray[np.float32]]:
    return load_file(open_artifact(folder).path(f"{TRAINED[part]}/weights.safetensors"))


def farthest(one: dict[str, NDArray[np.float32]], other: dict[str, NDArray[np.float32]]) -> float:
    return max(float(abs(one[name] - other[name]).max()) for name in one)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, part: str) -> Whole:
    """Fit the part of a model with two workers that nobody disturbs."""
    pairs = tmp_path_factory.mktemp(part) / "pairs.jsonl"
    write_pairs(sixty_examples(), pairs)
    with launched(arguments(part, pairs, "whole")) as process:
        out, said = finish(process)
    assert [json.loads(line)["examples"] for line in out] == [60]  # one worker speaks
    assert said.count(f"{part}: training on") == 1
    return Whole(pairs, said)


@pytest.mark.parametrize(("part", "rank"), [("retriever", 1), ("editor", 0)], scope="module")
def test_after_sigkill_of_a_worker_the_run_ends_by_itself_as_if_nothing_had_been(
    part: str, rank: int, whole: Whole
) -> None:
    with launched(arguments(part, whole.pairs, "killed")) as process:
        before = read_until(process, STEPS // 20)  # early: it must not end before the kill
        os.kill(worker(process, rank), signal.SIGKILL)
        out, after = finish(process)
    assert len(out) == 1
    assert before.count(f"{part}: training on") == after.count(f"{part}: training on") == 1
    survivor = 1 - rank
    # torchrun may end the survivor before that notices
    errors = re.findall(r"^error: (.*)", after, re.MULTILINE)
    assert all(error.startswith(f"worker {survivor} of 2 has lost another") for error in errors)
    assert "Traceback" not in after
    steps = [int(step) for step in re.findall(r"step (\d+) of", after.partition("training on")[2])]
    assert steps[0] > 1  # it did not begin anew
    assert last_loss(after) == last_loss(whole.said)
    folder = whole.pairs.parent
    found, expected = (weights(folder / name, part) for name in ("killed", "whole"))
    assert farthest(found, expected) == 0
    assert not (folder / "killed.training").exists()


@pytest.mark.parametrize("part", ["editor"], scope="module")
def test_two_workers_fit_the_editor_that_one_fits(part: str, whole: Whole, redraft: Run) -> None:
    alone = redraft(*arguments(part, whole.pairs, "alone"))
    assert alone.returncode == 0, alone.stderr
    assert last_loss(whole.said) == pytest.approx(last_loss(alone.stderr), abs=2e-3)
    pages = [open_artifact(whole.pairs.parent / name).files for name in ("alone", "whole")]
    assert set(pages[0]) == set(pages[1])  # its cache and confidence too


def test_a_signal_stops_all_workers_and_two_workers_or_one_process_can_go_on(
    pairs_file: Path, redraft: Run
) -> None:
    given = arguments("editor", pairs_file, "model")
    stopped = 0
    for number in (signal.SIGINT, signal.SIGTERM):
        with launched(given) as process:
            read_until(process, stopped + STEPS // 6)
            pids = [worker(process, rank) for rank in range(2)]
            process.send_signal(number)
            _, said = process.communicate(timeout=PATIENCE)
        stops = re.findall(r"^stopped at step (\d+) of .*; the same command", said, re.MULTILINE)
        assert len(stops) == 1, said
        assert stopped < int(stops[0]) < STEPS
        stopped = int(stops[0])
        deadline = time.monotonic() + 10
        while any(Path(f"/proc/{pid}").exists() for pid in pids):
            assert time.monotonic() < deadline
            time.sleep(0.1)
    done = redraft(*given)
    assert done.returncode == 0, done.stderr
    steps = [int(step) for step in re.findall(r"step (\d+) of", done.stderr)]
    assert (steps[0] > stopped, steps[-1]) == (True, STEPS)


def test_of_two_machines_that_share_no_disk_one_holds_the_model_after_a_kill(
    pairs_file: Path,
) -> None:
    """Each with a launcher and a folder of its own, on this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{free.getsockname()[1]}"
    meet = ["--rdzv-backend", "c10d", "--rdzv-endpoint", place, "--rdzv-id", "test"]
    given = arguments("editor", pairs_file, "model")
    given[given.index("-o") + 1] = "model"  # where each of them stands
    command = [*TORCHRUN[:3], "--max-restarts", "3", "--nnodes", "2", *meet, FIT]
    folders = [pairs_file.parent / name for name in ("one", "other")]
    with ExitStack() as stack:
        machines = {
            folder: stack.enter_context(launched_in(folder, [*command, *given]))
            for folder in folders
        }
        first = wait_for_step(folders, STEPS // 20)  # long before it ends
        [second] = set(folders) - {first}
        os.kill(worker(machines[second], 1), signal.SIGKILL)
        for folder, process in machines.items():
            assert process.wait(PATIENCE) == 0, (folder / "told").read_text()
    told = (first / "told").read_text()
    assert last_loss(told) > 0
    assert (first / "model" / "manifest.json").exists()
    assert sorted(path.name for path in second.iterdir()) == ["told"]


@contextmanager
def launched_in(folder: Path, command: list[str]) -> Iterator["subprocess.Popen[str]"]:
    """A launcher that runs in a folder of its own and speaks to a file there."""
    folder.mkdir()
    with (
        (folder / "told").open("w") as told,
        subprocess.Popen(command, cwd=folder, stderr=told, text=True) as process,
    ):
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()


def wait_for_step(folders: list[Path], step: int) -> Path:
    """The folder of the machine that speaks, once it told of this step."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for folder in folders:
            told = re.findall(r"step (\d+) of", (folder / "told").read_text())
            if told and int(told[-1]) >= step:
                return folder
        time.sleep(0.05)
    raise AssertionError([(folder / "told").read_text() for folder in folders])


def test_a_mistake_is_told_in_a_line_and_leaves_nothing_behind(pairs_file: Path) -> None:
    given = [*arguments("editor", pairs_file, "model"), "--device", "abacus"]
    command = [*TORCHRUN, "--max-restarts", "0", "--nproc-per-node", "2", "-m", "redraft", *given]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode != 0
    assert "error: no device 'abacus' here" in done.stderr
    assert "redraft/training" not in done.stderr  # no traceback but torchrun's own
    assert not (pairs_file.parent / "model.training").exists()
