"""Training the editor in one process and in two: tokens a second, and the cores there are.

By itself, `python -m benchmarks.workers`, it writes benchmarks/workers.json.
"""

import dataclasses
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from benchmarks.measurement import Measurement
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.training.editor_config import default_config
from redraft.training.editor_task import train_editor
from redraft.training.process_group import connected
from redraft.training.progress import last_report
from redraft.training.prototype_sampling import TopPrototypes, everywhere
from redraft.training.schedule import RunOptions
from redraft.types import Example

STEPS, ROUNDS = 40, 3
EXAMPLES = 640
RESULTS = Path(__file__).parent / "workers.json"


@dataclass(frozen=True)
class Setup:
    """How the cores are used."""

    processes: int
    threads: int

    @property
    def name(self) -> str:
        """Such as "2 processes, 1 thread each"."""
        threads = f"{self.threads} thread" + "s" * (self.threads > 1)
        several = self.processes > 1
        return f"{self.processes} process{'es' * several}, {threads}{' each' * several}"


def cores() -> int:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def setups() -> list[Setup]:
    """One core; all of them by threads; two by processes."""
    return list(dict.fromkeys([Setup(1, 1), Setup(1, cores()), Setup(2, 1)]))


def examples() -> list[Example]:
    """Made-up functions of some dozen tokens."""
    draw = random.Random(0)
    words = [f"{verb}_{noun}" for verb in ("read", "add", "find") for noun in "abcdefghijklmnop"]

    def one() -> Example:
        used = draw.choices(words, k=draw.randint(4, 16))
        body = "\n".join(f"{word} = {word}({draw.choice(used)}, 1)" for word in used)
        return Example({"text": " ".join(used)}, body)

    return [one() for _ in range(EXAMPLES)]


def train(steps: int) -> None:
    """The part of a worker: train, and let the first print its rate."""
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    pairs = examples()
    config = default_config(len(pairs))
    training = dataclasses.replace(config.training, steps=steps)
    source = TopPrototypes(everywhere(Bm25Retriever.build(pairs), pairs), top=3)
    with connected(os.environ, "cpu") as workers, TemporaryDirectory() as folder:
        train_editor(
            pairs,
            source,
            dataclasses.replace(config, training=training),
            validate=lambda _: {},
            folder=Path(folder),
            options=RunOptions(workers=workers),
        )
        if workers.is_main:
            print(last_report(Path(folder)).tokens_per_second)


def rate(setup: Setup, steps: int) -> float:
    """Tokens a second of one fresh run."""
    launcher = ["torch.distributed.run", "--standalone", "--nproc-per-node", str(setup.processes)]
    worker = ["-m", "benchmarks.workers", str(steps)]
    done = subprocess.run(
        [sys.executable, "-m", *launcher, *worker],
        env={**os.environ, "OMP_NUM_THREADS": str(setup.threads)},
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return float(done.stdout)


def run(steps: int = STEPS, rounds: int = ROUNDS) -> Iterator[Measurement]:
    """The best of several runs of each, taking turns; beside one process with one thread."""
    best: dict[Setup, float] = {}
    for _ in range(rounds):
        for setup in setups():
            best[setup] = max(best.get(setup, 0.0), rate(setup, steps))
    alone = best[Setup(1, 1)]
    for setup, found in best.items():
        name = f"editor training, {setup.name}, on {cores()} of {os.cpu_count()} cores"
        yield Measurement(name, found, "tokens/s", found / alone, "1 process, 1 thread")


def main() -> None:
    """Measure, or be a worker if a launcher says so."""
    if "RANK" in os.environ:
        train(int(sys.argv[1]))
        return
    steps, rounds = map(int, sys.argv[1:] or (STEPS, ROUNDS))
    measured = [dataclasses.asdict(each) for each in run(steps, rounds)]
    machine = {"cores": os.cpu_count(), "usable_cores": cores(), "load": os.getloadavg()[0]}
    told = {**machine, "steps": steps, "rounds": rounds, "measurements": measured}
    RESULTS.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(told, indent=2))


if __name__ == "__main__":
    main()
