"""The memory and the time that an index of many functions takes, in a process of its own."""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from experiments.languages.archives import read_sources
from experiments.lib.results import Row
from redraft.completion.engine import CompletionEngine
from redraft.completion.languages.registry import language_named
from redraft.completion.project import Project, empty_model, index_project
from redraft.types import Example


def cost_row(language: str, archives: Sequence[Path], split: str, seed: int) -> Row:
    """Return the cost of an index of the functions of all archives, per 10,000 functions."""
    command = [sys.executable, "-m", "experiments.languages.costs", language, *map(str, archives)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    figures = json.loads(answer.stdout)
    share = 10_000 / figures.pop("functions")
    count = round(10_000 / share)
    metrics = {name: round(value * share, 2) for name, value in figures.items()}
    return Row("index", language, split, seed, count, metrics)


def _resident() -> float:
    """Return the memory of this process in megabytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def main() -> None:
    """Print the figures of one language as JSON."""
    name, *archives = sys.argv[1:]
    language = language_named(name)
    sources = [read_sources(Path(archive), language) for archive in archives]
    language.find_context("", 0)  # loads the grammar
    language.mine("", name="empty", package="")
    CompletionEngine(empty_model()).prepare()
    before = _resident()
    start = time.process_time()
    files: dict[str, list[Example]] = {}
    for number, project in enumerate(sources):
        for file, text in project.items():
            mined = language.mine(text, name=f"{number}/{file}", package=str(number))
            if isinstance(mined, list):
                files[f"{number}/{file}"] = mined
    mined_at = time.process_time()
    engine = CompletionEngine(index_project(empty_model(), Project(files, []))[0])
    engine.prepare()
    figures = {
        "functions": sum(map(len, files.values())),
        "megabytes": _resident() - before,
        "mining_seconds": mined_at - start,
        "index_seconds": time.process_time() - mined_at,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
