"""A command that is forked from a warm process does what one in a fresh process does."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.warm import MAIN, WarmProcess


@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [
        (["--version"], None),
        (["nonsense"], None),
        (["check", "pairs.jsonl"], None),
        (["check", "-"], '{"x": "a", "y": "b"}\n{\n'),
    ],
)
def test_output_and_exit_code_are_those_of_a_fresh_process(
    arguments: list[str], stdin: str | None, tmp_path: Path, warm: WarmProcess
) -> None:
    (tmp_path / "pairs.jsonl").write_text('{"x": "a", "y": "b"}\n{"x": "c", "y": "d"}\n')
    fresh = subprocess.run(
        [sys.executable, "-c", MAIN, *arguments],
        capture_output=True,
        input=stdin or "",
        text=True,
        cwd=tmp_path,
        check=False,
    )
    forked = warm.run(arguments, cwd=tmp_path, stdin=stdin)
    assert (forked.stdout, forked.stderr, forked.returncode) == (
        fresh.stdout,
        fresh.stderr,
        fresh.returncode,
    )
    assert forked.stdout or forked.stderr


def test_a_forked_process_has_the_environment_of_now(
    tmp_path: Path, warm: WarmProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {}
    for columns in ("40", "120"):
        monkeypatch.setenv("COLUMNS", columns)
        said[columns] = warm.run(["fit", "--help"], cwd=tmp_path).stdout
    assert max(map(len, said["40"].splitlines())) <= 40
    assert max(map(len, said["120"].splitlines())) > 40


def test_a_variable_that_only_a_fresh_interpreter_reads_is_heeded(
    tmp_path: Path, warm: WarmProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os; os._exit(7)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert warm.run(["--version"], cwd=tmp_path).returncode == 7
