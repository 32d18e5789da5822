"""A small corpus that tests make themselves, and the command line as a function."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import settings

from redraft.data.pairs import write_pairs
from redraft.types import Example
from tests.warm import WarmProcess, warm_process

# two workers and what they start share the cores: threads that spin would slow each other down
os.environ.setdefault("OMP_NUM_THREADS", "1")

# a shell starts background jobs with SIGINT ignored, and the processes under test would inherit it
signal.signal(signal.SIGINT, signal.default_int_handler)

# where CI is set Hypothesis tries the same examples each time, which hides what others would find
settings.register_profile("fresh", derandomize=False, database=None, print_blob=True)
if "REDRAFT_FRESH" in os.environ:
    settings.load_profile("fresh")

Run = Callable[..., subprocess.CompletedProcess[str]]


def sentence(verb: str, count: int, name: str) -> Example:
    """A pair such as "sum the first 2 items of cards" → sum(cards[:2])."""
    x = f"{verb} the first {count} items of {name}"
    return Example({"text": x}, f"{verb}({name}[:{count}])", {"verb": verb})


def sixty_examples() -> list[Example]:
    """Return sixty pairs, every output different."""
    verbs, names = ("sum", "max", "sorted"), ("cards", "players", "minions", "decks")
    return [
        sentence(verb, count, name) for verb in verbs for count in range(1, 6) for name in names
    ]


@pytest.fixture
def examples() -> list[Example]:
    """Return the sixty pairs."""
    return sixty_examples()


@pytest.fixture
def pairs_file(tmp_path: Path, examples: Sequence[Example]) -> Path:
    """The same pairs as a file."""
    path = tmp_path / "pairs.jsonl"
    write_pairs(examples, path)
    return path


@pytest.fixture(scope="session")
def warm() -> Iterator[WarmProcess]:
    """Start the process that those of all commands are forked from."""
    with warm_process() as process:
        yield process


@pytest.fixture
def redraft(tmp_path: Path, warm: WarmProcess) -> Run:
    """Return a function that runs the real command in a process and an empty folder of its own."""
    folder = tmp_path / "cwd"
    folder.mkdir()

    def run(*arguments: object, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return warm.run([*map(str, arguments)], cwd=folder, stdin=stdin)

    return run
