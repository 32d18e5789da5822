"""`redraft mine`: Python sources to pairs."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from redraft.cli.console import emit, progress, remark
from redraft.errors import PairsError

_SHOWN = 5


def command(
    paths: Annotated[
        list[Path], typer.Argument(help="Python files, or folders of them.", show_default=False)
    ],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="File to write (.jsonl). [stdout]")
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(help="Leave out folders of this name, such as tests. May be repeated."),
    ] = None,
    verbose: Annotated[bool, typer.Option(help="Name every file that was skipped.")] = False,
) -> None:
    """Turn the documented functions of Python sources into pairs.

    The input is the docstring, the name and the arguments; the output is the body. Sources are
    read, never run.

    Example: `redraft mine src/ --without tests -o pairs.jsonl`
    """
    from redraft.data.example import Example
    from redraft.data.pairs import write_pairs
    from redraft.data.python_functions import find_sources, mine
    from redraft.data.rows import BadRow

    sources = find_sources(paths, without=without or ())
    examples: list[Example] = []
    skipped: list[BadRow] = []
    for source in progress(sources, "mining", total=len(sources)):
        found = mine(source)
        if isinstance(found, BadRow):
            skipped.append(found)
        else:
            examples += found
    for bad in skipped if verbose else skipped[:_SHOWN]:
        remark(f"skipped {bad}")
    if len(skipped) > _SHOWN and not verbose:
        remark(f"… and {len(skipped) - _SHOWN:,} more (--verbose names them)")
    if not examples:
        raise PairsError(f"{paths[0]}: no documented function in {len(sources):,} Python files")
    if out is not None:
        write_pairs(examples, out)
    else:
        for example in examples:
            emit(example.to_json())
        sys.stdout.flush()
    remark(
        f"{len(examples):,} functions from {len(sources) - len(skipped):,} files, "
        f"{len(skipped):,} files skipped"
    )
