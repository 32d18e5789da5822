"""Build a corpus of Python functions from a list of pinned packages.

A line of the list is NAME==VERSION or NAME==VERSION SPLIT, where SPLIT is train, dev or test; #
starts a comment. pip downloads wheels to OUT/archives, where your own archives may stand already;
they are read there, and nothing is installed or run. The pairs go to
OUT/{paper,strict}/{train,dev,test}.jsonl, and their counts to OUT/statistics.json. The same command
resumes after an interruption.
"""

import os
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path

from experiments.corpus.run import write_corpus
from experiments.lib.runner import count, one_line_errors


def main(arguments: Sequence[str] | None = None) -> None:
    """Build the corpus that the command line asks for."""
    options = ArgumentParser(
        prog="python -m experiments.corpus",
        description=__doc__,
        formatter_class=RawDescriptionHelpFormatter,
    )
    options.add_argument("list", type=Path, help="packages, one per line")
    options.add_argument("-o", "--out", type=Path, required=True, help="folder to write to")
    options.add_argument(
        "--jobs", type=count, default=os.cpu_count() or 1, help="processes (one per core)"
    )
    options.add_argument("--seed", type=int, default=0, help="seed of the split (0)")
    chosen = options.parse_args(arguments)
    with one_line_errors():
        write_corpus(chosen.list, chosen.out, jobs=chosen.jobs, seed=chosen.seed)


if __name__ == "__main__":
    main()
