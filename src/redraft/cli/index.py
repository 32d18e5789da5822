"""`redraft index`: use a trained model on a code base."""

from pathlib import Path
from typing import Annotated

import typer

from redraft.cli._console import emit, print_note, progress, working
from redraft.cli._options import StoreOption, argument
from redraft.cli.mine import show_skipped
from redraft.errors import ConfigError


def command(
    paths: Annotated[list[Path], argument("Python files or folders.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Output folder of the model.")],
    source: Annotated[
        Path | None, typer.Option("--from", help="Trained model to start from. [the one in --out]")
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(help="Skip folders of this name, such as tests. May be repeated."),
    ] = None,
    store: StoreOption = None,
    verbose: Annotated[bool, typer.Option(help="List every skipped file.")] = False,
) -> None:
    """Replace the examples of a trained model by the functions of a code base.

    Keeps the weights: nothing is trained, and the code is never run. Run again for the same model,
    the command updates only the functions of changed files. With `--store` the examples of a new
    model are stored in the database, wherever those of the model in `--from` are.

    Example: `redraft index src/ -o mine/ --from model/`, later `redraft index src/ -o mine/`
    """
    from redraft.completion.project import Project, index_project
    from redraft.model import RetrieveAndEdit
    from redraft.persistence import locked, stored_model
    from redraft.storage.artifact_writer import ensure_writable
    from redraft.storage.locking import exclusive

    if source is None and not out.exists():
        raise ConfigError(f"{out}: no model there yet; name a trained one with --from MODEL")
    ensure_writable(out)
    project = Project.read(
        paths,
        without=without or (),
        watch=lambda sources: progress(sources, "mining", total=len(sources)),
    )
    show_skipped(project.skipped, verbose=verbose)
    with exclusive(out) if source else locked(out), working("embedding the functions"):
        is_stored = source is None or stored_model(source) is not None
        loaded = RetrieveAndEdit.load(source or out, store=store if is_stored else None)
        model, change = index_project(loaded, project)
        if source is not None or change.rows or change.examples:
            model.save(out, store=store)
    print_note(f"{len(project.files):,} files, {len(project.skipped):,} skipped")
    emit(
        {
            "model": str(out),
            "examples": len(model.retriever.examples),
            "removed": len(change.rows),
            "added": len(change.examples),
        }
    )
