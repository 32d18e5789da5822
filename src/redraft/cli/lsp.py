"""`redraft lsp`: completion in an editor."""

import os
import signal
import sys
from typing import Annotated

import typer

from redraft.artifact import open_artifact
from redraft.cli.console import remark
from redraft.cli.options import ModelArgument, StoreOption
from redraft.errors import MissingExtraError


def command(
    model: ModelArgument,
    tcp: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            min=1,
            max=65_535,
            help="Wait for one editor on this port of this machine, to look for mistakes.",
        ),
    ] = None,
    store: StoreOption = None,
) -> None:
    """Complete Python code in your editor, and show the function each suggestion borrows from.

    An editor starts this and speaks the Language Server Protocol on its input and output. The
    functions of the folders that it has open become the examples, in memory: the model on disk
    stays as it is.

    Example, for an editor's settings: `redraft lsp model/`
    """
    from redraft.experiment import check_store

    open_artifact(model)  # what is wrong with it is told before an editor waits
    check_store(model, store)
    try:
        from redraft.serving.lsp.handlers import create_server, serve_stdio, serve_tcp
    except ModuleNotFoundError as error:
        raise MissingExtraError("pygls", extra="lsp", purpose="`redraft lsp`") from error
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    server = create_server(model, store)
    if tcp is None:
        code = serve_stdio(server)
    else:
        remark(f"waiting for an editor on port {tcp}")
        code = serve_tcp(server, tcp)
    sys.stderr.flush()
    os._exit(code)  # nothing is ever half written, so nobody need wait for what is being computed
