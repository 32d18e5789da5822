"""`redraft fit`: pairs to a model."""

import os
import shutil
from pathlib import Path
from typing import Annotated

import typer

from redraft.cli import options
from redraft.cli.console import emit
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

    From 100,000 pairs on they are kept in files and not in memory, and trained on by parts.

    The folder holds plain data files and may be copied anywhere. A folder that holds a model is
    replaced in one step. A training that was stopped, by Ctrl-C or by a kill, goes on when the
    same command is given again; until it is done, its state is in OUT.training.

    On several processes or machines: `torchrun --nproc-per-node 2 --max-restarts 3 -m redraft fit`
    and the same arguments. The batches are shared out, and the weights are those of one process but
    for rounding and dropout; after the loss of a worker all go on from the last save.

    With `--store` the examples and their vectors go to PostgreSQL, into a schema of this model's
    own, and the folder holds the weights. Its other verbs are then given the same `--store`.

    Examples: `redraft fit pairs.jsonl -o model/ --budget 10m`,
    `redraft fit pairs.jsonl -o model/ --retriever bm25 --editor verbatim`
    """
    from redraft.artifact import ensure_writable
    from redraft.cli.training import speaker
    from redraft.config import read_toml
    from redraft.data.filed import gather
    from redraft.data.pairs import read_numbered
    from redraft.experiment import describe_model
    from redraft.fitting import FitOptions
    from redraft.retrieval.postgres import check
    from redraft.retrieve_and_edit import RetrieveAndEdit
    from redraft.training.workers import connected

    ensure_writable(out)
    if store is not None:
        check(store)  # before anything is trained
    limit = options.seconds(budget)
    settings = options.part_settings(read_toml(config), config) if config else {}
    run = out.with_name(out.name + ".training")
    with connected(os.environ, device) as workers, speaker(workers) as speak:
        with speak.working(f"reading {pairs.name}"):
            read = read_numbered(pairs, options.columns(x_columns, y_column))
            own = run / f"examples-{workers.rank}"
            shutil.rmtree(own, ignore_errors=True)  # what a killed run had read
            examples = gather((each for _, each in read), own)
        with speak.watched("training") as observer:
            fit = FitOptions(
                settings,
                seed=seed,
                device=device,
                folder=run,
                observer=observer,
                budget=limit,
                tell=speak.remark,
                workers=workers,
            )
            model = RetrieveAndEdit.fit(examples, retriever=retriever, editor=editor, options=fit)
        if workers.is_first:
            with speak.working("saving"):
                model.save(out, store=store)
    if workers.is_first:
        shutil.rmtree(run, ignore_errors=True)  # others may be removing their own files in it
        emit(describe_model(out, store=store))
