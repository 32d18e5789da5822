"""`redraft info`: what a model is made of."""

from redraft.cli.console import Format, emit, stdout
from redraft.cli.options import FormatOption, ModelArgument, StoreOption


def command(
    model: ModelArgument, store: StoreOption = None, form: FormatOption = Format.JSON
) -> None:
    """Check a model folder and say what is in it.

    Example: `redraft info model/ --format table`
    """
    from redraft.experiment import describe_model

    facts = describe_model(model, store=store)
    if form is Format.JSON:
        emit(facts)
        return
    from rich.table import Table

    table = Table(show_header=False)
    for name, value in facts.items():
        shown = ", ".join(value) if isinstance(value, list) else str(value)
        table.add_row(name, shown)
    stdout().print(table)
