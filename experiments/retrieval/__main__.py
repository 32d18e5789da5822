"""Measure how near the retrieved output is to the true one and write results.json.

Every retriever is compared with the others and with the oracle, which picks by the true output.
An interrupted training resumes when the same command is given again.
"""

from argparse import BooleanOptionalAction, Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path

from experiments.autocomplete.settings import Functions
from experiments.lib.cards import read_splits
from experiments.lib.installed import installed_functions
from experiments.lib.results import Row
from experiments.lib.runner import Study, mining_progress, parser, run, seeds
from experiments.public_pairs.sets import PairSet, read_sets, set_names
from experiments.retrieval.comparison import (
    Comparison,
    kappa_rows,
    learned_rows,
    paper_rows,
    plain_rows,
)
from experiments.retrieval.corpora import cards, function_sets, functions
from experiments.retrieval.edits import edit_rows
from experiments.retrieval.encoders import encoder_rows
from redraft.cli._console import print_note, working
from redraft.cli._progress import watched
from redraft.training.fit import FitOptions


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the command line asks for."""
    options = parser(Path(__file__).parent, __doc__)
    options.add_argument("--data", type=Path, help="folder of Hearthstone cards; else no cards")
    options.add_argument("--pairs", type=Path, help="folder of pair sets; measures edits alone")
    options.add_argument(
        "--encoder", type=Path, help="sentence encoder to measure on the pair sets instead"
    )
    options.add_argument(
        "--corpus", type=Path, help="folder of functions by paper_conditions: two more sets"
    )
    options.add_argument("--sets", default="", help="names of pair sets, by commas (all)")
    options.add_argument("--split", default="dev", help="split to answer: dev (default) or test")
    options.add_argument(
        "--functions",
        action=BooleanOptionalAction,
        default=True,
        help="measure on Python functions of the installed packages (yes)",
    )
    run(options, _study, arguments)


def _study(chosen: Namespace) -> Study:
    return Study("retrieval", _rows(chosen), chosen.out / "results.json")


def _rows(chosen: Namespace) -> Iterator[Row]:
    if chosen.pairs and chosen.encoder:
        yield from encoder_rows(_pair_sets(chosen), chosen.encoder)
        return
    if chosen.pairs:
        yield from edit_rows(_pair_sets(chosen), print_note)
        return
    if chosen.data:
        comparison = cards(chosen.data, asked=chosen.split)
        yield from _compare(comparison, seeds(chosen), chosen.out)
        yield from _vary(comparison)
    if chosen.functions:
        mined = installed_functions(mining_progress)
        yield from _compare(functions(mined), seeds(chosen), chosen.out)


def _pair_sets(chosen: Namespace) -> list[PairSet]:
    """Return the pair sets and, if their folders are given, the cards and the functions."""
    wanted = [name.strip() for name in chosen.sets.split(",") if name.strip()]
    names = set_names(chosen.pairs, chosen.split, wanted)
    sets = list(read_sets(chosen.pairs, chosen.split, names))
    if chosen.data:
        train, asked = read_splits(chosen.data, "train", chosen.split)
        sets.append(PairSet("hearthstone", chosen.split, train, asked))
    if chosen.corpus:
        sets += function_sets(Functions.read(chosen.corpus))
    return sets


def _compare(comparison: Comparison, seeds: Sequence[int], out: Path) -> Iterator[Row]:
    """Yield the rows of all retrievers; an interrupted training resumes from its folder."""
    with working("measuring what needs no training"):
        rows = list(plain_rows(comparison))
    yield from rows
    setting = comparison.settings[0][0].name
    for seed in seeds:
        with watched(f"{setting}, seed {seed}") as on_step:
            folder = out / "runs" / setting.replace(" ", "-")
            options = FitOptions(seed=seed, folder=folder, on_step=on_step)
            yield from learned_rows(comparison, options)


def _vary(comparison: Comparison) -> Iterator[Row]:
    """Yield the task retriever at other concentrations and with the paper's sizes."""
    setting = comparison.settings[0][0].name
    with watched(f"{setting}, kappa") as on_step:
        yield from kappa_rows(comparison, FitOptions(on_step=on_step))
    with watched(f"{setting}, the paper's size") as on_step:
        yield from paper_rows(comparison, FitOptions(on_step=on_step))


if __name__ == "__main__":
    main()
