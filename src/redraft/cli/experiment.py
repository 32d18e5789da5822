"""`redraft experiment`: a table, measured from the data on."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from redraft.cli.console import emit, progress, remark, stdout, working
from redraft.cli.training import watched
from redraft.errors import PairsError

if TYPE_CHECKING:
    from redraft.studies.results import Row
    from redraft.studies.retrieval import Comparison


class Name(str, Enum):
    """The experiments there are."""

    RETRIEVAL = "retrieval"
    HEARTHSTONE = "hearthstone"


class Measure(str, Enum):
    """What can be measured on Hearthstone."""

    SYSTEMS = "systems"
    PAPER = "paper"
    ABLATIONS = "ablations"


@dataclass(frozen=True)
class Request:
    """What was asked for on the command line."""

    data: Path | None
    split: str
    functions: bool
    measures: Sequence[Measure]
    seeds: Sequence[int]
    out: Path


def command(
    name: Annotated[Name, typer.Argument(help="Which experiment.")],
    data: Annotated[
        Path | None, typer.Option(help="A folder of Hearthstone cards (train_hs.in, dev_hs.in …).")
    ] = None,
    split: Annotated[str, typer.Option(help="The split of the cards to answer.")] = "dev",
    functions: Annotated[
        bool, typer.Option(help="retrieval: also on Python functions of installed packages.")
    ] = True,
    measure: Annotated[
        list[Measure] | None,
        typer.Option(help="hearthstone: the systems, the paper's LSTMs, ablations. [systems]"),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds.")] = 3,
    first_seed: Annotated[
        int, typer.Option(min=0, help="The first of them; those of earlier runs join the mean.")
    ] = 0,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Folder for results.json.")
    ] = None,
) -> None:
    """Measure an experiment and write its results.json and table.

    `hearthstone`: the paper's table. Retrieve+Edit, Seq2Seq and each retriever alone, beside the
    published figures; with `--measure ablations`, what each part is worth.

    `retrieval`: how near the output of the retrieved example is to the true one, for every
    retriever, with the oracle as the ceiling.

    A training that was stopped goes on when the same command is given again.

    Examples: `redraft experiment hearthstone --data cards/ --seeds 1`,
    `redraft experiment retrieval --data cards/ --seeds 3`
    """
    from redraft.studies.results import (
        current_commit,
        insert_table,
        markdown_table,
        write_results,
    )

    out = out or Path("experiments") / name.value
    all_seeds = range(first_seed, first_seed + seeds)
    request = Request(data, split, functions, measure or [Measure.SYSTEMS], all_seeds, out)
    metrics, published, measured = EXPERIMENTS[name](request)
    current_commit()  # the code that runs, whatever is committed while it does
    rows: list[Row] = []
    written: list[dict[str, Any]] = []
    for row in measured:
        emit({"system": row.system, "setting": row.setting, "seed": row.seed, **row.metrics})
        rows.append(row)
        written = write_results(out / "results.json", name.value, rows, published=published)
    table = markdown_table(written, metrics, published=published)
    brief = markdown_table(written, metrics, published=published, is_brief=True)
    tables = {out / "README.md": table, Path("README.md"): brief}
    pages = [page for page, text in tables.items() if insert_table(page, name.value, text)]
    remark(
        f"results: {out}/results.json; table put into: {', '.join(map(str, pages)) or 'no page'}"
    )
    stdout().print(table, soft_wrap=True)


Measured = tuple[Mapping[str, str], Sequence[Mapping[str, Any]], Iterator["Row"]]
"""The metrics to show, the published rows, and the rows as they are measured."""


def _retrieval(request: Request) -> Measured:
    from redraft.studies.retrieval import METRICS

    return METRICS, (), _retrieval_rows(request)


def _retrieval_rows(request: Request) -> "Iterator[Row]":
    from redraft.studies.corpora import cards, installed_functions
    from redraft.studies.corpora import functions as function_comparison

    comparisons = [cards(request.data, asked=request.split)] if request.data else []
    if request.functions:
        mined = installed_functions(lambda sources: progress(sources, "mining", total=len(sources)))
        comparisons.append(function_comparison(mined))
    for at, comparison in enumerate(comparisons):
        sweep = request.data is not None and at == 0
        yield from _compare(comparison, request.seeds, request.out, sweep=sweep)


def _compare(
    comparison: "Comparison", seeds: Sequence[int], out: Path, *, sweep: bool
) -> "Iterator[Row]":
    """Every row of a comparison; a training that was stopped goes on from its folder."""
    from redraft.fitting import FitOptions
    from redraft.studies.retrieval import kappa_rows, learned_rows, paper_rows, plain_rows

    with working("measuring what needs no training"):
        rows = list(plain_rows(comparison))
    yield from rows
    setting = comparison.settings[0][0].name
    for seed in seeds:
        with watched(f"{setting}, seed {seed}") as observer:
            folder = out / "runs" / setting.replace(" ", "-")
            options = FitOptions(seed=seed, folder=folder, observer=observer)
            yield from learned_rows(comparison, options)
    if sweep:
        with watched(f"{setting}, kappa") as observer:
            yield from kappa_rows(comparison, FitOptions(observer=observer))
        with watched(f"{setting}, the paper's size") as observer:
            yield from paper_rows(comparison, FitOptions(observer=observer))


def _hearthstone(request: Request) -> Measured:
    from redraft.studies.hearthstone import METRICS, PUBLISHED

    return METRICS, PUBLISHED, _hearthstone_rows(request)


def _hearthstone_rows(request: Request) -> "Iterator[Row]":
    from redraft.fitting import FitOptions
    from redraft.studies.corpora import read_splits
    from redraft.studies.hearthstone import MEASURES, Bench, Cards

    if request.data is None:
        raise PairsError("hearthstone needs the cards; name their folder with --data")
    train, asked = read_splits(request.data, "train", request.split)
    cards = Cards(train, asked, request.split)
    for measure in request.measures:
        for seed in request.seeds:
            with watched(f"{measure.value}, seed {seed}") as observer:
                options = FitOptions(seed=seed, observer=observer)
                bench = Bench(cards, options, request.out / "runs")
                for rows in MEASURES[measure.value]:
                    yield from rows(bench)


EXPERIMENTS: Mapping[Name, Callable[[Request], Measured]] = {
    Name.RETRIEVAL: _retrieval,
    Name.HEARTHSTONE: _hearthstone,
}
