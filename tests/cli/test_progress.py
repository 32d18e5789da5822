"""Progress on terminals of any width."""

import io
import re

import pytest
from rich.console import Console

from redraft.cli import _progress
from redraft.training.progress import Report


@pytest.mark.parametrize("width", [60, 80, 120])
def test_bar_step_and_time_left_survive_in_a_narrow_terminal(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=True, color_system=None)
    monkeypatch.setattr(_progress, "stderr", lambda: console)
    metrics = {"loss": 1.2345, "bound": 2.5, "dev_accuracy": 61.25}
    with _progress.watched("training") as on_step:
        on_step(Report(1_200, 8_000, metrics, 12_345.6, 0.12, seconds=60.0, core_seconds=60.0))
    lines = re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]", "", stream.getvalue()).split("\n")
    shown = [part for line in lines for part in line.split("\r") if "1200/8000" in part]
    assert shown
    assert all(len(line) <= width for line in shown)
    assert all("1200/8000 6 minutes left" in line and "━" in line for line in shown)
