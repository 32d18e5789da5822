"""Fitting, indexing, predicting, completing and adding with more and more pairs, in new processes.

`python -m benchmarks.scale 10000 100000 1000000` prints a table and writes benchmarks/scale.json:
seconds and the most memory of every stage, bytes on disk, latencies, and what one pair costs.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.completion import keystrokes
from benchmarks.generated_pairs import pairs, write_parquet
from benchmarks.measurement import peak
from redraft import RetrieveAndEdit
from redraft.completion.engine import CompletionEngine
from redraft.config.presets import SMALL
from redraft.data.pairs import read_numbered
from redraft.data.rows import BadRow
from redraft.index.base import build_index
from redraft.index.ivfpq import CompressedIndex, index_of_file
from redraft.index.vector_file import VectorFile
from redraft.mining.python_functions import as_source, mine_content
from redraft.models.autoencoder import FieldsEncoder
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.retrieval.dense import LearnedRetriever
from redraft.retrieval.encoder import DenseEncoder
from redraft.storage.disk import DiskExamples, chunks, gather, scratch
from redraft.text.token_encoder import TokenEncoder
from redraft.training.fit import FitOptions
from redraft.training.progress import Report
from redraft.training.retriever_config import default_config
from redraft.types import input_text

SIZES = (10_000, 100_000, 1_000_000)
RETRIEVERS = ("bm25", "task")
PREDICTED, TYPED, EMBEDDED, ADDED = 20, 25, 2_000, 100
BUDGET = 60.0
SETTINGS: dict[str, Any] = {
    # what is measured is what grows with the pairs: training takes as long for any number of them,
    # and what the default encoder with its LSTMs takes of each is measured on some thousand
    "retriever": {
        "network": {"encoder_layers": 0},
        "training": {"steps": 20},
    },
    "editor": {"training": {"steps": 20}, "decoding": {"max_length": 40}},
}
KEYS = ("pairs", "retriever", "stage")
MODULE = 100
"""Functions of a file that is mined."""

RESULTS = Path(__file__).parent / "scale.json"

Figures = dict[str, Any]


@contextmanager
def timed(figures: Figures, name: str) -> Iterator[None]:
    """Notes the seconds that something takes."""
    started = time.perf_counter()
    yield
    figures[name] = round(time.perf_counter() - started, 3)


def fit(folder: Path, retriever: str) -> Figures:
    """What `redraft fit` does: read, train, index, save."""
    figures: Figures = {}
    steps: list[Report] = []
    options = FitOptions(SETTINGS, budget=BUDGET, on_step=steps.append, log=_tell)
    with timed(figures, "seconds"):
        with timed(figures, "read_seconds"):
            rows = read_numbered(folder / "pairs.parquet")
            examples = gather((each for _, each in rows), folder / f"examples-{retriever}")
        model = RetrieveAndEdit.fit(examples, retriever=retriever, editor="neural", options=options)
        with timed(figures, "save_seconds"):
            model.save(folder / retriever)
    begun = max(at for at, each in enumerate(steps) if each.step == 1)
    # before the first step an epoch is drawn, and after the last one dev is scored
    first, last = steps[begun], steps[max(begun, len(steps) - 2)]
    figures["draw_seconds"] = round(first.seconds, 3)
    figures["step_seconds"] = round((last.seconds - first.seconds) / max(1, last.step - 1), 4)
    files = [path for path in (folder / retriever).rglob("*") if path.is_file()]
    figures["bytes_per_pair"] = round(sum(p.stat().st_size for p in files) / len(examples), 1)
    if isinstance(model.retriever, LearnedRetriever):
        figures |= _recall(model.retriever.index)
    return figures


def _recall(index: object) -> Figures:
    if not isinstance(index, CompressedIndex):
        return {}
    found = index.recall
    return {"recall_at_10": found.at_10, "effort": found.effort, "compared": found.rerank}


def index(folder: Path, retriever: str) -> Figures:
    """A trained model pointed at the pairs: what each step takes, and no training."""
    figures: Figures = {}
    trained = RetrieveAndEdit.load(folder / retriever).retriever
    with timed(figures, "seconds"):
        with timed(figures, "read_seconds"):
            rows = read_numbered(folder / "pairs.parquet")
            examples = gather((each for _, each in rows), folder / f"indexed-{retriever}")
        if isinstance(trained, Bm25Retriever):
            with timed(figures, "count_seconds"):
                Bm25Retriever.build(examples)
        elif isinstance(trained, LearnedRetriever) and isinstance(examples, DiskExamples):
            with timed(figures, "embed_seconds"):
                parts = (
                    trained.encoder.encode([each.x for each in part]) for part in chunks(examples)
                )
                made = scratch(examples.folder)
                file = VectorFile.write(made, parts, count=len(examples))
            with timed(figures, "compress_seconds"):
                figures |= _recall(index_of_file(file))
        elif isinstance(trained, LearnedRetriever):
            with timed(figures, "embed_seconds"):
                vectors = trained.encoder.encode([each.x for each in examples])
            with timed(figures, "compress_seconds"):
                build_index(vectors)
    if isinstance(trained, LearnedRetriever):
        figures["default_embed_us_per_pair"] = _default_embedding()
    return figures


def _default_embedding() -> float:
    """Microseconds of an input through an encoder of the default size."""
    examples = list(islice(pairs(seed=1), EMBEDDED))
    config = default_config(SMALL)
    encoding = TokenEncoder.learn((input_text(each.x) for each in examples), config.encoding)
    fields = list(examples[0].x)
    network = FieldsEncoder(len(encoding.vocabulary), len(fields), config.network).eval()
    started = time.perf_counter()
    DenseEncoder(network, encoding, fields).encode([each.x for each in examples])
    return round(1e6 * (time.perf_counter() - started) / EMBEDDED, 1)


def predict(folder: Path, retriever: str) -> Figures:
    """Load a model and answer."""
    figures: Figures = {}
    asked = [each.x for each in islice(pairs(seed=1), PREDICTED)]
    with timed(figures, "load_seconds"):
        model = RetrieveAndEdit.load(folder / retriever)
    seconds = []
    for x in asked:
        started = time.perf_counter()
        model.retriever.retrieve([x], 10)
        seconds.append(time.perf_counter() - started)
    figures["retrieve_ms"] = round(1000 * median(seconds), 3)
    with timed(figures, "seconds"):
        model.predict(asked)
    return figures


def complete(folder: Path, retriever: str) -> Figures:
    """Suggestions at every token of functions that are typed; a new function's first apart."""
    engine = CompletionEngine(RetrieveAndEdit.load(folder / retriever))
    first: list[float] = []
    later: list[float] = []
    for example in islice(pairs(seed=2), TYPED):
        text, cursors = keystrokes(example)
        for at, cursor in enumerate(cursors[:12]):
            started = time.perf_counter()
            engine.complete(text[:cursor], cursor)
            (later if at else first).append(1000 * (time.perf_counter() - started))
    return {
        "completion_ms": round(median(first + later), 3),
        "first_completion_ms": round(median(first), 3),
    }


