"""`redraft add`: more examples for a model, without training again."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from redraft.cli import options
from redraft.cli.console import emit, working
from redraft.cli.options import ModelArgument, PairsArgument, StoreOption, XColumns, YColumn
from redraft.errors import PairsError

if TYPE_CHECKING:
    from redraft.data.example import Example


def command(
    model: ModelArgument,
    pairs: PairsArgument,
    x_columns: XColumns = "",
    y_column: YColumn = "y",
    store: StoreOption = None,
) -> None:
    """Add examples to a model: they can be retrieved at once, nothing is trained again.

    Killed at any moment, the folder holds the old model or the new one. In a store all examples
    come in one transaction, and whoever serves the model from there answers from them at once.
    Where the weights know little of what was added, `redraft predict --studied 4` brings more of
    it: before each answer a copy of the network learns the nearest examples.

    Example: `redraft add model/ new_pairs.jsonl`
    """
    from redraft.data.filed import gather
    from redraft.data.pairs import read_numbered
    from redraft.experiment import describe_model
    from redraft.retrieve_and_edit import RetrieveAndEdit

    with working(f"reading {pairs.name}"):
        loaded = RetrieveAndEdit.load(model, store=store)
        known = loaded.retriever.examples
        fields = list(known[0].x) if known else None
        read = read_numbered(pairs, options.columns(x_columns, y_column))
        coming = (_with_fields(each, fields, pairs) for _, each in read)
        examples = gather(coming, model)
    with working(f"adding {len(examples):,} examples"):
        RetrieveAndEdit(loaded.retriever.add(examples), loaded.editor).save(model)
    emit({"added": len(examples), **describe_model(model, store=store)})


def _with_fields(example: "Example", fields: list[str] | None, pairs: Path) -> "Example":
    """The example with the fields of a model in their order: a file may have another."""
    if fields is None:
        return example
    if set(example.x) != set(fields):
        raise PairsError(f"{pairs}: the fields of this model's input are: {', '.join(fields)}")
    return replace(example, x={name: example.x[name] for name in fields})
