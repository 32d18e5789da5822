"""`redraft serve`: models over HTTP."""

import importlib.util
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from redraft.artifact import MANIFEST
from redraft.cli.console import remark
from redraft.cli.options import StoreOption
from redraft.errors import ConfigError, MissingExtraError, ModelError

LONGEST_TIME_LIMIT = 86_400

_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}")
_NEEDED = ("fastapi", "uvicorn", "prometheus_client", "watchfiles")


def command(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL",
            help="Folders that `redraft fit` wrote. A model's name is its folder's, or NAME "
            "where it is given as NAME=FOLDER. The first answers where none is named.",
            show_default=False,
        ),
    ],
    host: Annotated[
        str, typer.Option(help="Where to listen; other machines can ask only with a token.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Where to listen; 0 for any port that is free.")
    ] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="REDRAFT_TOKEN",
            help="What clients must send as `Authorization: Bearer TOKEN`. Better set in the "
            "environment, where other users of the machine do not see it.",
            show_default=False,
            show_envvar=True,
        ),
    ] = None,
    watch: Annotated[
        list[Path] | None,
        typer.Option(
            help="Make the functions of these Python files or folders the examples of the first "
            "model, and exchange them as they change. In memory: its folder stays as it is.",
            show_default=False,
        ),
    ] = None,
    time_limit: Annotated[
        float,
        typer.Option(
            min=0.1, max=LONGEST_TIME_LIMIT, help="Seconds after which a request is given up."
        ),
    ] = 30.0,
    batching: Annotated[
        bool,
        typer.Option(help="Answer predictions together that wait at the same time."),
    ] = True,
    store: StoreOption = None,
) -> None:
    """Answer over HTTP, with a web page, until Ctrl-C.

    Each model runs in a thread of its own, and what is added to it is written to its folder.
    `/v1/predict`, `/v1/complete`, `/v1/retrieve` and `/v1/examples` speak JSON, `/v1/completions`
    is for OpenAI's clients, `/healthz`, `/readyz` and `/metrics` are for operators, and
    `/openapi.json` tells it all. Several servers may answer from one `--store`: what is added
    through one of them appears through all. What is asked is never logged. From Python:
    `redraft.Client`.

    Examples: `redraft serve model/`, then
    `curl -s localhost:8000/v1/predict --json '{"inputs": ["sum the first two elements of tmp"]}'`;
    `redraft serve functions/ --watch ~/project`;
    `REDRAFT_TOKEN=… redraft serve cards=hs/ code=functions/ --host 0.0.0.0`
    """
    for package in _NEEDED:
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(package, extra="serve", purpose="redraft serve")
    from redraft.serving.http.app import AppConfig
    from redraft.serving.http.following import following
    from redraft.serving.http.hosting import HostingConfig
    from redraft.serving.http.refreshing import refreshing
    from redraft.serving.http.security import SecurityConfig, names_of
    from redraft.serving.http.server import Address, check_exposure, check_token, loader, serve

    check_exposure(host, token)
    check_token(token)
    folders = named_folders(models)
    watched = {next(iter(folders)): check_paths(watch)} if watch else {}
    check_apart({name: path for name, path in folders.items() if name not in watched})
    stored = check_stores(folders, store)
    config = AppConfig(
        hosting=HostingConfig(time_limit=time_limit, is_batching=batching),
        security=SecurityConfig(token=token or None, names=names_of(host)),
    )
    serve(
        {
            name: loader(
                name,
                folder,
                is_kept=name not in watched,
                store=store if name in stored else None,
            )
            for name, folder in folders.items()
        },
        Address(host, port),
        config,
        announce=lambda url: _announce(url, list(folders)),
        background=[
            *(following(name, paths) for name, paths in watched.items()),
            *(refreshing(name) for name in stored if name not in watched),
        ],
    )
    remark("stopped")


def check_paths(paths: Sequence[Path]) -> Sequence[Path]:
    """The paths, all of which must be there."""
    for path in paths:
        if not path.exists():
            raise ConfigError(f"--watch {path}: no such file or folder; name Python sources")
    return paths


def check_stores(folders: Mapping[str, Path], store: str | None) -> list[str]:
    """The names of the models whose examples are in the store, which must be there for each."""
    from redraft.experiment import check_store, stored_model

    stored = [name for name, folder in folders.items() if stored_model(folder)]
    for name in stored or (folders if store else ()):
        check_store(folders[name], store)
    return stored


def check_apart(folders: Mapping[str, Path]) -> None:
    """Refuse two models that are written to one folder: each would undo what the other adds."""
    names: dict[Path, str] = {}
    for name, folder in folders.items():
        other = names.setdefault(folder.resolve(), name)
        if other != name:
            raise ConfigError(
                f"{folder}: is named {other} and {name}, and each would overwrite what is added "
                "to the other; name it once, or copy the folder"
            )


def named_folders(models: Sequence[str]) -> dict[str, Path]:
    """The folders of the models by their names."""
    found: dict[str, Path] = {}
    for text in models:
        name, equals, path = text.partition("=")
        if not equals or Path(text).is_dir():  # a folder's own name may have a =
            path, name = text, Path(text).resolve().name
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"{text}: name the model with letters, digits, dots, dashes and underscores, "
                "as in NAME=FOLDER"
            )
        if name in found:
            raise ConfigError(f"{text}: another model has the name {name}; give it as NAME=FOLDER")
        if not (Path(path) / MANIFEST).is_file():
            raise ModelError(
                f"{path}: not a model (no {MANIFEST}); name a folder `redraft fit` wrote"
            )
        found[name] = Path(path)
    return found


def _announce(url: str, names: Sequence[str]) -> None:
    typer.echo(f"serving {', '.join(names)} at {url} (Ctrl-C stops)")