def add(folder: Path, retriever: str) -> Figures:
    """What `redraft add` does with a few pairs."""
    figures: Figures = {}
    with timed(figures, "seconds"):
        model = RetrieveAndEdit.load(folder / retriever)
        more = model.retriever.add(list(islice(pairs(seed=3), ADDED)))
        RetrieveAndEdit(more, model.editor).save(folder / retriever)
    return figures


def mine(folder: Path, _: str) -> Figures:
    """The functions in files, mined as `redraft mine` does; making and reading are not timed."""
    coming, found, seconds = islice(pairs(), int(folder.name)), 0, 0.0
    while part := list(islice(coming, MODULE)):
        text = "\n\n".join(as_source(each.x, each.y) for each in part)
        started = time.perf_counter()
        mined = mine_content(text.encode(), name="made/up.py", package="made")
        seconds += time.perf_counter() - started
        if isinstance(mined, BadRow):
            raise RuntimeError(str(mined))
        found += len(mined)
    return {"seconds": round(seconds, 3), "functions": found}


STAGES: dict[str, Callable[[Path, str], Figures]] = {
    "mine": mine,
    "fit": fit,
    "index": index,
    "predict": predict,
    "complete": complete,
    "add": add,
}


def measured(stage: str, folder: Path, retriever: str) -> Figures:
    """The figures of a stage in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.scale", stage, str(folder), retriever]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def run(sizes: list[int]) -> Iterator[Figures]:
    """The figures of each size, retriever and stage."""
    with TemporaryDirectory() as base:
        for size in sizes:
            folder = Path(base) / str(size)
            folder.mkdir()
            write_parquet(folder / "pairs.parquet", size)
            figures = measured("mine", folder, "none")
            yield {"pairs": size, "retriever": "none", "stage": "mine", **figures}
            for retriever in RETRIEVERS:
                for stage in ("fit", "index", "predict"):
                    figures = measured(stage, folder, retriever)
                    yield {"pairs": size, "retriever": retriever, "stage": stage, **figures}
        # the sizes one after the other, so that what else the machine does falls on all alike
        for stage in ("complete", "add"):
            for retriever in RETRIEVERS:
                for size in sizes:
                    figures = measured(stage, Path(base) / str(size), retriever)
                    yield {"pairs": size, "retriever": retriever, "stage": stage, **figures}


def costs(rows: list[Figures]) -> list[Figures]:
    """What a pair costs at each size, in microseconds."""
    found = []
    for row in rows:
        if row["stage"] == "index":
            named = {
                name.replace("_seconds", "_us_per_pair"): round(1e6 * value / row["pairs"], 2)
                for name, value in row.items()
                if name.endswith("_seconds")
            }
            found.append({"pairs": row["pairs"], "retriever": row["retriever"], **named})
    return found


def ratios(rows: list[Figures]) -> list[Figures]:
    """How much longer a completion takes with more pairs than with the fewest."""
    found = []
    for retriever in RETRIEVERS:
        own = [r for r in rows if (r["stage"], r["retriever"]) == ("complete", retriever)]
        for row in own:
            ratio = round(row["completion_ms"] / own[0]["completion_ms"], 2)
            first = round(row["first_completion_ms"] / own[0]["first_completion_ms"], 2)
            found.append(
                {
                    "pairs": row["pairs"],
                    "retriever": retriever,
                    "completion_ratio": ratio,
                    "first_completion_ratio": first,
                }
            )
    return found


def _tell(text: str) -> None:
    print(text, file=sys.stderr)


def main() -> None:
    """Measure, print, write; or be one stage."""
    if len(sys.argv) == 4 and sys.argv[1] in STAGES:
        stage, folder, retriever = sys.argv[1:]
        figures = STAGES[stage](Path(folder), retriever)
        print(json.dumps({**figures, "peak_mb": peak()}))
        return
    sizes = [int(each) for each in sys.argv[1:]] or [*SIZES]
    table = Table("pairs", "retriever", "stage", "figures", title="Pairs out of memory")
    rows = []
    for row in run(sizes):
        rows.append(row)
        told = {name: value for name, value in row.items() if name not in KEYS}
        _tell(json.dumps(row))
        shown = "  ".join(f"{name} {value:,}" for name, value in told.items())
        table.add_row(f"{row['pairs']:,}", row["retriever"], row["stage"], shown)
    Console().print(table)
    machine = {"cores": os.cpu_count(), "load": os.getloadavg()[0]}
    results = {**machine, "stages": rows, "costs": costs(rows), "completion": ratios(rows)}
    RESULTS.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
