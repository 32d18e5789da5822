"""`redraft serve`: serve models over HTTP."""

import contextlib
import importlib.util
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from redraft.cli import _lm
from redraft.cli._console import print_note
from redraft.cli._options import StoreOption, argument
from redraft.errors import ConfigError, MissingExtraError, ModelError
from redraft.storage.manifest import MANIFEST

LONGEST_TIME_LIMIT = 86_400

_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}")
_NEEDED = ("fastapi", "uvicorn", "prometheus_client", "watchfiles")


def command(
    models: Annotated[
        list[str],
        argument(
            "Model folders written by `redraft fit`, as FOLDER or NAME=FOLDER. The name defaults "
            "to the folder's name. The first model is the default.",
            "MODEL",
        ),
    ],
    host: Annotated[
        str, typer.Option(help="Address to listen on; other machines need a token.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.")
    ] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="REDRAFT_TOKEN",
            help="Token that clients must send as `Authorization: Bearer TOKEN`. Prefer the "
            "environment variable: command lines are visible to other users of the machine.",
            show_default=False,
            show_envvar=True,
        ),
    ] = None,
    watch: Annotated[
        list[Path] | None,
        typer.Option(
            help="Use the functions of these source files or folders as the examples of the first "
            "model, and re-index files as they change. In memory: the model folder is not changed.",
            show_default=False,
        ),
    ] = None,
    time_limit: Annotated[
        float,
        typer.Option(min=0.1, max=LONGEST_TIME_LIMIT, help="Timeout of a request in seconds."),
    ] = 30.0,
    batching: Annotated[
        bool, typer.Option(help="Batch predict requests that arrive at the same time.")
    ] = True,
    store: StoreOption = None,
    lm: _lm.LmOption = None,
    lm_model: _lm.LmModel = None,
    lm_remote: _lm.LmRemote = False,
    lm_shots: _lm.LmFunctions = 3,
    lm_context: _lm.LmContext = 2048,
    lm_time_limit: _lm.LmTimeLimit = _lm.TIME_LIMIT,
) -> None:
    """Serve models over HTTP, with a web page, until Ctrl-C.

    JSON endpoints: `/v1/predict`, `/v1/complete`, `/v1/retrieve` and `/v1/examples`.
    `/v1/completions` is compatible with OpenAI clients; `/healthz`, `/readyz` and `/metrics` are
    for monitoring; `/openapi.json` is the full schema. Each model runs in its own thread, and
    added examples are saved to its folder. Several servers can share one `--store`: examples added
    through one server are visible to all of them. Request contents are never logged. Python
    client: `redraft.Client`.

    With `--lm`, models that were fitted with a language model ask it, for at most half of
    `--time-limit`; if it fails, the other proposers answer. Models of functions complete with it:
    `/v1/complete` answers at once, or waits for it as the request asks.

    Examples: `redraft serve model/`, then
    `curl -s localhost:8000/v1/predict --json '{"inputs": ["sum the first two elements of tmp"]}'`;
    `redraft serve functions/ --watch ~/project`;
    `REDRAFT_TOKEN=… redraft serve cards=hs/ code=functions/ --host 0.0.0.0`
    """
    for package in _NEEDED:
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(package, extra="serve", purpose="redraft serve")
    from redraft.server.http.app import AppConfig
    from redraft.server.http.background import sync_model, watch_files
    from redraft.server.http.middleware import SecurityConfig, names_of
    from redraft.server.http.model_pool import ModelPoolConfig
    from redraft.server.http.server import BindAddress, check_exposure, check_token, loader, serve

    check_exposure(host, token)
    check_token(token)
    folders = named_folders(models)
    watched = {next(iter(folders)): check_paths(watch)} if watch else {}
    check_apart({name: path for name, path in folders.items() if name not in watched})
    stored = check_stores(folders, store)
    config = AppConfig(
        pool=ModelPoolConfig(time_limit=time_limit, is_batching=batching),
        security=SecurityConfig(token=token or None, names=names_of(host)),
    )
    # half of the time is left for the other proposers
    asked = _lm.LmOptions(lm, lm_remote, min(lm_time_limit, time_limit / 2)) if lm else None
    client = asked.client() if asked else None
    loaders = {
        name: loader(
            name,
            folder,
            persist=name not in watched,
            store=store if name in stored else None,
            lm=client,
            # its own, since generations show and cite the functions of their model
            completer=_lm.completer(asked, lm_model, shots=lm_shots, context=lm_context),
        )
        for name, folder in folders.items()
    }
    serve(
        loaders,
        BindAddress(host, port),
        config,
        announce=lambda url: typer.echo(f"serving {', '.join(folders)} at {url} (Ctrl-C stops)"),
        background=[
            *(watch_files(name, paths) for name, paths in watched.items()),
            *(sync_model(name) for name in folders if name not in watched),
        ],
    )
    print_note("stopped")


def check_paths(paths: Sequence[Path]) -> Sequence[Path]:
    """Return `paths`; raise `ConfigError` if one does not exist."""
    for path in paths:
        if not path.exists():
            raise ConfigError(f"--watch {path}: no such file or folder; name sources")
    return paths


def check_stores(folders: Mapping[str, Path], store: str | None) -> list[str]:
    """Return the names of the models with examples in the store, after checking the store.

    Damaged models are skipped here: their loader logs the error, and the others are served.
    """
    from redraft.persistence import check_store, stored_model

    models: dict[str, str | None] = {}
    for name, folder in folders.items():
        with contextlib.suppress(ModelError):
            models[name] = stored_model(folder)
    stored = [name for name, model in models.items() if model]
    for name in stored or (models if store else ()):
        check_store(folders[name], store)
    return stored


def check_apart(folders: Mapping[str, Path]) -> None:
    """Raise `ConfigError` if two models share a folder: each would overwrite the other."""
    names: dict[Path, str] = {}
    for name, folder in folders.items():
        other = names.setdefault(folder.resolve(), name)
        if other != name:
            raise ConfigError(
                f"{folder}: is served as {other} and {name}, and each would overwrite examples "
                "added to the other; name it once, or copy the folder"
            )


def named_folders(models: Sequence[str]) -> dict[str, Path]:
    """Return the model folders by name, from arguments FOLDER or NAME=FOLDER."""
    folders: dict[str, Path] = {}
    for text in models:
        name, equals, path = text.partition("=")
        if not equals or Path(text).is_dir():  # a folder's own name may have a =
            path, name = text, Path(text).resolve().name
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"{text}: name the model with letters, digits, dots, dashes and underscores, "
                "as in NAME=FOLDER"
            )
        if name in folders:
            raise ConfigError(f"{text}: another model has the name {name}; give it as NAME=FOLDER")
        if not (Path(path) / MANIFEST).is_file():
            raise ModelError(
                f"{path}: not a model (no {MANIFEST}); name a folder `redraft fit` wrote"
            )
        folders[name] = Path(path)
    return folders
