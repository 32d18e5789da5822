"""`redraft mine`: Python sources to pairs."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redraft.cli.console import emit, progress, remark
from redraft.errors import PairsError

if TYPE_CHECKING:
    from redraft.data.rows import BadRow

_SHOWN = 5


def command(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(help="Python files, or folders of them.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o", "--out", help="File to write (.jsonl) [stdout]; with --packages a folder."
        ),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(help="Leave out folders of this name, such as tests. May be repeated."),
    ] = None,
    packages: Annotated[
        Path | None,
        typer.Option(
            help="Make a corpus of the packages in this list: download them, mine them, remove "
            "duplicates, split them. Lines are NAME==VERSION, or NAME==VERSION SIDE with train, "
            "dev or test."
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="With --packages: processes. [as many as cores]")
    ] = None,
    seed: Annotated[
        int, typer.Option(help="With --packages: the same seed gives the same split.")
    ] = 0,
    verbose: Annotated[bool, typer.Option(help="Name every file that was skipped.")] = False,
) -> None:
    """Turn the documented functions of Python sources into pairs.

    The input is the docstring, the name and the arguments; the output is the body. Sources are
    read, never run.

    Example: `redraft mine src/ --without tests -o pairs.jsonl`

    Example: `redraft mine --packages packages.txt -o corpus/`
    """
    if packages is None:
        if not paths:
            raise PairsError("nothing to mine; name Python files or folders, or --packages LIST")
        _mine_paths(paths, out, without=without or (), verbose=verbose)
        return
    if paths or without:
        raise PairsError(
            f"--packages {packages}: cannot be combined with paths or --without; "
            "mine paths and packages by two commands"
        )
    if out is None:
        raise PairsError(f"--packages {packages}: needs a folder to write to; add -o corpus/")
    from redraft.cli.mine_packages import mine_packages

    mine_packages(packages, out, jobs=jobs, seed=seed, verbose=verbose)


def _mine_paths(
    paths: Sequence[Path], out: Path | None, *, without: Sequence[str], verbose: bool
) -> None:
    """Mine files and folders into one file of pairs, or to stdout."""
    from redraft.data.example import Example
    from redraft.data.pairs import write_pairs
    from redraft.data.python_functions import find_sources, mine
    from redraft.data.rows import BadRow

    sources = find_sources(paths, without=without)
    examples: list[Example] = []
    skipped: list[BadRow] = []
    for source in progress(sources, "mining", total=len(sources)):
        found = mine(source)
        if isinstance(found, BadRow):
            skipped.append(found)
        else:
            examples += found
    show_skipped(skipped, verbose=verbose)
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


def show_skipped(skipped: "Sequence[BadRow]", *, verbose: bool) -> None:
    """Name the first files that were skipped, or all of them."""
    for bad in skipped if verbose else skipped[:_SHOWN]:
        remark(f"skipped {bad}")
    if len(skipped) > _SHOWN and not verbose:
        remark(f"… and {len(skipped) - _SHOWN:,} more (--verbose names them)")
