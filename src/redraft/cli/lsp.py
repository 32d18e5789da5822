"""`redraft lsp`: run the language server."""

import os
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from redraft.cli import _lm
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
    stdio: Annotated[
        bool, typer.Option("--stdio", help="Use stdin and stdout, as without it.", hidden=True)
    ] = False,
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
    lm: _lm.LmOption = None,
    lm_model: _lm.LmModel = None,
    lm_remote: _lm.LmRemote = False,
    lm_shots: _lm.LmFunctions = 3,
    lm_context: _lm.LmContext = 2048,
    lm_time_limit: _lm.LmTimeLimit = _lm.TIME_LIMIT,
) -> None:
    """Complete code in your editor, and show the source of each suggestion.

    Started by an editor; speaks the Language Server Protocol on stdin and stdout. The functions of
    the open workspace folders become the examples, in memory. Needs no model: suggestions are
    copied from the code of the workspace. A model with a network, if given, is not changed.

    With `--lm`, a language model completes as well, with similar functions of the workspace in its
    prompt. The instant suggestions do not wait for it; its own is ranked with them when ready. The
    code at the cursor and these functions are sent to that address.

    Examples, for an editor's settings: `redraft lsp`, `redraft lsp --lm http://localhost:11434/v1`
    """
    from redraft.persistence import check_store

    del stdio  # many clients pass it to every server

    if model is not None:
        open_artifact(model)  # report a damaged model before the editor connects
        check_store(model, store)
    try:
        from redraft.server.lsp.connection import serve_stdio, serve_tcp
        from redraft.server.lsp.handlers import create_server
    except ModuleNotFoundError as error:
        raise MissingExtraError("pygls", extra="lsp", purpose="`redraft lsp`") from error
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    asked = _lm.LmOptions(lm, lm_remote, lm_time_limit) if lm else None
    completer = _lm.completer(asked, lm_model, shots=lm_shots, context=lm_context)
    server = create_server(model, store, trusted=trust or (), completer=completer)
    if tcp is None:
        code = serve_stdio(server)
    else:
        print_note(f"waiting for an editor on port {tcp}")
        code = serve_tcp(server, tcp)
    sys.stderr.flush()
    os._exit(code)  # all writes are atomic, so running computations need not finish
