"""`redraft remove`: examples out of a model, without training again."""

from redraft.cli import options
from redraft.cli.console import emit, working
from redraft.cli.options import ModelArgument, StoreOption, WhereOption
from redraft.errors import PairsError


def command(model: ModelArgument, where: WhereOption = None, store: StoreOption = None) -> None:
    """Remove the examples whose meta matches: they are never retrieved again.

    Killed at any moment, the folder holds the old model or the new one.

    Example: `redraft remove model/ --where file=old_module.py`
    """
    from redraft.experiment import describe_model
    from redraft.retrieve_and_edit import RetrieveAndEdit

    filters = options.filters(where)
    if not filters:
        raise PairsError("say which examples: --where KEY=VALUE")
    with working("removing"):
        loaded = RetrieveAndEdit.load(model, store=store)
        rows = loaded.retriever.matching(filters)
        if len(rows) == len(loaded.retriever.examples):
            raise PairsError("that would remove every example; delete the folder instead")
        if rows:
            RetrieveAndEdit(loaded.retriever.remove(rows), loaded.editor).save(model)
    emit({"removed": len(rows), **describe_model(model, store=store)})
