"""Models on disk: save, load and describe them, with their examples in files or in a store."""

import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redraft import __version__
from redraft.config.toml import read_toml, to_toml
from redraft.editing.base import Editor
from redraft.errors import ModelError
from redraft.model import RetrieveAndEdit
from redraft.registry import find_saved_part, saved_name
from redraft.retrieval.auto import AutoRetriever
from redraft.retrieval.base import Retriever
from redraft.storage.artifact import Artifact, open_artifact, read_artifact
from redraft.storage.artifact_writer import write_artifact
from redraft.storage.checks import damaged, reading, same
from redraft.storage.disk import IDENTITIES, OFFSETS, DiskExamples, ExampleFile, parse_line
from redraft.storage.examples import LINES, examples_of
from redraft.storage.locking import TIMEOUT, exclusive
from redraft.storage.manifest import MANIFEST
from redraft.types import Example

if TYPE_CHECKING:
    from redraft.postgres.store import PostgresStore

_LOG = logging.getLogger(__name__)

SETTINGS = "model.toml"
_LARGEST = 10_000
"""Bytes of the settings: parsing dotted TOML keys takes quadratic time."""
_NEEDED = (
    ("model", "redraft", str),
    ("model", "examples", int),
    ("retriever", "name", str),
    ("editor", "name", str),
)


def save_model(
    model: RetrieveAndEdit, folder: str | os.PathLike[str], *, store: str | None = None
) -> None:
    """Write the model to `folder` atomically; with a `store`, its examples go to that database.

    If the examples are already those of the folder's store, only changes are written to it.
    """
    from redraft.postgres.store import created

    retriever, folder = model.retriever, Path(folder)
    examples = examples_of(retriever.examples)
    if examples.store_name is not None and examples.store_name == stored_model(folder):
        examples.write(retriever.embeddings(examples.added))
    elif store is None:
        _write(model, folder)
    else:
        before = stored_model(folder)
        embeddings = retriever.embeddings(range(len(examples)))
        with created(store, examples, embeddings) as made:
            # the folder gets a model without examples
            bare = RetrieveAndEdit(retriever.with_examples([]), model.editor)
            _write(bare, folder, {"store": {"model": made.model}})
        if before is not None:
            _LOG.info(
                "%s: the examples it had before stay in their schema redraft_%s", folder, before
            )


def _write(
    model: RetrieveAndEdit, folder: Path, tables: Mapping[str, dict[str, Any]] | None = None
) -> None:
    parts: dict[str, Retriever | Editor] = {"retriever": model.retriever, "editor": model.editor}
    names = {kind: saved_name(kind, type(part)) for kind, part in parts.items()}
    with write_artifact(folder) as staging:
        examples = examples_of(model.retriever.examples)
        examples.save(staging)
        for kind, part in parts.items():
            (staging / kind).mkdir()
            part.save(staging / kind)
        settings: dict[str, dict[str, Any]] = {
            "model": {"redraft": __version__, "examples": len(examples)},
            **{kind: {"name": name} for kind, name in names.items()},
            **(tables or {}),
        }
        (staging / SETTINGS).write_text(to_toml(settings), encoding="utf-8")


def locked(folder: Path, *, timeout: float = TIMEOUT) -> AbstractContextManager[None]:
    """Keep other writers out while the model in `folder` is loaded, changed and saved.

    Models whose examples are in a store need no lock: the store has transactions.
    """
    is_stored = stored_model(folder) is not None
    return nullcontext() if is_stored else exclusive(folder, timeout=timeout)


def load_model(folder: str | os.PathLike[str], *, store: str | None = None) -> RetrieveAndEdit:
    """Return the model in `folder`, over the examples of its store if it has one."""
    return read_artifact(Path(folder), lambda artifact: _load(artifact, store))


def _load(artifact: Artifact, store: str | None) -> RetrieveAndEdit:
    model = load_parts(artifact)
    opened = open_store(artifact, store)
    if opened is None:
        return model
    from redraft.postgres.examples import PostgresExamples

    retriever = model.retriever.with_examples(PostgresExamples.read(opened))
    return RetrieveAndEdit(retriever, model.editor)


def load_parts(artifact: Artifact) -> RetrieveAndEdit:
    """Return the model of an open folder; any damage to a file raises a ModelError."""
    folder = artifact.folder
    types = {}
    for kind in ("retriever", "editor"):
        with reading(artifact.path(SETTINGS)):
            name = read_settings(artifact)[kind]["name"]
            types[kind] = find_saved_part(kind, name)
    with reading(artifact.path(LINES)):
        examples = read_examples(artifact)
    with reading(folder / "retriever"):
        retriever = types["retriever"].load(artifact.part("retriever"), examples)
    with reading(folder / "editor"):
        editor = types["editor"].load(artifact.part("editor"))
    return RetrieveAndEdit(retriever, editor)


