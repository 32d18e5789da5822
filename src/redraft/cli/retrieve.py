"""`redraft retrieve`: the retriever alone."""

from typing import Annotated

import typer

from redraft.cli import options
from redraft.cli.console import Format, emit, stdout, working
from redraft.cli.options import FormatOption, ModelArgument, WhereOption


def command(
    model: ModelArgument,
    text: Annotated[
        str,
        typer.Argument(
            metavar="INPUT", help="Text, or a JSON object of fields.", show_default=False
        ),
    ],
    k: Annotated[int, typer.Option("-k", min=1, help="How many prototypes.")] = 5,
    where: WhereOption = None,
    form: FormatOption = Format.JSON,
) -> None:
    """Show the training examples nearest to an input, no two with the same output.

    Example: `redraft retrieve model/ "sum a list" -k 3 --where package=statistics`
    """
    from redraft.retrieve_and_edit import RetrieveAndEdit

    with working("loading the model"):
        loaded = RetrieveAndEdit.load(model)
    x = options.parse_input(text, loaded.retriever.examples)
    prototypes = loaded.retriever.retrieve([x], k, where=options.filters(where))[0]
    for rank, prototype in enumerate(prototypes, start=1):
        if form is Format.JSON:
            emit({"rank": rank, **prototype.to_json()})
        else:
            from redraft.cli.display import prototype_panel

            stdout().print(prototype_panel(prototype, rank=rank))
