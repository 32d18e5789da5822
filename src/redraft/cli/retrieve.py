"""`redraft retrieve`: the retriever alone."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from redraft.cli import options
from redraft.cli.console import Format, emit, stdout, working
from redraft.cli.options import FormatOption, ModelArgument, StoreOption, WhereOption
from redraft.data.inputs import fields_of, parse_input

if TYPE_CHECKING:
    from redraft.data.example import Input
    from redraft.retrieval.prototype import Prototype


def command(
    model: ModelArgument,
    text: Annotated[
        str,
        typer.Argument(
            metavar="INPUT", help="Text, or a JSON object of fields.", show_default=False
        ),
    ],
    k: Annotated[int, typer.Option("-k", min=1, help="How many prototypes.")] = 5,
    explain: Annotated[
        bool, typer.Option(help="Show the words they share and how the inputs differ.")
    ] = False,
    where: WhereOption = None,
    store: StoreOption = None,
    form: FormatOption = Format.JSON,
) -> None:
    """Show the training examples nearest to an input, no two with the same output.

    Example: `redraft retrieve model/ "sum a list" -k 3 --where package=statistics`
    """
    from redraft.retrieve_and_edit import RetrieveAndEdit

    with working("loading the model"):
        loaded = RetrieveAndEdit.load(model, store=store)
    x = parse_input(text, fields_of(loaded.retriever.examples))
    prototypes = loaded.retriever.retrieve([x], k, where=options.filters(where))[0]
    for rank, prototype in enumerate(prototypes, start=1):
        if form is Format.JSON:
            explanation = _explanation(x, prototype) if explain else {}
            emit({"rank": rank, **prototype.to_json(), **explanation})
        else:
            from redraft.cli.display import prototype_panel

            asked = x if explain else None
            stdout().print(prototype_panel(prototype, rank=rank, asked=asked))


def _explanation(x: "Input", prototype: "Prototype") -> dict[str, Any]:
    """The words of each field that both inputs have, and the edits between the inputs."""
    from redraft.data.example import input_text
    from redraft.editing.diff import Diff
    from redraft.retrieval.lexical import shared_words

    other = prototype.example.x
    diff = Diff.between(input_text(other), input_text(x))
    return {"shared": shared_words(x, other), "input_diff": diff.to_json()}
