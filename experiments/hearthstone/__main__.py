"""Measure systems on Hearthstone cards and write results.json.

systems     Retrieve+Edit and Seq2Seq
retrievers  every retriever alone
paper       the paper's LSTMs
ablations   Retrieve+Edit with one part changed at a time
searches    the same weights, decoded in other ways
prototypes  other prototypes than the nearest
adding      trained on half of the cards, the others added to the index

An interrupted training resumes when the same command is given again.
"""

from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path

from experiments.hearthstone.prototype_use import gained_rows
from experiments.hearthstone.run import GAINS, MEASURES, METRICS, PUBLISHED, SETTING, SIMILARITIES
from experiments.lib.bench import Questions, compared_rows, without_ratios
from experiments.lib.cards import read_splits
from experiments.lib.example_scores import read_scores
from experiments.lib.paired import similarity_rows
from experiments.lib.results import Row
from experiments.lib.runner import Plan, Study, add_measures, bench_rows, parser, run


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the command line asks for."""
    options = parser(Path(__file__).parent, __doc__)
    options.add_argument(
        "--data", type=Path, required=True, help="folder of train_hs.in, train_hs.out and so on"
    )
    options.add_argument("--split", default="dev", help="split to answer: dev (default) or test")
    add_measures(options, MEASURES)
    run(options, _study, arguments)


def _study(chosen: Namespace) -> Study:
    train, asked = read_splits(chosen.data, "train", chosen.split)
    questions = Questions(SETTING, chosen.split, train, asked)
    plan = Plan.of(chosen, MEASURES, chosen.out / "runs")
    rows = _rows(questions, plan, chosen.out / "answers" / f"{chosen.split}.jsonl")
    return Study(SETTING, rows, chosen.out / "results.json", PUBLISHED)


def _rows(questions: Questions, plan: Plan, scores: Path) -> Iterator[Row]:
    yield from bench_rows(questions, plan, scores)
    measured = read_scores(scores)
    yield from compared_rows(measured, METRICS)
    yield from without_ratios(similarity_rows(measured, [SETTING], SIMILARITIES, METRICS))
    yield from gained_rows(measured, SETTING, GAINS)


if __name__ == "__main__":
    main()
