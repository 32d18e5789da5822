"""`redraft remove`: remove examples from a model without retraining."""

from redraft.cli import _options as options
from redraft.cli._console import emit, working
from redraft.cli._options import ModelArgument, StoreOption, WhereOption
from redraft.errors import PairsError


def command(model: ModelArgument, where: WhereOption = None, store: StoreOption = None) -> None:
    """Remove the examples whose meta matches. Nothing is retrained.

    The update is atomic: if the command is killed, the folder holds the old model or the new one.
    Concurrent writers wait for each other.

    Example: `redraft remove model/ --where file=old_module.py`
    """
    from redraft.model import RetrieveAndEdit
    from redraft.persistence import describe_model, locked

    filters = options.filters(where)
    if not filters:
        raise PairsError("no examples selected; add --where KEY=VALUE")
    with locked(model):
        with working("removing"):
            loaded = RetrieveAndEdit.load(model, store=store)
            rows = loaded.retriever.matching(filters)
            if len(rows) == len(loaded.retriever.examples):
                raise PairsError("that would remove every example; delete the folder instead")
            if rows:
                RetrieveAndEdit(loaded.retriever.remove(rows), loaded.editor).save(model)
        emit({"removed": len(rows), **describe_model(model, store=store)})
