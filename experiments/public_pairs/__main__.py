"""Measure the default on public pair sets and write results.json.

systems   the default beside the nearest output, substitution, Seq2Seq and the neural editor alone
promises  stored, added and revalued questions, nonsense, confidence and invented values
messy     a support team's messy rows, made from a seed; needs no data

The data is a folder with a subfolder per set, each with train.jsonl, dev.jsonl and test.jsonl: JSON
lines with x, y and optionally meta. Trained systems need the seconds of --budget per set and seed.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.lib.example_scores import append_scores, read_scores
from experiments.lib.results import Measured, Row
from experiments.lib.runner import Study, add_choices, add_measures, measures, parser, run, seeds
from experiments.public_pairs.comparison import comparison_rows
from experiments.public_pairs.confidences import confidence_rows, confidence_values
from experiments.public_pairs.promises import Fitted, best_answer, stored_row, unknown_row
from experiments.public_pairs.sets import PairSet, read_sets, set_names
from experiments.public_pairs.support import support_rows
from experiments.public_pairs.systems import COMPARED, System, defaults, system_rows, systems
from experiments.public_pairs.systems import SYSTEMS as ALL_SYSTEMS
from redraft.cli import _options
from redraft.cli._progress import watched
from redraft.errors import ConfigError
from redraft.training.fit import FitOptions

SYSTEMS, PROMISES, MESSY = "systems", "promises", "messy"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the command line asks for."""
    options = parser(Path(__file__).parent, __doc__)
    add_data_options(options)
    add_measures(options, (SYSTEMS, PROMISES, MESSY))
    run(options, _study, arguments)


def add_data_options(options: ArgumentParser) -> None:
    """Add the options of the data and of the training."""
    options.add_argument("--data", type=Path, help="folder of pair sets")
    options.add_argument("--sets", default="", help="names of sets, separated by commas (all)")
    options.add_argument("--split", default="dev", help="split to answer: dev (default) or test")
    options.add_argument("--budget", default="2m", help="time to train a system (2m)")
    options.add_argument(
        "--no-train", action="store_true", help="leave out systems with a neural network"
    )
    add_choices(options, "--systems", [system.name for system in ALL_SYSTEMS], "systems (all)")
    options.add_argument(
        "--precision", type=float, default=0.9, help="precision to reach by abstaining (0.9)"
    )


@dataclass(frozen=True)
class Request:
    """What a command line asks for."""

    data: Path | None
    names: Sequence[str]
    systems: Sequence[System]
    split: str
    seeds: Sequence[int]
    budget: str
    trains: bool
    precision: float
    answers: Path

    @classmethod
    def of(cls, chosen: Namespace) -> "Request":
        """Return the request of a command line; a wrong one is an error before any measuring."""
        names: list[str] = []
        if set(measures(chosen)) != {MESSY}:
            if chosen.data is None:
                raise ConfigError("--data is missing: the folder of pair sets")
            wanted = [name.strip() for name in chosen.sets.split(",") if name.strip()]
            names = set_names(chosen.data, chosen.split, wanted)
        _options.seconds(chosen.budget)
        if not 0 < chosen.precision <= 1:
            raise ConfigError(f"--precision {chosen.precision}: expected a share such as 0.9")
        return cls(
            chosen.data,
            names,
            systems(trained=not chosen.no_train, names=chosen.systems),
            chosen.split,
            seeds(chosen),
            chosen.budget,
            not chosen.no_train,
            chosen.precision,
            chosen.out / "answers",
        )

    def sets(self) -> Iterator[PairSet]:
        """Yield the sets, each read when it is needed."""
        if self.data is not None:
            yield from read_sets(self.data, self.split, self.names)

    def seeds_of(self, system: System) -> Sequence[int]:
        """Return the seeds of a system: the first, if it does not depend on it."""
        return self.seeds if system.is_trained else (0,)

    def file(self, name: str) -> Path:
        """Return the file of the scores of every question of a set, or of the confidences."""
        return self.answers / f"{name}-{self.split}.jsonl"


def _study(chosen: Namespace) -> Study:
    return Study("public_pairs", _rows(chosen, Request.of(chosen)), chosen.out / "results.json")


def _rows(chosen: Namespace, request: Request) -> Iterator[Row]:
    measured = {SYSTEMS: _system_rows, PROMISES: _promise_rows, MESSY: _messy_rows}
    for name in measures(chosen):
        yield from measured[name](request)


def _system_rows(request: Request) -> Iterator[Row]:
    for pairs in request.sets():
        for system in request.systems:
            for seed in request.seeds_of(system):
                with watched(f"{pairs.name}, {system.name}, seed {seed}") as on_step:
                    budget = _options.seconds(request.budget)
                    options = FitOptions(seed=seed, budget=budget, on_step=on_step)
                    config = {"budget": request.budget}
                    for one in system_rows(system, pairs, options, config=config):
                        append_scores(one, request.file(pairs.name), metrics=COMPARED)
                        yield one.row
    yield from comparison_rows(_kept(request), request.split)


def _kept(request: Request) -> list[Measured]:
    """Return the scores of all sets that were ever measured, so that means are over all of them."""
    files = sorted(request.answers.glob(f"*-{request.split}.jsonl"))
    kept = (one for file in files for one in read_scores(file))
    return [one for one in kept if set(COMPARED) <= set(one.values)]


def _promise_rows(request: Request) -> Iterator[Row]:
    confidences = request.file("confidence")
    for pairs in request.sets():
        untrained = defaults(trained=False)[0]
        refitted = untrained.fit([*pairs.train, *pairs.asked], FitOptions())
        for system in defaults(trained=request.trains):
            for seed in request.seeds_of(system):
                budget = _options.seconds(request.budget)
                model = system.fit(pairs.train, FitOptions(seed=seed, budget=budget))
                fitted = Fitted(system.name, seed, model, pairs)
                answers = [best_answer(model, example.x) for example in pairs.asked]
                yield stored_row(fitted, refitted)
                yield unknown_row(fitted, answers)
                values = confidence_values(fitted, answers, request.precision)
                if values is not None:
                    append_scores(values, confidences)
    yield from confidence_rows(read_scores(confidences), request.precision)


def _messy_rows(request: Request) -> Iterator[Row]:
    for one in support_rows():
        append_scores(one, request.file("support"))
        yield one.row


if __name__ == "__main__":
    main()
