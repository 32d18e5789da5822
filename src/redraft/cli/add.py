"""`redraft add`: more examples for a model, without training again."""

from dataclasses import replace

from redraft.cli import options
from redraft.cli.console import emit, working
from redraft.cli.options import ModelArgument, PairsArgument, StoreOption, XColumns, YColumn
from redraft.errors import PairsError


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

    Example: `redraft add model/ new_pairs.jsonl`
    """
    from redraft.data.pairs import read_pairs
    from redraft.experiment import describe_model
    from redraft.retrieve_and_edit import RetrieveAndEdit

    examples = read_pairs(pairs, options.columns(x_columns, y_column))
    with working(f"adding {len(examples):,} examples"):
        loaded = RetrieveAndEdit.load(model, store=store)
        known = loaded.retriever.examples
        if known and set(known[0].x) != set(examples[0].x):
            fields = ", ".join(known[0].x)
            raise PairsError(f"{pairs}: the fields of this model's input are: {fields}")
        if known:  # a file may name them in another order
            order = list(known[0].x)
            examples = [replace(each, x={n: each.x[n] for n in order}) for each in examples]
        RetrieveAndEdit(loaded.retriever.add(examples), loaded.editor).save(model)
    emit({"added": len(examples), **describe_model(model, store=store)})
