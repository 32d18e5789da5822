"""Write a support team's messy pairs to a folder.

train.jsonl     300 rows of question and SQL
dev.jsonl       60 held-out questions; meta.kind says what the answer needs
nonsense.jsonl  inputs that must be marked unknown
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from experiments.messy.nonsense import nonsense
from experiments.messy.support_pairs import held_out, stored_rows
from redraft.data.pairs import write_pairs


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the three files that the command line asks for."""
    options = argparse.ArgumentParser(
        prog="python -m experiments.messy",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("-o", "--out", type=Path, required=True, help="folder to write to")
    options.add_argument("--seed", type=int, default=0, help="another team (0)")
    options.add_argument("--nonsense", type=int, default=240, help="nonsense inputs (240)")
    chosen = options.parse_args(arguments)
    train, dev = stored_rows(chosen.seed), held_out(chosen.seed)
    known = [example.x for example in (*train, *dev)]
    files = {
        "train": train,
        "dev": dev,
        "nonsense": nonsense(chosen.seed, chosen.nonsense, known),
    }
    for name, examples in files.items():
        path = chosen.out / f"{name}.jsonl"
        print(f"{path}: {write_pairs(examples, path)} rows")


if __name__ == "__main__":
    main()
