"""Measure completion of Python functions in unseen projects and across packages; write
results.json and the plots.

systems    Retrieve+Edit, the retrievers alone, Seq2Seq, caches and a decoder-only Transformer
ablations  Retrieve+Edit with one part changed at a time
paper      the paper's LSTMs, and the best prototypes there are

Without --data the packages are downloaded and mined. An interrupted training resumes when the same
command is given again.
"""

import os
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path

from experiments.autocomplete.bench import SIZES, CompletionBench
from experiments.autocomplete.completions import METRICS
from experiments.autocomplete.figures import write_plots
from experiments.autocomplete.run import MEASURES, PUBLISHED
from experiments.autocomplete.settings import SETTINGS, Functions
from experiments.corpus.run import STATISTICS, write_corpus
from experiments.lib.example_scores import append_scores, read_scores
from experiments.lib.paired import difference_rows, similarity_rows
from experiments.lib.results import DISTANCE, SIMILARITY, Row
from experiments.lib.runner import Study, add_measures, measures, parser, run, seeds
from redraft.cli._progress import watched
from redraft.training.fit import FitOptions

HERE = Path(__file__).parent
LISTS = {"small": HERE / "packages_small.txt", "full": HERE / "packages.txt"}
"""The packages of each size."""

SIMILARITIES = (0, 10, 30, 60, 101)
"""Bounds between which functions are compared, by the BLEU of their prototype's body."""

KEPT = (*METRICS, DISTANCE, SIMILARITY)
"""Metrics of every function that are kept."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the command line asks for."""
    options = parser(HERE, __doc__)
    options.add_argument("--data", type=Path, help="corpus made by `python -m experiments.corpus`")
    options.add_argument(
        "--size", choices=list(SIZES), default="small", help="some 5,000 training functions, or all"
    )
    add_measures(options, MEASURES)
    run(options, _study, arguments)


def _study(chosen: Namespace) -> Study:
    folder = chosen.out if chosen.size == "small" else chosen.out / chosen.size
    return Study("autocomplete", _rows(chosen, folder), folder / "results.json", PUBLISHED)


def _rows(chosen: Namespace, folder: Path) -> Iterator[Row]:
    corpus = chosen.data or _mined(chosen.size, folder / "corpus")
    strict, paper = Functions.read(corpus / "strict"), Functions.read(corpus / "paper")
    runs, scores = folder / "runs", folder / "runs" / "scores.jsonl"
    for name in measures(chosen):
        for seed in seeds(chosen):
            with watched(f"{name}, seed {seed}") as on_step:
                options = FitOptions(seed=seed, on_step=on_step)
                bench = CompletionBench(strict, paper, SIZES[chosen.size], options, runs)
                for rows in MEASURES[name]:
                    for measured in rows(bench):
                        append_scores(measured, scores, metrics=KEPT)
                        yield measured.row
    kept = read_scores(scores)
    yield from difference_rows(kept, METRICS)
    yield from similarity_rows(kept, SETTINGS, SIMILARITIES, METRICS)
    write_plots(kept, folder / "plots")


def _mined(size: str, folder: Path) -> Path:
    """Return the corpus of this size in `folder`, downloaded and mined unless it is there."""
    if not (folder / STATISTICS).exists():
        write_corpus(LISTS[size], folder, jobs=os.cpu_count() or 1, seed=0)
    return folder


if __name__ == "__main__":
    main()
