"""Run an experiment from the command line: print a JSON line per row, write results.json.

Knows how rows are measured seed by seed and where they go; knows no dataset and no page: the
tables of the pages are written by `python -m experiments.tables`.
"""

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.lib.bench import Bench, Questions, Rows, measured_rows
from experiments.lib.results import Row, current_commit, write_results
from redraft.cli._console import emit, print_note, progress
from redraft.cli._progress import watched
from redraft.errors import RedraftError, TrainingInterrupted
from redraft.mining.python_functions import Source
from redraft.training.fit import FitOptions


def parser(folder: Path, description: str | None) -> ArgumentParser:
    """Return a parser with the options of every experiment: seeds, and the output folder.

    `folder` is that of the experiment, where results.json goes unless `--out` names another.
    """
    options = ArgumentParser(
        prog=f"python -m experiments.{folder.name}",
        description=description,
        formatter_class=RawDescriptionHelpFormatter,
    )
    options.add_argument("--seeds", type=count, default=3, help="number of seeds (3)")
    options.add_argument(
        "--first-seed", type=int, default=0, help="first seed (0); earlier runs join the mean"
    )
    options.add_argument("-o", "--out", type=Path, default=folder, help="folder of results.json")
    return options


def count(text: str) -> int:
    """Return `text` as a number of at least 1."""
    if not text.isdigit() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)


def add_choices(
    options: ArgumentParser, name: str, choices: Collection[str], help_text: str
) -> None:
    """Add an option that takes one or several of `choices`, also when it is repeated."""
    options.add_argument(
        name,
        nargs="+",
        action="extend",
        choices=list(choices),
        metavar="NAME",
        help=f"{help_text}: {', '.join(choices)}",
    )


def add_measures(options: ArgumentParser, names: Collection[str]) -> None:
    """Add `--measure`; see `measures`."""
    add_choices(options, "--measure", names, "what to measure (systems)")


def measures(chosen: Namespace) -> Sequence[str]:
    """Return the names of the measures that a command line asks for, by default the systems."""
    names: Sequence[str] = chosen.measure or ["systems"]
    return names


@dataclass(frozen=True)
class Study:
    """An experiment to record: its rows while they are measured, and where they are written."""

    name: str
    rows: Iterator[Row]
    results: Path
    published: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class Plan:
    """What to measure with which seeds: measures by name, and the folder that trainings go to."""

    measures: Mapping[str, Sequence[Rows]]
    seeds: Sequence[int]
    runs: Path

    @classmethod
    def of(cls, chosen: Namespace, known: Mapping[str, Sequence[Rows]], runs: Path) -> "Plan":
        """Return the plan that a command line asks for, out of the `known` measures."""
        return cls({name: known[name] for name in measures(chosen)}, seeds(chosen), runs)


def seeds(chosen: Namespace) -> Sequence[int]:
    """Return the seeds that the options of a command line ask for."""
    return range(chosen.first_seed, chosen.first_seed + chosen.seeds)


def bench_rows(questions: Questions, plan: Plan, scores: Path) -> Iterator[Row]:
    """Yield the rows of every measure and seed of `plan` on `questions`.

    The scores of every question are appended to the file `scores`. A training that was interrupted
    resumes from `plan.runs`.
    """
    for name, measure in plan.measures.items():
        for seed in plan.seeds:
            with watched(f"{questions.setting}, {name}, seed {seed}") as on_step:
                bench = Bench(questions, FitOptions(seed=seed, on_step=on_step), plan.runs)
                yield from measured_rows(bench, measure, scores)


def record(study: Study) -> list[Row]:
    """Print every row of `study` and write results.json after each; return the written rows."""
    current_commit()  # the code that runs, whatever is committed meanwhile
    rows: list[Row] = []
    written: list[Row] = []
    for row in study.rows:
        place = {"system": row.system_label, "setting": row.setting_label}
        emit({**place, "seed": row.seed, **row.metrics})
        rows.append(row)
        written = write_results(study.results, study.name, rows, published=study.published)
    print_note(f"results: {study.results}; `python -m experiments.tables` updates the pages")
    return written


def mining_progress(sources: Sequence[Source]) -> Iterator[Source]:
    """Yield `sources` with a progress bar on stderr."""
    return progress(sources, "mining", total=len(sources))


def run(
    options: ArgumentParser,
    study: Callable[[Namespace], Study],
    arguments: Sequence[str] | None = None,
) -> None:
    """Record the study that the command line asks for; a user's mistake ends in one line."""
    chosen = options.parse_args(arguments)
    with one_line_errors():
        record(study(chosen))


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Exit with one line on stderr after a user's mistake (2) or an interruption (130)."""
    try:
        yield
    except TrainingInterrupted as stop:
        print_note(str(stop))
        sys.exit(130)
    except RedraftError as error:
        print_note(f"error: {error}")
        sys.exit(2)
    except KeyboardInterrupt:
        print_note("interrupted; run the same command again to resume")
        sys.exit(130)
