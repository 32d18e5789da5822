"""`redraft mine`: Python sources to pairs."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redraft.cli.bulk import ROWS, BulkCommand, RayOption, RowsOption, is_folder, run_job
from redraft.cli.console import emit, progress, remark
from redraft.errors import PairsError

if TYPE_CHECKING:
    from redraft.bulk.shards import Inputs
    from redraft.data.rows import BadRow

cls = BulkCommand

_SHOWN = 5


def command(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            help="Python files, or folders of them; or JSON lines or Parquet whose rows have "
            "`content`, a Python file, and may have `file` and `package`.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--out",
            help="File to write (.jsonl) [stdout], or a folder or address for shards; with "
            "--packages a folder.",
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
    rows: RowsOption = ROWS,
    ray: RayOption = None,
    verbose: Annotated[bool, typer.Option(help="Name every file that was skipped.")] = False,
) -> None:
    """Turn the documented functions of Python sources into pairs.

    The input is the docstring, the name and the arguments; the output is the body. Sources are
    read, never run.

    Example: `redraft mine src/ --without tests -o pairs.jsonl`

    Example: `redraft mine --packages packages.txt -o corpus/`

    With a folder to write to, pairs are written in shards, each from `--rows` sources, in full or
    not at all: killed anywhere, the same command goes on, on one machine or on many.

    Example: `redraft mine s3://bucket/sources/*.parquet -o s3://bucket/pairs --ray head:6379`
    """
    if packages is None:
        if not paths:
            raise PairsError("nothing to mine; name Python files or folders, or --packages LIST")
        if _has_rows(paths) or (out is not None and is_folder(out)):
            _mine_shards(paths, out, without=without or (), rows=rows, ray=ray, verbose=verbose)
        elif ray is not None:
            raise PairsError("--ray: needs a folder for the shards; add -o FOLDER")
        else:
            sources = [*map(Path, paths)]
            file = None if out is None else Path(out)
            _mine_paths(sources, file, without=without or (), verbose=verbose)
        return
    if ray is not None:
        raise PairsError(f"--packages {packages}: has --jobs for several processes, and no --ray")
    if paths or without:
        raise PairsError(
            f"--packages {packages}: cannot be combined with paths or --without; "
            "mine paths and packages by two commands"
        )
    if out is None:
        raise PairsError(f"--packages {packages}: needs a folder to write to; add -o corpus/")
    from redraft.cli.mine_packages import mine_packages

    mine_packages(packages, Path(out), jobs=jobs, seed=seed, verbose=verbose)


def _has_rows(paths: Sequence[str]) -> bool:
    """Whether sources are rows of files, rather than files."""
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
    """Mine sources, or rows of them, into shards of pairs."""
    from redraft.bulk.mining import Mining
    from redraft.bulk.shards import cut_files, cut_sources
    from redraft.data.python_functions import find_sources

    if out is None or not is_folder(out):
        raise PairsError("sources in rows are mined into shards; name their folder with -o FOLDER")
    if _has_rows(paths) and without:
        raise PairsError("--without: sources in rows have no folders; leave them out yourself")

    def find_inputs() -> "Inputs":
        if _has_rows(paths):
            return cut_files(paths, rows, without=out)
        sources = find_sources([*map(Path, paths)], without=without)
        if not sources:
            raise PairsError(f"{paths[0]}: no Python file in it; name sources to mine")
        return cut_sources(sources, rows)

    show_skipped(run_job(Mining(), find_inputs, out, ray=ray), verbose=verbose)


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


def show_skipped(skipped: "Sequence[BadRow | str]", *, verbose: bool) -> None:
    """Name the first files that were skipped, or all of them."""
    for bad in skipped if verbose else skipped[:_SHOWN]:
        remark(f"skipped {bad}")
    if len(skipped) > _SHOWN and not verbose:
        remark(f"… and {len(skipped) - _SHOWN:,} more (--verbose names them)")
