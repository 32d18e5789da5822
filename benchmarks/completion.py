"""Completion at the keystroke: functions of held-out packages typed token by token, 76,000 others
to borrow from; and pointing a model at a code base."""

import random
import resource
import sysconfig
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.measurement import Measurement
from experiments.lib.installed import installed_functions
from redraft import RetrieveAndEdit
from redraft.completion.engine import CompletionEngine
from redraft.completion.project import Project, index_project
from redraft.data.split import split
from redraft.editing.base import VerbatimEditor
from redraft.mining.python_functions import as_source
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.text.tokenizer import Tokenizer, spell
from redraft.training.fit import FitOptions
from redraft.types import Example

PROTOTYPES, TYPED, TRAINED = 76_000, 200, 60.0


def run() -> Iterator[Measurement]:
    """The latency of every keystroke's worth of typing, and the time to index."""
    parts = split(installed_functions(), {"train": 0.9, "typed": 0.1}, seed=0, by="package")
    typed = random.Random(0).sample(parts["typed"], TYPED)
    yield from copying(parts["train"], typed)
    model = RetrieveAndEdit.fit(
        parts["train"], editor="neural", options=FitOptions(dev=(), budget=TRAINED)
    )
    yield from indexing(model)
    model = RetrieveAndEdit(model.retriever.replace([], copies(parts["train"])), model.editor)
    yield from latencies(CompletionEngine(model), typed, "completion with a network")
    yield from cold_start(model, typed[0])


def copies(examples: Sequence[Example]) -> list[Example]:
    """As many more as there must be, each another function by its name and its output."""
    missing = PROTOTYPES - len(examples)
    return [
        replace(
            each,
            x={**each.x, "name": f"{each.x['name']}_{at}"},
            y=f"{each.y}\n# {at}",
        )
        for at in range(missing)
        for each in [examples[at % len(examples)]]
    ]


def keystrokes(example: Example) -> tuple[str, list[int]]:
    """A function as a file, and where the cursor is after each token of its body."""
    tokens = Tokenizer().tokenize(example.y)
    text, cursors = as_source(example.x, ""), []
    for spelled in spell(tokens):
        cursors.append(len(text))
        text += spelled.replace("\n", "\n    ")
    return text, cursors


def copying(examples: Sequence[Example], typed: Sequence[Example]) -> Iterator[Measurement]:
    """Completion without a network: the time to index the tokens, latency and memory."""
    project = [*examples, *copies(examples)]
    engine = CompletionEngine(RetrieveAndEdit(Bm25Retriever.build(project), VerbatimEditor()))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    engine.prepare()
    seconds = time.perf_counter() - started
    yield Measurement(f"indexing the tokens of {len(project):,} functions", seconds, "s")
    yield from latencies(engine, typed, "completion from a project")
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield Measurement(
        "peak memory added by the index and its suggestions", (after - before) / 1024, "MiB"
    )


def latencies(
    engine: CompletionEngine, typed: Sequence[Example], name: str
) -> Iterator[Measurement]:
    """What five suggestions take at every token, and at the first one of a function."""
    first: list[float] = []
    later: list[float] = []
    for example in typed:
        text, cursors = keystrokes(example)
        for at, cursor in enumerate(cursors):
            started = time.perf_counter()
            engine.complete(text[:cursor], cursor)
            (later if at else first).append(1000 * (time.perf_counter() - started))
    every = np.array(first + later)
    label = f"{name}, at a token, {PROTOTYPES:,} prototypes"
    yield Measurement(f"{label}, median", float(np.median(every)), "ms")
    yield Measurement(f"{label}, 99th percentile", float(np.quantile(every, 0.99)), "ms")
    yield Measurement(f"{label}, first token of a function, median", median(first), "ms")
    yield Measurement(f"{label}, first token of a function, slowest", max(first), "ms")


def cold_start(model: RetrieveAndEdit, example: Example) -> Iterator[Measurement]:
    """From the files of a model to the first suggestion."""
    text, cursors = keystrokes(example)
    with TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        started = time.perf_counter()
        loaded = RetrieveAndEdit.load(Path(folder) / "model")
        opened = time.perf_counter()
        CompletionEngine(loaded).complete(text, cursors[0])
        first = time.perf_counter()
    yield Measurement(f"loading a model of {PROTOTYPES:,} examples", opened - started, "s")
    yield Measurement("first suggestion after loading", 1000 * (first - opened), "ms")


def indexing(model: RetrieveAndEdit) -> Iterator[Measurement]:
    """Mining the standard library and swapping the examples, and then one changed file."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    started = time.perf_counter()
    project = Project.read([folder], without=("idlelib", "lib2to3"))
    mined = time.perf_counter()
    pointed, change = index_project(model, project)
    seconds = time.perf_counter() - started
    count = len(change.examples)
    yield Measurement(f"mining a code base of {count:,} functions", mined - started, "s")
    rate = count / seconds
    yield Measurement("functions a model is pointed at, mining included", rate, "1/s")
    name = next(name for name, found in project.files.items() if found)
    changed = Project({**project.files, name: project.files[name][:-1]}, [])
    started = time.perf_counter()
    index_project(pointed, changed)
    again = time.perf_counter() - started
    yield Measurement("one changed file of it", again, "s", again / seconds, "all files")
