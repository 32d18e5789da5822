"""`redraft add`: add examples to a model without retraining."""

from redraft.cli import _options as options
from redraft.cli._console import emit, working
from redraft.cli._options import (
    ModelArgument,
    PairsArgument,
    SkipBad,
    StoreOption,
    XColumns,
    YColumn,
)


def command(
    model: ModelArgument,
    pairs: PairsArgument,
    x_columns: XColumns = "",
    y_column: YColumn = "y",
    skip_bad: SkipBad = None,
    store: StoreOption = None,
) -> None:
    """Add examples to a model. They can be retrieved at once; nothing is retrained.

    The update is atomic: if the command is killed, the folder holds the old model or the new one.
    Concurrent writers wait for each other. With a store, all examples are added in one
    transaction, and every server of the model uses them immediately.
    If the new examples differ from the training data, `redraft predict --ttt-steps 4` helps: it
    trains a copy of the network on the nearest examples before each answer.

    Example: `redraft add model/ new_pairs.jsonl`
    """
    from redraft.model import RetrieveAndEdit
    from redraft.persistence import describe_model, locked
    from redraft.storage.disk import gather

    with locked(model):
        with working(f"reading {pairs.name}"):
            loaded = RetrieveAndEdit.load(model, store=store)
            examples = loaded.retriever.examples
            fields = list(examples[0].x) if examples else []
            columns = options.columns(x_columns, y_column)
            rows = options.read_examples(pairs, columns, skip_bad=skip_bad, fields=fields)
            added = gather(rows, model)
        with working(f"adding {len(added):,} examples"):
            RetrieveAndEdit(loaded.retriever.add(added), loaded.editor).save(model)
        emit({"added": len(added), **describe_model(model, store=store)})
