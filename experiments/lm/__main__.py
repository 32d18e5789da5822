"""Completion in a project with a language model, and its answers on messy pairs.

collect  ask a language model and the product at cursors, and append every answer to a file;
         the same command resumes after an interruption
fit      train the mixture of suggestions on such files, and write it into the package
pairs    ask a language model on a team's messy pairs, and add the row to results.json
compare  compare all systems on pair sets, and add the rows to results.json
measure  write the rows of such files to results.json

The wheels are those that `python -m experiments.corpus LIST -o OUT` keeps in OUT/archives; the
language model is served by `redraft lm start smollm2`.
"""

import random
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from experiments.completion.__main__ import LIST, read_projects
from experiments.lib.results import Row, read_results, write_results
from experiments.lm.collection import (
    Answer,
    Collector,
    CursorAnswer,
    ForcedAnswer,
    from_line,
    place_of,
    to_line,
)
from experiments.lm.mixture import fit_mixture, write_mixture
from experiments.lm.pairs import ask, pair_row, pooled_row
from experiments.lm.sets import ALL_SETS, COMPARED, all_sets_rows, set_row
from experiments.lm.summary import cursor_rows, forced_rows
from experiments.public_pairs.sets import read_sets, set_names
from redraft.completion.mixing import WEIGHTS, starter_mixture
from redraft.lm.address import LmAddress
from redraft.lm.client import LmClient

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line asks."""
    parser = ArgumentParser(
        prog="python -m experiments.lm",
        description=__doc__,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("action", choices=sorted(_ACTIONS))
    parser.add_argument("--archives", type=Path, help="folder of wheels")
    parser.add_argument("--list", type=Path, default=LIST, help="packages with their split")
    parser.add_argument("--split", default="test", help="split of the list")
    parser.add_argument("--functions", type=int, default=12, help="functions of each project")
    parser.add_argument("--lm", default="http://127.0.0.1:8080/v1", help="address")
    parser.add_argument("--shots", default="0,3", help="retrieved functions at cursors")
    parser.add_argument("--forced", default="", help="retrieved functions, all words")
    parser.add_argument("--subset", default="", help="name of the functions, if not all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--questions", type=int, default=60, help="of a team or a pair set")
    parser.add_argument("--sets", type=Path, help="folder of pair sets")
    parser.add_argument("--only", nargs="*", default=[], help="names of pair sets")
    parser.add_argument("--answers", type=Path, nargs="*", default=[], help="files of answers")
    chosen = parser.parse_args(arguments)
    _ACTIONS[chosen.action](chosen)


def _collect(chosen: Namespace) -> None:
    path = chosen.answers[0]
    done = frozenset(place_of(answer) for answer in _read([path] if path.exists() else []))
    with (
        LmClient(LmAddress.parse(chosen.lm)) as client,
        path.open("a", encoding="utf-8") as out,
    ):
        rng = random.Random(chosen.seed)
        collector = Collector(client, client.find_model(None), rng, done=done)
        for project in read_projects(chosen, chosen.split):
            for answer in collector.ask(project, _counts(chosen.shots), _counts(chosen.forced)):
                out.write(to_line(answer))
                out.flush()


def _fit(chosen: Namespace) -> None:
    answers = [answer for answer in _read(chosen.answers) if isinstance(answer, CursorAnswer)]
    write_mixture(fit_mixture([answer for answer in answers if answer.shots]), WEIGHTS)


def _measure(chosen: Namespace) -> None:
    answers = _read(chosen.answers)
    forced = [answer for answer in answers if isinstance(answer, ForcedAnswer)]
    cursors = [answer for answer in answers if isinstance(answer, CursorAnswer)]
    rows = forced_rows(forced, chosen.split, chosen.seed)
    rows = [replace(row, subset=chosen.subset) for row in rows]
    if cursors:
        rows += cursor_rows(cursors, starter_mixture(), chosen.split, chosen.seed)
    _write(rows)


def _pairs(chosen: Namespace) -> None:
    shots = _counts(chosen.shots)[-1]
    with LmClient(LmAddress.parse(chosen.lm)) as client:
        row = pair_row(ask(client, chosen.seed, shots, chosen.questions))
    _write([row])
    _write([pooled_row([row for row in read_results(RESULTS) if "mixed" in row.config])])


def _compare(chosen: Namespace) -> None:
    shots = _counts(chosen.shots)[-1]
    names = set_names(chosen.sets, "dev", chosen.only)
    with LmClient(LmAddress.parse(chosen.lm)) as client:
        for pairs in read_sets(chosen.sets, "dev", names):
            row = set_row(pairs, client, questions=chosen.questions, shots=shots, seed=chosen.seed)
            _write([row])
            rows = [row for row in read_results(RESULTS) if row.setting.startswith(COMPARED)]
            _write(all_sets_rows([row for row in rows if row.setting != ALL_SETS]))


def _write(rows: Sequence[Row]) -> None:
    write_results(RESULTS, "lm", rows)


def _read(paths: Sequence[Path]) -> list[Answer]:
    return [
        from_line(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()
    ]


def _counts(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


_ACTIONS: dict[str, Callable[[Namespace], None]] = {
    "collect": _collect,
    "compare": _compare,
    "fit": _fit,
    "measure": _measure,
    "pairs": _pairs,
}


if __name__ == "__main__":
    main()
