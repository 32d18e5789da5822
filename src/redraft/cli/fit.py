"""`redraft fit`: pairs to a model."""

from pathlib import Path
from typing import Annotated

import typer

from redraft.cli import options
from redraft.cli.console import emit, working
from redraft.cli.options import PairsArgument, XColumns, YColumn


def command(
    pairs: PairsArgument,
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for the model.")],
    retriever: Annotated[str, typer.Option(help="lexical, bm25 or none.")] = "lexical",
    editor: Annotated[str, typer.Option(help="verbatim: the prototype as it is.")] = "verbatim",
    x_columns: XColumns = "",
    y_column: YColumn = "y",
) -> None:
    """Fit a model on pairs and save it to a folder.

    The folder holds plain data files and may be copied anywhere. A folder that holds a model is
    replaced in one step.

    Example: `redraft fit pairs.jsonl -o model/ --retriever bm25`
    """
    from redraft.artifact import ensure_writable
    from redraft.data.pairs import read_pairs
    from redraft.experiment import describe_model
    from redraft.retrieve_and_edit import RetrieveAndEdit

    ensure_writable(out)
    with working(f"reading {pairs.name}"):
        examples = read_pairs(pairs, options.columns(x_columns, y_column))
    with working(f"fitting {len(examples):,} examples"):
        model = RetrieveAndEdit.fit(examples, retriever=retriever, editor=editor)
        model.save(out)
    emit(describe_model(out))
