"""Completion from the code of a project.

train    train the ranker on projects of a list, and write it into the package
cursors  write the cut projects and their cursors to OUT, for systems that are asked apart
peers    train networks and write their suggestions at the cursors to OUT
measure  ask the product at cursors of held-out projects, and write results.json
type     type functions of held-out projects with its help, and write typing.json

The wheels are those that `python -m experiments.corpus LIST -o OUT` keeps in OUT/archives.
"""

import random
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from experiments.completion.measurement import measure
from experiments.completion.peers import recorded, trained_peers
from experiments.completion.projects import (
    CURSORS,
    MISSING,
    CutProject,
    archives,
    cut,
    indexed_model,
    read_wheel,
)
from experiments.completion.recorded import read_recorded, write_cursors
from experiments.completion.summary import rows_of, summary, typing_rows
from experiments.completion.training import IndexedProject, fit_similarity, fit_trees, rankings
from experiments.completion.typing import typed
from experiments.lib.results import write_results
from experiments.lib.runner import one_line_errors
from redraft.cli._console import progress
from redraft.completion.engine import CompletionEngine
from redraft.completion.project_session import STARTER
from redraft.errors import PairsError

HERE = Path(__file__).parent
LIST = HERE.parent / "autocomplete" / "packages_small.txt"


def main(arguments: Sequence[str] | None = None) -> None:
    """Train or measure, as the command line asks."""
    parser = ArgumentParser(
        prog="python -m experiments.completion",
        description=__doc__,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("action", choices=tuple(ACTIONS))
    parser.add_argument("--archives", type=Path, required=True, help="folder of wheels")
    parser.add_argument("--list", type=Path, default=LIST, help="packages with their split")
    parser.add_argument("--split", help="split of the list (train to train, test to measure)")
    parser.add_argument("--functions", type=int, default=20, help="functions of each project")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--peer",
        action="append",
        default=[],
        metavar="NAME=MODEL",
        help="also measure a trained model, pointed at each project",
    )
    parser.add_argument(
        "--recorded",
        type=Path,
        metavar="FOLDER",
        help="also measure suggestions made at the same cursors: files NAME.jsonl of a folder",
    )
    parser.add_argument("--corpus", type=Path, help="corpus that the peers train on")
    parser.add_argument(
        "--without-file",
        action="store_true",
        help="do not index the files of the asked functions",
    )
    parser.add_argument("--answers", type=Path, help="file to write every suggestion to")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of results.json")
    chosen = parser.parse_args(arguments)
    with one_line_errors():
        ACTIONS[chosen.action](chosen)


def _train(chosen: Namespace) -> None:
    projects = [IndexedProject.of(project) for project in read_projects(chosen, "train")]
    weights = fit_similarity(progress(projects, "similarities", total=len(projects)))
    rng = random.Random(chosen.seed)
    rows = [
        row
        for indexed in progress(projects, "continuations", total=len(projects))
        for row in rankings(indexed, weights, rng)
    ]
    STARTER.mkdir(exist_ok=True)
    np.save(STARTER / "similarity.npy", weights)
    fit_trees(rows, chosen.seed).save(STARTER / "acceptance.npz")


def _measure(chosen: Namespace) -> None:
    rng = random.Random(chosen.seed)
    projects = list(read_projects(chosen, "test"))
    peers = {name: Path(model) for name, _, model in (one.partition("=") for one in chosen.peer)}
    files = sorted(chosen.recorded.glob("*.jsonl")) if chosen.recorded else []
    apart = {file.stem: read_recorded(file) for file in files}
    with_file = not chosen.without_file
    answers = list(measure(projects, rng, peers=peers, recorded=apart, with_file=with_file))
    chosen.out.mkdir(parents=True, exist_ok=True)
    if chosen.answers:  # code of other people: for reading, not to be published
        lines = "".join(answer.to_json() + "\n" for answer in answers)
        chosen.answers.write_text(lines, encoding="utf-8")
    split = chosen.split or "test"
    variant = "" if with_file else "other files"
    rows = rows_of(answers, split, chosen.seed, variant=variant)
    write_results(chosen.out / "results.json", "completion", rows)
    print(summary(answers, (*CURSORS, MISSING)))


def _cursors(chosen: Namespace) -> None:
    write_cursors(list(read_projects(chosen, "test")), random.Random(chosen.seed), chosen.out)


def _peers(chosen: Namespace) -> None:
    if chosen.corpus is None:
        raise PairsError("peers train on a corpus: name it with --corpus")
    projects = list(read_projects(chosen, "test"))
    for name, editor in trained_peers(chosen.corpus, chosen.out / "runs", chosen.seed):
        found = recorded(editor, projects, random.Random(chosen.seed))
        text = "".join(one.to_json() + "\n" for one in found)
        (chosen.out / f"{name}.jsonl").write_text(text, encoding="utf-8")


def _type(chosen: Namespace) -> None:
    projects = list(read_projects(chosen, "test"))
    functions = [
        function
        for project in progress(projects, "projects", total=len(projects))
        for function in typed(project, CompletionEngine(indexed_model(project)))
    ]
    split = chosen.split or "test"
    rows = typing_rows(functions, split, chosen.seed)
    chosen.out.mkdir(parents=True, exist_ok=True)
    write_results(chosen.out / "typing.json", "completion", rows)
    for row in rows:
        print(row.system_label, dict(row.metrics), dict(row.interval))


def read_projects(chosen: Namespace, split: str) -> Iterator[CutProject]:
    """Yield the projects of a split, with functions cut out."""
    rng = random.Random(chosen.seed)
    packages = _packages(chosen.list, chosen.split or split)
    wheels = archives(chosen.archives, packages)
    for wheel in progress(wheels, "reading", total=len(wheels)):
        yield cut(wheel.name.split("-")[0], read_wheel(wheel), chosen.functions, rng)


def _packages(path: Path, split: str) -> list[str]:
    lines = (line.split("#")[0].split() for line in path.read_text(encoding="utf-8").splitlines())
    return [line[0] for line in lines if line[1:] == [split]]


ACTIONS: Mapping[str, Callable[[Namespace], None]] = {
    "train": _train,
    "cursors": _cursors,
    "peers": _peers,
    "measure": _measure,
    "type": _type,
}


if __name__ == "__main__":
    main()
