"""`redraft retrieve`: show the nearest examples of an input."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from redraft.cli import _options as options
from redraft.cli._console import Format, emit, stdout, working
from redraft.cli._options import FormatOption, ModelArgument, StoreOption, argument, ranged
from redraft.config.ranges import RETRIEVED
from redraft.data.inputs import fields_of, parse_input

if TYPE_CHECKING:
    from redraft.types import Input, Prototype


def command(
    model: ModelArgument,
    text: Annotated[str, argument("Text, or a JSON object of fields.", "INPUT")],
    k: Annotated[int, ranged(RETRIEVED, "Number of examples.", "-k")] = 5,
    explain: Annotated[
        bool, typer.Option(help="Show shared words and the diff between the inputs.")
    ] = False,
    where: options.WhereOption = None,
    store: StoreOption = None,
    form: FormatOption = Format.JSON,
) -> None:
    """Show the examples nearest to an input; each output appears once.

    Example: `redraft retrieve model/ "sum a list" -k 3 --where package=statistics`
    """
    from redraft.model import RetrieveAndEdit

    with working("loading the model"):
        loaded = RetrieveAndEdit.load(model, store=store)
    x = parse_input(text, fields_of(loaded.retriever.examples))
    prototypes = loaded.retriever.retrieve([x], k, where=options.filters(where))[0]
    for rank, prototype in enumerate(prototypes, start=1):
        if form is Format.JSON:
            explanation = _explanation(x, prototype) if explain else {}
            emit({"rank": rank, **prototype.to_json(), **explanation})
        else:
            from redraft.cli._panels import prototype_panel

            query = x if explain else None
            stdout().print(prototype_panel(prototype, rank=rank, query=query))


def _explanation(x: "Input", prototype: "Prototype") -> dict[str, Any]:
    """Return the words shared by both inputs, by field, and the diff between the inputs."""
    from redraft.text.diff import Diff
    from redraft.text.words import shared_words
    from redraft.types import input_text

    other = prototype.example.x
    diff = Diff.between(input_text(other), input_text(x))
    return {"shared": shared_words(x, other), "input_diff": diff.to_json()}
