"""Measure the default settings on two other kinds of pairs and write results.json.

systems  Retrieve+Edit, Seq2Seq and BM25 alone
paper    the paper's LSTMs

No data is needed: `queries` (English to SQL) are made from a seed, `signatures` (documentation to
arguments) are mined from this Python's standard library. An interrupted training resumes when the
same command is given again.
"""

from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path

from experiments.lib.bench import compared_rows
from experiments.lib.example_scores import read_scores
from experiments.lib.results import Row
from experiments.lib.runner import (
    Plan,
    Study,
    add_choices,
    add_measures,
    bench_rows,
    mining_progress,
    parser,
    run,
)
from experiments.pairs.run import KINDS, MEASURES, METRICS, SPLITS, read_questions


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the command line asks for."""
    options = parser(Path(__file__).parent, __doc__)
    add_choices(options, "--kind", KINDS, "kinds of pairs (all)")
    options.add_argument("--split", choices=SPLITS, default="dev", help="split to answer (dev)")
    add_measures(options, MEASURES)
    run(options, _study, arguments)


def _study(chosen: Namespace) -> Study:
    return Study("pairs", _rows(chosen), chosen.out / "results.json")


def _rows(chosen: Namespace) -> Iterator[Row]:
    for kind in chosen.kind or KINDS:
        questions = read_questions(kind, chosen.split, mining_progress)
        scores = chosen.out / "answers" / f"{kind}-{chosen.split}.jsonl"
        plan = Plan.of(chosen, MEASURES, chosen.out / "runs" / kind)
        yield from bench_rows(questions, plan, scores)
        yield from compared_rows(read_scores(scores), METRICS)


if __name__ == "__main__":
    main()
