"""`redraft mine`: extract pairs from Python sources."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redraft.cli._bulk import ROWS, BulkCommand, RayOption, RowsOption, is_folder, run_job
from redraft.cli._console import emit, print_note, progress
from redraft.errors import PairsError

if TYPE_CHECKING:
    from redraft.bulk.shards import Inputs
    from redraft.data.rows import BadRow

cls = BulkCommand

_SHOWN = 5


def command(
    paths: Annotated[
        list[str],
        typer.Argument(
            help="Python files or folders; or JSON lines or Parquet with the source code in "
            "`content` and optional columns `file` and `package`.",
            show_default=False,
        ),
    ],
    out: Annotated[
        str | None,
        typer.Option(
            "-o", "--out", help="Output file (.jsonl), or a folder or address for shards. [stdout]"
        ),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(help="Skip folders of this name, such as tests. May be repeated."),
    ] = None,
    rows: RowsOption = ROWS,
    ray: RayOption = None,
    verbose: Annotated[bool, typer.Option(help="List every skipped file.")] = False,
) -> None:
    """Extract pairs from the documented functions of Python sources.

    The input is the docstring, the name and the arguments; the output is the body. The code is
    parsed, never run.

    Example: `redraft mine src/ --without tests -o pairs.jsonl`

    With a folder as output, pairs are written in shards of `--rows` sources each. Shards are
    written atomically: after an interruption the same command resumes, on one machine or many.

    Example: `redraft mine s3://bucket/sources/*.parquet -o s3://bucket/pairs --ray head:6379`
    """
    if _has_rows(paths) or (out is not None and is_folder(out)):
        _mine_shards(paths, out, without=without or (), rows=rows, ray=ray, verbose=verbose)
    elif ray is not None:
        raise PairsError("--ray: needs a folder for the shards; add -o FOLDER")
    else:
        file = None if out is None else Path(out)
        _mine_paths([*map(Path, paths)], file, without=without or (), verbose=verbose)


def _has_rows(paths: Sequence[str]) -> bool:
    """Return True if the sources are rows of JSON lines or Parquet rather than Python files."""
    from redraft.bulk.addresses import is_remote
    from redraft.bulk.shards import LINES, PARQUET

    return any(is_remote(path) or path.endswith((*LINES, *PARQUET)) for path in paths)


def _mine_shards(
    paths: list[str],
    out: str | None,
    *,
    without: Sequence[str],
    rows: int,
    ray: str | None,
    verbose: bool,
) -> None:
    """Mine Python files, or rows that contain them, into shards of pairs."""
    from redraft.bulk.mine import MineJob
    from redraft.bulk.shards import cut_files, cut_sources
    from redraft.mining.python_functions import find_sources

    if out is None or not is_folder(out):
        raise PairsError("sources in rows are mined into shards; add -o FOLDER")
    if _has_rows(paths) and without:
        raise PairsError("--without: not supported for sources in rows; filter the rows instead")

    def find_inputs() -> "Inputs":
        if _has_rows(paths):
            return cut_files(paths, rows, without=out)
        sources = find_sources([*map(Path, paths)], without=without)
        if not sources:
            raise PairsError(f"{paths[0]}: contains no Python files; name sources to mine")
        return cut_sources(sources, rows)

    show_skipped(run_job(MineJob(), find_inputs, out, ray=ray), verbose=verbose)


def _mine_paths(
    paths: Sequence[Path], out: Path | None, *, without: Sequence[str], verbose: bool
) -> None:
    """Mine files and folders into one file of pairs, or print the pairs to stdout."""
    from redraft.data.pairs import write_pairs
    from redraft.data.rows import BadRow
    from redraft.mining.python_functions import find_sources, mine
    from redraft.types import Example

    sources = find_sources(paths, without=without)
    examples: list[Example] = []
    skipped: list[BadRow] = []
    for source in progress(sources, "mining", total=len(sources)):
        outcome = mine(source)
        if isinstance(outcome, BadRow):
            skipped.append(outcome)
        else:
            examples += outcome
    show_skipped(skipped, verbose=verbose)
    if not examples:
        raise PairsError(f"{paths[0]}: no documented function in {len(sources):,} Python files")
    if out is not None:
        write_pairs(examples, out)
    else:
        for example in examples:
            emit(example.to_json())
        sys.stdout.flush()
    print_note(
        f"{len(examples):,} functions from {len(sources) - len(skipped):,} files, "
        f"{len(skipped):,} files skipped"
    )


def show_skipped(skipped: "Sequence[BadRow | str]", *, verbose: bool) -> None:
    """Print the first skipped files, or all of them if `verbose`."""
    for bad in skipped if verbose else skipped[:_SHOWN]:
        print_note(f"skipped {bad}")
    if len(skipped) > _SHOWN and not verbose:
        print_note(f"… and {len(skipped) - _SHOWN:,} more (--verbose lists them)")
