"""`redraft add`: add examples to a model without retraining."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from redraft.cli import _options as options
from redraft.cli._console import emit, working
from redraft.cli._options import ModelArgument, PairsArgument, StoreOption, XColumns, YColumn
from redraft.errors import PairsError

if TYPE_CHECKING:
    from redraft.types import Example


def command(
    model: ModelArgument,
    pairs: PairsArgument,
    x_columns: XColumns = "",
    y_column: YColumn = "y",
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
    from redraft.data.pairs import read_numbered
    from redraft.model import RetrieveAndEdit
    from redraft.persistence import describe_model, locked
    from redraft.storage.disk import gather

    with locked(model):
        with working(f"reading {pairs.name}"):
            loaded = RetrieveAndEdit.load(model, store=store)
            examples = loaded.retriever.examples
            fields = list(examples[0].x) if examples else None
            rows = read_numbered(pairs, options.columns(x_columns, y_column))
            added = gather((_with_fields(example, fields, pairs) for _, example in rows), model)
        with working(f"adding {len(added):,} examples"):
            RetrieveAndEdit(loaded.retriever.add(added), loaded.editor).save(model)
        emit({"added": len(added), **describe_model(model, store=store)})


def _with_fields(example: "Example", fields: list[str] | None, pairs: Path) -> "Example":
    """Return the example with its fields in the order of the model's `fields`."""
    if fields is None:
        return example
    if set(example.x) != set(fields):
        raise PairsError(f"{pairs}: the fields of this model's input are: {', '.join(fields)}")
    return replace(example, x={name: example.x[name] for name in fields})
