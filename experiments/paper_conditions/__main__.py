"""Measure the paper's claims under the paper's conditions and write results.json.

cards           Hearthstone with the paper's LSTMs, which copy from the prototype alone
cards-copying   the same LSTMs, which copy from the input too
retrievers      functions with near-copies: the retrievers alone
reranked        the same: the retriever that learns from edits
default         the same: Retrieve+Edit by default, without a network
systems         the same: a network that reads a prototype, and Seq2Seq
lstm            the same with the paper's LSTMs, which copy from the prototype alone

An interrupted training resumes when the same command is given again.
"""

from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from experiments.autocomplete.run import PUBLISHED
from experiments.lib.bench import Questions, compared_rows
from experiments.lib.cards import read_splits
from experiments.lib.example_scores import append_scores, read_scores
from experiments.lib.paired import difference_rows
from experiments.lib.results import Measured, Row
from experiments.lib.runner import Plan, Study, add_choices, bench_rows, count, parser, run, seeds
from experiments.paper_conditions import cards, functions
from experiments.paper_conditions.functions import NearCopyBench
from experiments.paper_conditions.near_copies import read_corpus
from redraft.cli._progress import watched
from redraft.errors import ConfigError
from redraft.training.fit import FitOptions

CARDS = dict(zip(("cards", "cards-copying"), cards.COPYING, strict=True))
FUNCTIONS: Mapping[str, Sequence[Callable[[NearCopyBench], Iterator[Measured]]]] = {
    "retrievers": (NearCopyBench.untrained_rows, NearCopyBench.learned_rows),
    "reranked": (NearCopyBench.reranked_rows,),
    "default": (NearCopyBench.default_rows,),
    "systems": (NearCopyBench.system_rows,),
    "lstm": (NearCopyBench.lstm_rows,),
}
STEPS = 3_000
"""Steps of the paper's LSTMs on the cards."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the command line asks for."""
    options = parser(Path(__file__).parent, __doc__)
    options.add_argument("--data", type=Path, help="folder of Hearthstone cards")
    options.add_argument("--steps", type=count, default=STEPS, help=f"on the cards ({STEPS})")
    add_choices(options, "--measure", [*CARDS, *FUNCTIONS], "what to measure (retrievers)")
    run(options, _study, arguments)


def _study(chosen: Namespace) -> Study:
    return Study("paper_conditions", _rows(chosen), chosen.out / "results.json", PUBLISHED)


def _rows(chosen: Namespace) -> Iterator[Row]:
    names = chosen.measure or ["retrievers"]
    if conditions := [CARDS[name] for name in names if name in CARDS]:
        yield from _card_rows(chosen, conditions)
    if measures := [name for name in names if name in FUNCTIONS]:
        yield from _function_rows(chosen, measures)


def _card_rows(chosen: Namespace, conditions: Sequence[str]) -> Iterator[Row]:
    if chosen.data is None:
        raise ConfigError("the cards are missing; name their folder with --data")
    train, asked = read_splits(chosen.data, "train", "dev")
    measures = {name: [cards.card_rows(name, steps=chosen.steps)] for name in conditions}
    plan = Plan(measures, seeds(chosen), chosen.out / "runs" / f"cards-{chosen.steps}")
    scores = chosen.out / "answers" / "cards.jsonl"
    yield from bench_rows(Questions(cards.SETTING, "dev", train, asked), plan, scores)
    yield from compared_rows(read_scores(scores), cards.METRICS)


def _function_rows(chosen: Namespace, measures: Sequence[str]) -> Iterator[Row]:
    corpus = read_corpus(chosen.out / "corpus")
    scores = chosen.out / "answers" / "functions.jsonl"
    for name in measures:
        for seed in seeds(chosen):
            with watched(f"{name}, seed {seed}") as on_step:
                options = FitOptions(seed=seed, on_step=on_step)
                bench = NearCopyBench(corpus, options, chosen.out / "runs")
                for rows in FUNCTIONS[name]:
                    for measured in rows(bench):
                        append_scores(measured, scores, metrics=tuple(functions.METRICS))
                        yield measured.row
    yield from difference_rows(read_scores(scores), functions.METRICS)


if __name__ == "__main__":
    main()
