"""`redraft lsp`: run the language server."""

import os
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from redraft.cli._console import print_note
from redraft.cli._options import StoreOption, argument
from redraft.errors import MissingExtraError
from redraft.storage.artifact import open_artifact


def command(
    model: Annotated[
        Path | None, argument("Folder of a trained model. [none: the code of the workspace]")
    ] = None,
    tcp: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            min=1,
            max=65_535,
            help="Listen for one editor on this local port, for debugging.",
        ),
    ] = None,
    trust: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FOLDER",
            envvar="REDRAFT_TRUST",
            help="Allow the editor's setting `model` to select a model in this folder. Without "
            "this option the setting is ignored, since an untrusted project could set it.",
            show_default=False,
            show_envvar=True,
        ),
    ] = None,
    store: StoreOption = None,
) -> None:
    """Complete Python code in your editor, and show the source of each suggestion.

    Started by an editor; speaks the Language Server Protocol on stdin and stdout. The functions of
    the open workspace folders become the examples, in memory. Needs no model: suggestions are
    copied from the code of the workspace. A model with a network, if given, is not changed.

    Example, for an editor's settings: `redraft lsp`
    """
    from redraft.persistence import check_store

    if model is not None:
        open_artifact(model)  # report a damaged model before the editor connects
        check_store(model, store)
    try:
        from redraft.server.lsp.connection import serve_stdio, serve_tcp
        from redraft.server.lsp.handlers import create_server
    except ModuleNotFoundError as error:
        raise MissingExtraError("pygls", extra="lsp", purpose="`redraft lsp`") from error
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    server = create_server(model, store, trusted=trust or ())
    if tcp is None:
        code = serve_stdio(server)
    else:
        print_note(f"waiting for an editor on port {tcp}")
        code = serve_tcp(server, tcp)
    sys.stderr.flush()
    os._exit(code)  # all writes are atomic, so running computations need not finish
