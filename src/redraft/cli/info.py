"""`redraft info`: describe a model."""

from redraft.cli._console import Format, emit, shown_fact, stdout
from redraft.cli._options import FormatOption, ModelArgument, StoreOption


def command(
    model: ModelArgument, store: StoreOption = None, form: FormatOption = Format.JSON
) -> None:
    """Check a model folder and describe its contents.

    Example: `redraft info model/ --format table`
    """
    from redraft.persistence import describe_model
    from redraft.retrieval.auto import Selection

    facts = describe_model(model, store=store)
    if form is Format.JSON:
        emit(facts)
        return
    from rich.table import Table

    table = Table(show_header=False)
    if "selection" in facts:
        facts["selection"] = Selection.from_json(facts["selection"], model).text
    for name, value in facts.items():
        table.add_row("size" if name == "bytes" else name, shown_fact(name, value))
    stdout().print(table)
