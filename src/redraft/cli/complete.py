"""`redraft complete`: what could be typed next."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from redraft.cli.console import Format, emit, stdout, working
from redraft.cli.options import FormatOption, ModelArgument, StoreOption
from redraft.errors import ConfigError


def command(
    model: ModelArgument,
    place: Annotated[
        str,
        typer.Argument(
            metavar="FILE:LINE:COL",
            help="A cursor, lines and columns from 1 on.",
            show_default=False,
        ),
    ],
    from_stdin: Annotated[
        bool, typer.Option("--stdin", help="Read the text of FILE from standard input.")
    ] = False,
    k: Annotated[int, typer.Option("-k", min=1, help="How many suggestions.")] = 5,
    store: StoreOption = None,
    form: FormatOption = Format.JSON,
) -> None:
    """Suggest how to go on at a cursor in a Python file, and show the code each borrows from.

    The file need not parse. What the cursor's function has, docstring, name and arguments, decides
    what is retrieved; what is typed of its body decides how it goes on.

    Example: `redraft complete model/ src/cards.py:12:9 --format table`
    """
    from redraft.autocomplete.context import offset_of
    from redraft.autocomplete.engine import CompletionEngine
    from redraft.retrieve_and_edit import RetrieveAndEdit

    name, line, column = parse_place(place)
    text = read_source(name, from_stdin=from_stdin)
    try:
        offset = offset_of(text, line, column)
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from error
    with working("loading the model"):
        engine = CompletionEngine(RetrieveAndEdit.load(model, store=store))
    for rank, suggestion in enumerate(engine.complete(text, offset, k), start=1):
        if form is Format.JSON:
            emit({"rank": rank, **suggestion.to_json()})
        else:
            from redraft.cli.display import suggestion_line

            stdout().print(suggestion_line(suggestion, rank=rank), soft_wrap=True)


def parse_place(place: str) -> tuple[str, int, int]:
    """FILE:LINE:COL as a file, a line and a column."""
    name, _, rest = place.rpartition(":")
    name, _, line = name.rpartition(":")
    if not (name and line.isdecimal() and rest.isdecimal()):
        raise ConfigError(f"{place}: expected FILE:LINE:COL, such as src/cards.py:12:9")
    return name, int(line), int(rest)


def read_source(name: str, *, from_stdin: bool) -> str:
    """The text of a file as it is saved, or as standard input has it."""
    try:
        # newlines as they are: a column must stay where the editor put it
        content = sys.stdin.buffer.read() if from_stdin else Path(name).read_bytes()
        return content.decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{name}: cannot be read ({error.strerror}); check the path") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name}: not UTF-8 ({error.reason}); save it as UTF-8") from error
