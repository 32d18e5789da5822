"""`redraft split`: split a file of pairs into train, dev and test."""

import re
from pathlib import Path
from typing import Annotated

import typer

from redraft.cli import _options as options
from redraft.cli._console import emit, progress
from redraft.cli._options import PairsArgument, SkipBad, XColumns, YColumn, ranged
from redraft.config.ranges import SEED
from redraft.errors import PairsError

_PART_NAME = re.compile(r"\w[\w-]{0,99}")


def command(
    pairs: PairsArgument,
    out: Annotated[
        Path, typer.Option("-o", "--out", help="Output folder; each split becomes NAME.jsonl.")
    ],
    shares: Annotated[
        str, typer.Option(help="Names of the splits and their shares, which sum to 1.")
    ] = "train=0.8,dev=0.1,test=0.1",
    by: Annotated[
        str | None,
        typer.Option(help="Keep pairs with the same value of this meta key in the same split."),
    ] = None,
    seed: Annotated[int, ranged(SEED, "Random seed.")] = 0,
    x_columns: XColumns = "",
    y_column: YColumn = "y",
    skip_bad: SkipBad = None,
) -> None:
    """Split pairs at random, or by groups with `--by`.

    Without `--by`, pairs whose inputs are equal or nearly so stay in one split: otherwise the test
    set would repeat questions of the training set.

    Example: `redraft split pairs.jsonl -o parts/ --by package`
    """
    from redraft.data.pairs import write_pairs
    from redraft.data.split import similar_inputs, split
    from redraft.storage.disk import gather
    from redraft.storage.output_folder import claim, ensure_ours

    parts = _parse_shares(shares)
    for path in (out / f"{name}.jsonl" for name in parts):
        if path.exists() and pairs.exists() and path.samefile(pairs):
            raise PairsError(f"{pairs}: the input would be overwritten; name another folder")
    ensure_ours(out, "split")
    rows = options.read_examples(pairs, options.columns(x_columns, y_column), skip_bad=skip_bad)
    claim(out, "split")
    examples = gather(progress(rows, f"reading {pairs.name}"), out)
    groups = None if by else similar_inputs(progress(examples, "comparing inputs"))
    split_examples = split(examples, parts, seed=seed, by=by, groups=groups)
    for name, part in split_examples.items():
        path = out / f"{name}.jsonl"
        emit({"part": name, "file": str(path), "pairs": write_pairs(part, path)})


def _parse_shares(shares: str) -> dict[str, float]:
    """Return the share of every split; names must be plain file names."""
    try:
        parts = {name: float(share) for name, share in (p.split("=") for p in shares.split(","))}
    except ValueError as error:
        raise PairsError(f"--shares {shares}: expected NAME=SHARE,NAME=SHARE") from error
    for name in parts:
        if not _PART_NAME.fullmatch(name):
            raise PairsError(
                f"--shares {shares}: {name!r} is not a file name; use letters, digits, - and _"
            )
    return parts
