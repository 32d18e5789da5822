"""`redraft index`: a trained model pointed at a code base."""

from pathlib import Path
from typing import Annotated

import typer

from redraft.cli.console import emit, progress, remark, working
from redraft.cli.mine import show_skipped
from redraft.cli.options import StoreOption
from redraft.errors import ConfigError


def command(
    paths: Annotated[
        list[Path], typer.Argument(help="Python files, or folders of them.", show_default=False)
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder of the model to write.")],
    source: Annotated[
        Path | None,
        typer.Option("--from", help="The trained model to begin from. [the one in --out]"),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(help="Leave out folders of this name, such as tests. May be repeated."),
    ] = None,
    store: StoreOption = None,
    verbose: Annotated[bool, typer.Option(help="Name every file that was skipped.")] = False,
) -> None:
    """Point a trained model at another code base: its functions become the examples.

    Nothing is trained and nothing is run. The weights stay, the examples are exchanged. Given
    again for the same model, only the functions of changed files are exchanged. With `--store` a
    new model has its examples there, whether the one it begins from has or not.

    Example: `redraft index src/ -o mine/ --from model/`, later `redraft index src/ -o mine/`
    """
    from redraft.autocomplete.project import Project, index_project
    from redraft.experiment import stored_model
    from redraft.retrieve_and_edit import RetrieveAndEdit

    if source is None and not out.exists():
        raise ConfigError(f"{out}: no model there yet; name a trained one with --from MODEL")
    project = Project.read(
        paths,
        without=without or (),
        watch=lambda sources: progress(sources, "mining", total=len(sources)),
    )
    show_skipped(project.skipped, verbose=verbose)
    with working("embedding the functions"):
        begun = source or out
        is_stored = source is None or stored_model(source) is not None
        loaded = RetrieveAndEdit.load(begun, store=store if is_stored else None)
        model, change = index_project(loaded, project)
        if source is not None or change.rows or change.examples:
            model.save(out, store=store)
    remark(f"{len(project.files):,} files, {len(project.skipped):,} skipped")
    emit(
        {
            "model": str(out),
            "examples": len(model.retriever.examples),
            "removed": len(change.rows),
            "added": len(change.examples),
        }
    )
