"""A real training process, killed and resumed, ends with the weights of one that was not."""

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from redraft import RetrieveAndEdit
from redraft.data.pairs import write_pairs
from redraft.storage.artifact import open_artifact
from tests.conftest import Run
from tests.greetings import NAMES, greeting

CONFIG = """
[retriever.network]
word_width = 16
width = 8
embedding_dim = 16
decoder_layers = 1
dropout = 0.1
word_dropout = 0.1
[retriever.training]
steps = 60
batch_size = 8
[editor.network]
word_width = 16
width = 16
decoder_layers = 1
[editor.decoding]
max_length = 12
[editor.training]
steps = 24
batch_size = 16
"""
RETRIEVER = ("--retriever", "task", "--editor", "verbatim")
EDITOR = ("--retriever", "lexical", "--editor", "neural")
SAVING_EVERY_STEP = """
from redraft.cli.app import main
from redraft.training import trainer

trainer.SAVE_SECONDS = 0.0
main()
"""
COMMAND = [sys.executable, "-c", SAVING_EVERY_STEP]


def fit_arguments(folder: Path, pairs: Path, parts: tuple[str, ...] = RETRIEVER) -> list[str]:
    config = folder.parent / "config.toml"
    config.write_text(CONFIG)
    arguments = ["fit", pairs, "-o", folder, *parts, "--config", config]
    return [str(argument) for argument in arguments]


def kill_after(lines: int, number: int, arguments: list[str]) -> int:
    """Start a training and send it a signal once it has reported this many scores."""
    with subprocess.Popen([*COMMAND, *arguments], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        seen = 0
        while seen < lines:
            seen += "step" in process.stderr.readline()
        process.send_signal(number)
        process.stderr.read()
    return process.returncode


@pytest.mark.parametrize(
    ("parts", "trained"),
    [(RETRIEVER, "retriever/encoder"), (EDITOR, "editor")],
    ids=["retriever", "editor"],
)
def test_sigkill_at_random_moments_changes_nothing(
    parts: tuple[str, ...], trained: str, tmp_path: Path, redraft: Run, pairs_file: Path
) -> None:
    def weights(folder: Path) -> bytes:
        return open_artifact(folder).path(f"{trained}/weights.safetensors").read_bytes()

    done = redraft(*fit_arguments(tmp_path / "whole", pairs_file, parts))
    assert done.returncode == 0, done.stderr
    arguments = fit_arguments(tmp_path / "killed", pairs_file, parts)
    # the moment is random to the microsecond: the signal races with the steps
    for lines in random.sample(range(2, 5), 2):
        assert kill_after(lines, signal.SIGKILL, arguments) == -signal.SIGKILL
        assert not (tmp_path / "killed" / "manifest.json").exists()
        assert (tmp_path / "killed.training").exists()
    done = redraft(*arguments)
    assert done.returncode == 0, done.stderr
    assert weights(tmp_path / "killed") == weights(tmp_path / "whole")
    assert not (tmp_path / "killed.training").exists()


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path: Path, redraft: Run, pairs_file: Path) -> None:
    arguments = fit_arguments(tmp_path / "model", pairs_file)
    with subprocess.Popen([*COMMAND, *arguments], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        process.stderr.readline()  # the settings
        process.stderr.readline()
        process.send_signal(signal.SIGINT)
        last = process.stderr.read().splitlines()[-1]
    assert process.returncode == 130
    assert last.startswith("stopped at step ")
    assert last.endswith(" of 60; the same command goes on from there")
    assert redraft(*arguments).returncode == 0
    assert (tmp_path / "model" / "manifest.json").exists()


def test_a_kill_while_the_network_is_trained_leaves_the_first_model(tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.jsonl"
    write_pairs([greeting(one + other) for one in NAMES[:15] for other in NAMES[:15]], pairs)
    arguments = ["fit", str(pairs), "-o", str(tmp_path / "model")]
    with subprocess.Popen([*COMMAND, *arguments], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        assert any("ready to use; training goes on" in line for line in lines)
        assert any("step" in line for line in lines)
        process.kill()
    model = RetrieveAndEdit.load(tmp_path / "model")
    assert model.predict_one("greet Nobody").output == 'print("hello Nobody")'
    assert len(model.retriever.examples) == 225
