"""`redraft fit`: pairs to a model."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from redraft.cli import options
from redraft.cli.console import emit, remark, working
from redraft.cli.options import PairsArgument, StoreOption, XColumns, YColumn
from redraft.config import DEFAULT_EDITOR, DEFAULT_RETRIEVER


def command(
    pairs: PairsArgument,
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for the model.")],
    retriever: Annotated[
        str,
        typer.Option(help="bm25, lexical or none; task, input or hybrid, which are learned."),
    ] = DEFAULT_RETRIEVER,
    editor: Annotated[
        str, typer.Option(help="neural, which is learned; verbatim: the prototype as it is.")
    ] = DEFAULT_EDITOR,
    budget: Annotated[
        str, typer.Option(help="Train no longer than this, such as 90s, 10m or 1h.")
    ] = "",
    config: Annotated[
        Path | None,
        typer.Option(
            help="TOML with settings for [retriever.training], [editor.network] and so on."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same weights.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    x_columns: XColumns = "",
    y_column: YColumn = "y",
    store: StoreOption = None,
) -> None:
    """Fit a model on pairs and save it to a folder: a retriever that learns first, then the editor.

    Sizes and steps follow the number of pairs; they are told before the training begins, and a
    TOML file changes them. A tenth of the pairs is held out of training, to choose the weights
    and to learn how far answers can be trusted; then it joins the examples to retrieve from.

    The folder holds plain data files and may be copied anywhere. A folder that holds a model is
    replaced in one step. A training that was stopped, by Ctrl-C or by a kill, goes on when the
    same command is given again; until it is done, its state is in OUT.training.

    With `--store` the examples and their vectors go to PostgreSQL, into a schema of this model's
    own, and the folder holds the weights. Its other verbs are then given the same `--store`.

    Examples: `redraft fit pairs.jsonl -o model/ --budget 10m`,
    `redraft fit pairs.jsonl -o model/ --retriever bm25 --editor verbatim`
    """
    from redraft.artifact import ensure_writable
    from redraft.cli.training import watched
    from redraft.config import read_toml
    from redraft.data.pairs import read_pairs
    from redraft.experiment import describe_model
    from redraft.fitting import FitOptions
    from redraft.retrieval.postgres import check
    from redraft.retrieve_and_edit import RetrieveAndEdit

    ensure_writable(out)
    if store is not None:
        check(store)  # before anything is trained
    limit = options.seconds(budget)
    settings = options.part_settings(read_toml(config), config) if config else {}
    with working(f"reading {pairs.name}"):
        examples = read_pairs(pairs, options.columns(x_columns, y_column))
    run = out.with_name(out.name + ".training")
    with watched("training") as observer:
        fit = FitOptions(
            settings,
            seed=seed,
            device=device,
            folder=run,
            observer=observer,
            budget=limit,
            tell=remark,
        )
        model = RetrieveAndEdit.fit(examples, retriever=retriever, editor=editor, options=fit)
    with working("saving"):
        model.save(out, store=store)
    if run.exists():
        shutil.rmtree(run)
    emit(describe_model(out, store=store))
