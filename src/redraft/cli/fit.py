"""`redraft fit`: pairs to a model."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from redraft.cli import options
from redraft.cli.console import emit, working
from redraft.cli.options import PairsArgument, XColumns, YColumn


def command(
    pairs: PairsArgument,
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for the model.")],
    retriever: Annotated[
        str,
        typer.Option(help="lexical, bm25 or none; task, input or hybrid, which are learned."),
    ] = "lexical",
    editor: Annotated[str, typer.Option(help="verbatim: the prototype as it is.")] = "verbatim",
    config: Annotated[
        Path | None,
        typer.Option(help="TOML with settings for [retriever.network], .numbering, .training."),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same weights.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    x_columns: XColumns = "",
    y_column: YColumn = "y",
) -> None:
    """Fit a model on pairs and save it to a folder.

    The folder holds plain data files and may be copied anywhere. A folder that holds a model is
    replaced in one step. A training that was stopped, by Ctrl-C or by a kill, goes on when the
    same command is given again; until it is done, its state is in OUT.training.

    Example: `redraft fit pairs.jsonl -o model/ --retriever hybrid`
    """
    from redraft.artifact import ensure_writable
    from redraft.cli.training import watched
    from redraft.config import read_toml
    from redraft.data.pairs import read_pairs
    from redraft.experiment import FitOptions, describe_model
    from redraft.retrieve_and_edit import RetrieveAndEdit

    ensure_writable(out)
    settings = read_toml(config) if config else {}
    with working(f"reading {pairs.name}"):
        examples = read_pairs(pairs, options.columns(x_columns, y_column))
    run = out.with_name(out.name + ".training")
    with watched(f"training {retriever}") as observer:
        fit = FitOptions(settings, seed=seed, device=device, folder=run, observer=observer)
        model = RetrieveAndEdit.fit(examples, retriever=retriever, editor=editor, options=fit)
    with working("saving"):
        model.save(out)
    if run.exists():
        shutil.rmtree(run)
    emit(describe_model(out))
