"""`redraft split`: one file of pairs into train, dev and test."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from redraft.cli import options
from redraft.cli.console import emit, progress
from redraft.cli.options import PairsArgument, XColumns, YColumn
from redraft.errors import PairsError


def command(
    pairs: PairsArgument,
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for NAME.jsonl of every part.")],
    shares: Annotated[
        str, typer.Option(help="Parts and their shares.")
    ] = "train=0.8,dev=0.1,test=0.1",
    by: Annotated[
        str | None,
        typer.Option(help="Keep pairs together that have the same value of this meta key."),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same parts.")] = 0,
    x_columns: XColumns = "",
    y_column: YColumn = "y",
) -> None:
    """Split pairs into parts, at random or by whole groups.

    Example: `redraft split pairs.jsonl -o parts/ --by package`
    """
    from redraft.data.filed import gather
    from redraft.data.pairs import read_numbered, write_pairs
    from redraft.data.split import split

    try:
        parts = {name: float(share) for name, share in (p.split("=") for p in shares.split(","))}
    except ValueError as error:
        raise PairsError(f"--shares {shares}: expected NAME=SHARE,NAME=SHARE") from error
    read = progress(
        read_numbered(pairs, options.columns(x_columns, y_column)), f"reading {pairs.name}"
    )
    shutil.rmtree(out / ".staging-pairs", ignore_errors=True)  # what a killed run had read
    examples = gather((each for _, each in read), out / ".staging-pairs")
    found = split(examples, parts, seed=seed, by=by)
    out.mkdir(parents=True, exist_ok=True)
    for name, part in found.items():
        path = out / f"{name}.jsonl"
        emit({"part": name, "file": str(path), "pairs": write_pairs(part, path)})
