"""`redraft complete`: suggest code at a cursor."""

import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from redraft.cli._console import Format, emit, print_note, stdout, working
from redraft.cli._options import FormatOption, ModelArgument, StoreOption, argument, ranged
from redraft.config.ranges import CANDIDATES, shorten
from redraft.errors import ConfigError
from redraft.storage.reading import TooLargeError, read_at_most

MOST_BYTES = 4_000_000

_PLACE = re.compile(r"(.+):([0-9]{1,9}):([0-9]{1,9})", re.DOTALL)


def command(
    model: ModelArgument,
    place: Annotated[
        str, argument("Cursor position; lines and columns start at 1.", "FILE:LINE:COL")
    ],
    from_stdin: Annotated[
        bool, typer.Option("--stdin", help="Read the text of FILE from standard input.")
    ] = False,
    k: Annotated[int, ranged(CANDIDATES, "Number of suggestions.", "-k")] = 5,
    store: StoreOption = None,
    form: FormatOption = Format.JSON,
) -> None:
    """Complete a function at a cursor, and show the source of each suggestion.

    The file need not parse; the end of its name tells the language. Docstring, name and
    arguments of the function at the cursor are the retrieval query; the part of its body before the
    cursor is the prefix to complete.

    Example: `redraft complete model/ src/cards.py:12:9 --format table`
    """
    from redraft.completion.engine import CompletionEngine
    from redraft.completion.languages.base import offset_of
    from redraft.data.inputs import fields_of
    from redraft.mining.python_functions import FIELDS
    from redraft.model import RetrieveAndEdit

    name, line, column = parse_place(place)
    text = read_source(name, from_stdin=from_stdin)
    try:
        offset = offset_of(text, line, column)
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from error
    with working("loading the model"):
        loaded = RetrieveAndEdit.load(model, store=store)
    fields = fields_of(loaded.retriever.examples)
    if fields != list(FIELDS):
        raise ConfigError(
            f"{model}: holds no functions (its inputs have {', '.join(fields)}); make "
            "one with `redraft index`, or ask this one with `redraft predict`"
        )
    engine = CompletionEngine(loaded)
    suggestions = engine.complete(text, offset, k, file=name)
    if not suggestions:
        print_note("no suggestion is probable enough at this cursor")
    for rank, suggestion in enumerate(suggestions, start=1):
        if form is Format.JSON:
            emit({"rank": rank, **suggestion.to_json()})
        else:
            from redraft.cli._panels import suggestion_line

            stdout().print(suggestion_line(suggestion, rank=rank), soft_wrap=True)


def parse_place(place: str) -> tuple[str, int, int]:
    """Return the file, line and column of a `place` given as FILE:LINE:COL."""
    match = _PLACE.fullmatch(place)
    if match is None:
        raise ConfigError(f"{shorten(place)}: expected FILE:LINE:COL, such as src/cards.py:12:9")
    return match[1], int(match[2]), int(match[3])


def read_source(name: str, *, from_stdin: bool) -> str:
    """Return the text of the file `name`, from disk or from standard input."""
    try:
        # no newline translation: columns must match the editor's
        content = _read_stdin() if from_stdin else read_at_most(Path(name), MOST_BYTES)
        return content.decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{name}: cannot be read ({error.strerror}); check the path") from error
    except TooLargeError as error:
        raise ConfigError(f"{name}: {error}; name a source file") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name}: not UTF-8 ({error.reason}); save it as UTF-8") from error


def _read_stdin() -> bytes:
    content = sys.stdin.buffer.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise TooLargeError(MOST_BYTES)
    return content
