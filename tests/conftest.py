"""A small corpus that tests make themselves, and the command line as a function."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from redraft.data.example import Example
from redraft.data.pairs import write_pairs

# two workers and what they start share the cores: threads that spin would slow each other down
os.environ.setdefault("OMP_NUM_THREADS", "1")

Run = Callable[..., subprocess.CompletedProcess[str]]


def sentence(verb: str, count: int, name: str) -> Example:
    """A pair such as "sum the first 2 items of cards" → sum(cards[:2])."""
    x = f"{verb} the first {count} items of {name}"
    return Example({"text": x}, f"{verb}({name}[:{count}])", {"verb": verb})


@pytest.fixture
def examples() -> list[Example]:
    """Sixty pairs, every output different."""
    verbs, names = ("sum", "max", "sorted"), ("cards", "players", "minions", "decks")
    return [
        sentence(verb, count, name) for verb in verbs for count in range(1, 6) for name in names
    ]


@pytest.fixture
def pairs_file(tmp_path: Path, examples: Sequence[Example]) -> Path:
    """The same pairs as a file."""
    path = tmp_path / "pairs.jsonl"
    write_pairs(examples, path)
    return path


@pytest.fixture
def redraft(tmp_path: Path) -> Run:
    """Runs the real command in a fresh process and an empty folder."""
    folder = tmp_path / "cwd"
    folder.mkdir()

    def run(*arguments: object, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from redraft.cli.app import main; main()"]
        return subprocess.run(
            [*command, *map(str, arguments)],
            capture_output=True,
            input=stdin,
            text=True,
            cwd=folder,
            check=False,
        )

    return run