def refreshed(model: RetrieveAndEdit) -> RetrieveAndEdit:
    """Return the model over the present examples of its store; unwritten changes are dropped.

    Returns `model` itself if its examples are up to date, or not in a store.
    """
    examples = examples_of(model.retriever.examples)
    now = examples.refreshed()
    return (
        model
        if now is examples
        else RetrieveAndEdit(model.retriever.with_examples(now), model.editor)
    )


def stored_model(folder: Path) -> str | None:
    """Return the name of the model in its store; None if it has no store, or there is no model."""
    if not (folder / MANIFEST).exists():
        return None
    return read_artifact(folder, _stored_model, only=SETTINGS)


def _stored_model(artifact: Artifact) -> str | None:
    settings = read_settings(artifact)
    return str(settings["store"]["model"]) if "store" in settings else None


def open_store(artifact: Artifact, store: str | None) -> "PostgresStore | None":
    """Open and return the store of a saved model; None if its examples are in its folder."""
    model = _stored_model(artifact)
    if model is None and store is None:
        return None
    if model is None:
        raise ModelError(f"{artifact.folder}: has its examples in the folder; leave out --store")
    if store is None:
        raise ModelError(
            f"{artifact.folder}: its examples are in a store; name it with --store postgresql://…"
        )
    from redraft.postgres.store import PostgresStore

    return PostgresStore.open(store, model)


def check_store(folder: Path, store: str | None) -> None:
    """Raise an error if `store` is not the store of this model, or if the model has none."""
    store_version(folder, store)


def store_version(folder: str | os.PathLike[str], store: str | None) -> int | None:
    """Return the number of changes to the store of the model in `folder`; None without a store."""
    opened = open_store(open_artifact(Path(folder), only=SETTINGS), store)
    if opened is None:
        return None
    try:
        return opened.version
    finally:
        opened.close()


def describe_model(folder: str | os.PathLike[str], *, store: str | None = None) -> dict[str, Any]:
    """Return the parts, sizes and fields of a saved model, after loading it with every check."""
    return read_artifact(Path(folder), lambda artifact: _describe(artifact, store))


def _describe(artifact: Artifact, store: str | None) -> dict[str, Any]:
    opened = open_store(artifact, store)
    model, settings = load_parts(artifact), read_settings(artifact)
    examples: Sequence[Example] = (
        list(opened.read({}).examples.values()) if opened else model.retriever.examples
    )
    return {
        "model": str(artifact.folder),
        **{kind: settings[kind]["name"] for kind in ("retriever", "editor")},
        **_selection(model.retriever),
        "examples": len(examples),
        "fields": list(examples[0].x) if examples else [],
        "meta": sorted({key for example in examples for key in example.meta}),
        "bytes": sum(path.stat().st_size for path in artifact.files.values()),
        "redraft": settings["model"]["redraft"],
    }


def _selection(retriever: Retriever) -> dict[str, Any]:
    """Return which retriever was chosen and what by, if one was."""
    if not isinstance(retriever, AutoRetriever):
        return {}
    return {"selection": retriever.selection.to_json()}


def read_settings(artifact: Artifact) -> dict[str, dict[str, Any]]:
    """Return the tables of `model.toml`: names of the parts, number of examples, the store."""
    path = artifact.path(SETTINGS)
    if path.stat().st_size > _LARGEST:
        raise damaged(path, f"more than {_LARGEST:,} bytes")
    with reading(path):
        tables = read_toml(path)
        for table, name, kind in _NEEDED:
            value = tables.get(table, {}).get(name)
            if type(value) is not kind:
                raise damaged(path, f"{table}.{name} is not of type {kind.__name__}")
        if "store" in tables and type(tables["store"].get("model")) is not str:
            raise damaged(path, "store.model is not of type str")
    return tables


def read_examples(artifact: Artifact) -> Sequence[Example]:
    """Return the examples of a saved model in row order; many examples stay on disk."""
    path, expected = artifact.path(LINES), read_settings(artifact)["model"]["examples"]
    examples: Sequence[Example]
    if OFFSETS in artifact.files:
        examples = DiskExamples(ExampleFile(path, *map(artifact.path, (OFFSETS, IDENTITIES))))
    else:
        with path.open("rb") as stream:
            examples = [parse_line(line, path, row) for row, line in enumerate(stream)]
    same(path, "examples", (expected, len(examples)))
    return examples
