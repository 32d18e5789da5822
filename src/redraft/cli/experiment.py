"""`redraft experiment`: a table, measured from the data on."""

from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from redraft.cli.console import emit, progress, remark, stdout, working
from redraft.cli.training import watched

if TYPE_CHECKING:
    from redraft.studies.results import Row
    from redraft.studies.retrieval import Comparison


class Name(str, Enum):
    """The experiments there are."""

    RETRIEVAL = "retrieval"


def command(
    name: Annotated[Name, typer.Argument(help="Which experiment.")],
    data: Annotated[
        Path | None, typer.Option(help="A folder of Hearthstone cards (train_hs.in, dev_hs.in …).")
    ] = None,
    split: Annotated[str, typer.Option(help="The split of the cards to answer.")] = "dev",
    functions: Annotated[
        bool, typer.Option(help="Also on Python functions of the packages installed here.")
    ] = True,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds.")] = 3,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Folder for results.json.")
    ] = None,
) -> None:
    """Measure an experiment and write its results.json and table.

    `retrieval`: how near the output of the retrieved example is to the true one, for every
    retriever, with the oracle as the ceiling.

    Example: `redraft experiment retrieval --data cards/ --seeds 3`
    """
    from redraft.studies.corpora import cards, installed_functions
    from redraft.studies.corpora import functions as function_comparison
    from redraft.studies.results import insert_table, markdown_table, with_means, write_results
    from redraft.studies.retrieval import METRICS

    out = out or Path("experiments") / name.value
    rows: list[Row] = []
    written: list[dict[str, Any]] = []
    comparisons = [cards(data, asked=split)] if data else []
    if functions:
        mined = installed_functions(lambda sources: progress(sources, "mining", total=len(sources)))
        comparisons.append(function_comparison(mined))
    for comparison in comparisons:
        for row in _measure(comparison, seeds, out, sweep=data is not None and not rows):
            emit({"system": row.system, "setting": row.setting, "seed": row.seed, **row.metrics})
            rows.append(row)
            written = write_results(out / "results.json", name.value, with_means(rows))
    table = markdown_table(written, METRICS)
    tables = {
        out / "README.md": table,
        Path("README.md"): markdown_table(written, METRICS, is_brief=True),
    }
    pages = [page for page, text in tables.items() if insert_table(page, name.value, text)]
    remark(
        f"results: {out}/results.json; table put into: {', '.join(map(str, pages)) or 'no page'}"
    )
    stdout().print(table, soft_wrap=True)


def _measure(comparison: "Comparison", seeds: int, out: Path, *, sweep: bool) -> "Iterator[Row]":
    """Every row of a comparison; a training that was stopped goes on from its folder."""
    from redraft.fitting import FitOptions
    from redraft.studies.retrieval import kappa_rows, learned_rows, paper_rows, plain_rows

    with working("measuring what needs no training"):
        rows = list(plain_rows(comparison))
    yield from rows
    setting = comparison.settings[0][0].name
    for seed in range(seeds):
        with watched(f"{setting}, seed {seed}") as observer:
            folder = out / "runs" / setting.replace(" ", "-")
            options = FitOptions(seed=seed, folder=folder, observer=observer)
            yield from learned_rows(comparison, options)
    if sweep:
        with watched(f"{setting}, kappa") as observer:
            yield from kappa_rows(comparison, FitOptions(observer=observer))
        with watched(f"{setting}, the paper's size") as observer:
            yield from paper_rows(comparison, FitOptions(observer=observer))
