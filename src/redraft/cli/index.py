"""`redraft index`: make a code base the examples of a model."""

from pathlib import Path
from typing import Annotated

import typer

from redraft.cli._console import emit, print_note, progress, working
from redraft.cli._options import StoreOption, argument
from redraft.cli.mine import show_skipped


def command(
    paths: Annotated[list[Path], argument("Source files or folders.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Output folder of the model.")],
    source: Annotated[
        Path | None,
        typer.Option("--from", help="Trained model to start from. [the one in --out, or none]"),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(help="Skip folders of this name, such as tests. May be repeated."),
    ] = None,
    store: StoreOption = None,
    verbose: Annotated[bool, typer.Option(help="List every skipped file.")] = False,
) -> None:
    """Index the functions of a code base, to complete code from them.

    Reads Python, and with the extra `languages` TypeScript, JavaScript, Java and Go. Nothing is
    trained, and the code is never run. With `--from` the weights of a trained model are
    kept. Run again for the same model, the command updates only the functions of changed files.
    With `--store` the examples of a new model are stored in the database, wherever those of the
    model in `--from` are.

    Example: `redraft index src/ -o mine/`, then `redraft complete mine/ src/cards.py:12:9`
    """
    from redraft.completion.project import Project, empty_model, index_project
    from redraft.model import RetrieveAndEdit
    from redraft.persistence import locked, stored_model
    from redraft.storage.artifact_writer import ensure_writable
    from redraft.storage.locking import exclusive

    is_new = source is not None or not out.exists()
    ensure_writable(out)
    project = Project.read(
        paths,
        without=without or (),
        watch=lambda sources: progress(sources, "mining", total=len(sources)),
    )
    show_skipped(project.skipped, verbose=verbose)
    with exclusive(out) if is_new else locked(out), working("embedding the functions"):
        if source is None and is_new:
            loaded = empty_model()
        else:
            is_stored = source is None or stored_model(source) is not None
            loaded = RetrieveAndEdit.load(source or out, store=store if is_stored else None)
        model, change = index_project(loaded, project)
        if is_new or change.rows or change.examples:
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
