"""`redraft experiment`: a table, measured from the data on."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from redraft.cli.console import emit, progress, remark, stdout, working
from redraft.cli.training import watched
from redraft.errors import PairsError

if TYPE_CHECKING:
    from redraft.studies.results import Row, Table
    from redraft.studies.retrieval import Comparison


class Name(str, Enum):
    """The experiments there are."""

    RETRIEVAL = "retrieval"
    HEARTHSTONE = "hearthstone"
    AUTOCOMPLETE = "autocomplete"
    PAIRS = "pairs"


class Measure(str, Enum):
    """What can be measured."""

    SYSTEMS = "systems"
    RETRIEVERS = "retrievers"
    PAPER = "paper"
    SEARCHES = "searches"
    ABLATIONS = "ablations"
    PROTOTYPES = "prototypes"
    ADDING = "adding"


class Kind(str, Enum):
    """Kinds of pairs."""

    QUERIES = "queries"
    SIGNATURES = "signatures"


class Size(str, Enum):
    """How many functions."""

    SMALL = "small"
    FULL = "full"


@dataclass(frozen=True)
class Request:
    """What was asked for on the command line."""

    data: Path | None
    split: str
    functions: bool
    measures: Sequence[Measure]
    seeds: Sequence[int]
    size: Size
    kinds: Sequence[Kind]
    out: Path


def command(
    name: Annotated[Name, typer.Argument(help="Which experiment.")],
    data: Annotated[
        Path | None,
        typer.Option(
            help="A folder of Hearthstone cards (train_hs.in, dev_hs.in …) or, for autocomplete, "
            "of a corpus that was mined; without one the corpus is mined first."
        ),
    ] = None,
    split: Annotated[
        str, typer.Option(help="hearthstone, pairs: the split to answer, dev or test.")
    ] = "dev",
    kind: Annotated[
        list[Kind] | None,
        typer.Option(help="pairs: English to SQL, or documentation to arguments. [both]"),
    ] = None,
    functions: Annotated[
        bool, typer.Option(help="retrieval: also on Python functions of installed packages.")
    ] = True,
    measure: Annotated[
        list[Measure] | None,
        typer.Option(
            help="The systems, the paper's LSTMs, ablations; hearthstone: the retrievers alone, "
            "other searches, other prototypes than the nearest, and adding half of the cards. "
            "[systems]"
        ),
    ] = None,
    size: Annotated[
        Size, typer.Option(help="autocomplete: some 5,000 functions to train on, or all.")
    ] = Size.SMALL,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds.")] = 3,
    first_seed: Annotated[
        int, typer.Option(min=0, help="The first of them; those of earlier runs join the mean.")
    ] = 0,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Folder for results.json.")
    ] = None,
) -> None:
    """Measure an experiment and write its results.json and table.

    `hearthstone`: the paper's table. Retrieve+Edit and Seq2Seq beside the published figures; with
    `--measure retrievers`, each retriever alone; `ablations`, what each part is worth; `searches`,
    the same weights searched in other ways; `prototypes`, what the editor makes of better and
    worse ones; `adding`, what half of the cards bring without training.

    `autocomplete`: completion of Python functions in a project that nothing was trained on and
    across packages, beside what a user might pick instead; the packages are downloaded and mined.

    `pairs`: the defaults on two other kinds of pairs, beside Seq2Seq, BM25 alone and, with
    `--measure paper`, the paper's LSTMs. `queries` are English questions and their SQL, made from
    a seed; `signatures` are functions of this Python's standard library, mined on the spot.
    Both need no data; runs of other seeds and measures are compared as one.

    `retrieval`: how near the output of the retrieved example is to the true one, for every
    retriever, with the oracle as the ceiling.

    A training that was stopped goes on when the same command is given again.

    Examples: `redraft experiment hearthstone --data cards/ --seeds 1`,
    `redraft experiment retrieval --data cards/ --seeds 3`,
    `redraft experiment autocomplete --size small --seeds 1`,
    `redraft experiment pairs --kind queries --seeds 3`
    """
    from redraft.studies.results import current_commit, insert_table, write_results

    out = out or Path("experiments") / FOLDERS.get(name, name.value)
    all_seeds = range(first_seed, first_seed + seeds)
    measures, kinds = measure or [Measure.SYSTEMS], kind or list(Kind)
    request = Request(data, split, functions, measures, all_seeds, size, kinds, out)
    study = EXPERIMENTS[name](request)
    current_commit()  # the code that runs, whatever is committed while it does
    rows: list[Row] = []
    written: list[dict[str, Any]] = []
    for row in study.rows:
        emit({"system": row.system, "setting": row.setting, "seed": row.seed, **row.metrics})
        rows.append(row)
        written = write_results(study.results, name.value, rows, published=study.published)
    pages: list[str] = []
    for mark, table in study.tables.items():
        for page, is_brief in {out / "README.md": False, Path("README.md"): True}.items():
            if insert_table(page, mark, table.markdown(written, is_brief=is_brief)):
                pages.append(str(page))
        stdout().print(table.markdown(written), soft_wrap=True)
    remark(f"results: {study.results}; tables put into: {', '.join(pages) or 'no page'}")


@dataclass(frozen=True)
class Study:
    """The rows as they are measured, what is shown of them, and where they are written."""

    rows: "Iterator[Row]"
    published: Sequence[Mapping[str, Any]]
    results: Path
    tables: "Mapping[str, Table]"  # by their marks in a page


def _retrieval(request: Request) -> Study:
    from redraft.studies.retrieval import METRICS

    return _one_table("retrieval", request, METRICS, (), _retrieval_rows(request))


def _one_table(
    name: str,
    request: Request,
    metrics: Mapping[str, str],
    published: Sequence[Mapping[str, Any]],
    rows: "Iterator[Row]",
) -> Study:
    from redraft.studies.results import Table

    tables = {name: Table(metrics, published=published)}
    return Study(rows, published, request.out / "results.json", tables)


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


def _refuse_measures(request: Request, name: str, known: Collection[str]) -> None:
    """An error where an experiment cannot measure what is asked of it."""
    for measure in request.measures:
        if measure.value not in known:
            message = f"{name} cannot measure {measure.value}; --measure is {' or '.join(known)}"
            raise PairsError(message)


def _hearthstone(request: Request) -> Study:
    from redraft.studies.hearthstone import MEASURES, PUBLISHED, TABLES

    _refuse_measures(request, "hearthstone", MEASURES)
    results = request.out / "results.json"
    return Study(_hearthstone_rows(request), PUBLISHED, results, TABLES)


def _hearthstone_rows(request: Request) -> "Iterator[Row]":
    from redraft.fitting import FitOptions
    from redraft.studies.answers import Bench, Questions, compared_rows, measured_rows
    from redraft.studies.corpora import read_splits
    from redraft.studies.differences import read_kept
    from redraft.studies.hearthstone import GAINS, MEASURES, METRICS, SETTING, SIMILARITIES
    from redraft.studies.prototype_use import gained_rows

    if request.data is None:
        raise PairsError("hearthstone needs the cards; name their folder with --data")
    train, asked = read_splits(request.data, "train", request.split)
    questions = Questions(SETTING, request.split, train, asked)
    runs, kept = request.out / "runs", request.out / "answers" / request.split
    for measure in request.measures:
        for seed in request.seeds:
            with watched(f"{measure.value}, seed {seed}") as observer:
                bench = Bench(questions, FitOptions(seed=seed, observer=observer), runs)
                yield from measured_rows(bench, MEASURES[measure.value], kept)
    yield from compared_rows(kept, METRICS, setting=SETTING, similarities=SIMILARITIES)
    yield from gained_rows(read_kept(kept), SETTING, GAINS)


def _pairs(request: Request) -> Study:
    from redraft.studies.pairs import MEASURES, SPLITS, tables

    if request.split not in SPLITS:
        raise PairsError(f"pairs have no split {request.split!r}; --split is {' or '.join(SPLITS)}")
    _refuse_measures(request, "pairs", MEASURES)
    shown = tables([each.value for each in request.kinds])
    return Study(_pairs_rows(request), (), request.out / "results.json", shown)


def _pairs_rows(request: Request) -> "Iterator[Row]":
    from redraft.fitting import FitOptions
    from redraft.studies.answers import Bench, compared_rows, measured_rows
    from redraft.studies.pairs import MEASURES, METRICS, read_questions

    for kind in (each.value for each in request.kinds):
        runs, kept = request.out / "runs" / kind, request.out / "answers" / kind / request.split
        questions = read_questions(
            kind, request.split, lambda sources: progress(sources, "mining", total=len(sources))
        )
        for measure in (each.value for each in request.measures):
            measures = MEASURES[measure]
            for seed in request.seeds:
                with watched(f"{kind}, {measure}, seed {seed}") as observer:
                    bench = Bench(questions, FitOptions(seed=seed, observer=observer), runs)
                    yield from measured_rows(bench, measures, kept)
        yield from compared_rows(kept, METRICS)


def _autocomplete(request: Request) -> Study:
    from redraft.studies.autocomplete import MEASURES, PUBLISHED
    from redraft.studies.completion_tables import TABLES

    _refuse_measures(request, "autocomplete", MEASURES)
    size = request.size.value
    folder = request.out if request.size is Size.SMALL else request.out / size
    tables = {f"autocomplete {size}, {name}": table for name, table in TABLES.items()}
    rows = _autocomplete_rows(request, folder)
    return Study(rows, PUBLISHED, folder / "results.json", tables)


def _autocomplete_rows(request: Request, folder: Path) -> "Iterator[Row]":
    from redraft.fitting import FitOptions
    from redraft.studies.autocomplete import MEASURES
    from redraft.studies.completion_bench import SIZES, Bench
    from redraft.studies.completion_figures import write_plots
    from redraft.studies.differences import difference_rows, keep, read_kept
    from redraft.studies.functions import Functions

    corpus = request.data or _mined(request.size, folder / "corpus")
    strict, paper = Functions.read(corpus / "strict"), Functions.read(corpus / "paper")
    runs = folder / "runs"
    for measure in request.measures:
        for seed in request.seeds:
            with watched(f"{measure.value}, seed {seed}") as observer:
                options = FitOptions(seed=seed, observer=observer)
                bench = Bench(strict, paper, SIZES[request.size.value], options, runs)
                for rows in MEASURES[measure.value]:
                    for measured in rows(bench):
                        keep(measured, runs)
                        yield measured.row
    kept = read_kept(runs)
    yield from difference_rows(kept)
    write_plots(kept, folder / "plots")


def _mined(size: Size, folder: Path) -> Path:
    """The corpus of this size, downloaded and mined unless it is there."""
    from redraft.cli.mine_packages import FIGURES, mine_packages

    if not (folder / FIGURES).exists():
        name = "packages.txt" if size is Size.FULL else f"packages_{size.value}.txt"
        packages = Path("experiments") / FOLDERS[Name.AUTOCOMPLETE] / name
        if not packages.exists():
            raise PairsError(f"{packages}: not found; run from the project's root, or give --data")
        mine_packages(packages, folder, jobs=None, seed=0, verbose=False)
    return folder


EXPERIMENTS: Mapping[Name, Callable[[Request], Study]] = {
    Name.RETRIEVAL: _retrieval,
    Name.HEARTHSTONE: _hearthstone,
    Name.AUTOCOMPLETE: _autocomplete,
    Name.PAIRS: _pairs,
}
FOLDERS = {Name.AUTOCOMPLETE: "python_autocomplete"}
"""Where an experiment is kept whose name is another one."""
