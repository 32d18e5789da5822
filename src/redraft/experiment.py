"""The composition root: the only place where names become parts, and parts become a model."""

import importlib
import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redraft import __version__
from redraft.artifact import MANIFEST, Artifact, open_artifact, write_artifact
from redraft.config import read_toml, to_toml
from redraft.data.example import Example
from redraft.data.filed import IDENTITIES, LINES, OFFSETS, ExampleFile, FiledExamples
from redraft.data.pairs import write_pairs
from redraft.errors import ConfigError, ModelError, PairsError
from redraft.retrieve_and_edit import RetrieveAndEdit

if TYPE_CHECKING:
    from redraft.editing.editor import Editor
    from redraft.fitting import FitOptions, Parts
    from redraft.retrieval.postgres import PostgresStore
    from redraft.retrieval.retriever import Retriever

RETRIEVERS = {
    "lexical": "redraft.retrieval.lexical:LexicalRetriever",
    "bm25": "redraft.retrieval.lexical:Bm25Retriever",
    "task": "redraft.retrieval.learned:TaskRetriever",
    "input": "redraft.retrieval.learned:InputRetriever",
    "hybrid": "redraft.retrieval.hybrid:HybridRetriever",
    "none": "redraft.retrieval.retriever:NoRetriever",
}
EDITORS = {
    "verbatim": "redraft.editing.editor:VerbatimEditor",
    "neural": "redraft.editing.neural_editor:NeuralEditor",
}
"""Where each part is; it is imported when it is asked for, since some bring torch."""

LEARNED = {"task", "input", "hybrid", "neural"}
"""The parts that need examples held out."""

_LOG = logging.getLogger(__name__)

_SETTINGS = "model.toml"


def part(table: dict[str, str], name: str, *, kind: str) -> Any:
    """The class with this name, or an error that lists the names there are."""
    if name not in table:
        raise ConfigError(f"no {kind} is called {name!r}; choose one of: {', '.join(table)}")
    module, _, attribute = table[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def fit_model(
    examples: Sequence[Example],
    *,
    retriever: str,
    editor: str,
    options: "FitOptions | None" = None,
) -> RetrieveAndEdit:
    """A model of these examples with the named parts, trained if they learn."""
    from redraft.fitting import FitOptions, Parts, after_retriever, check_settings

    if not examples:
        raise PairsError("no examples to fit; give at least one pair")
    for table, name, kind in ((RETRIEVERS, retriever, "retriever"), (EDITORS, editor, "editor")):
        part(table, name, kind=kind)  # a wrong name is told before anything is trained
    options = options or FitOptions()
    check_settings(len(examples), options)
    learns = retriever in LEARNED or editor in LEARNED
    parts = Parts.of(examples, options) if learns else Parts(examples, [])
    found = fit_retriever(parts, retriever, options)
    left = after_retriever(options) if retriever in LEARNED else options
    edited = _EDITOR_FITTERS[editor](parts, found, left)
    # what was held out of training answers from now on
    held_out = [] if options.dev is not None else parts.dev
    return RetrieveAndEdit(found.add(held_out) if held_out else found, edited)


def fit_retriever(parts: "Parts", name: str, options: "FitOptions") -> "Retriever":
    """The named retriever over the training examples, trained if it is one that learns."""
    retriever_type = part(RETRIEVERS, name, kind="retriever")
    return _FITTERS[name](retriever_type, parts, options)


def _fit_nothing(retriever_type: Any, parts: "Parts", _: "FitOptions") -> "Retriever":
    return retriever_type(parts.train)  # type: ignore[no-any-return]


def _tell_of_many(what: str, parts: "Parts", options: "FitOptions") -> None:
    """Say what is done next to many examples: it takes a while."""
    if isinstance(parts.train, FiledExamples):
        options.tell(f"retriever: {what} {len(parts.train):,} examples")


def _fit_words(retriever_type: Any, parts: "Parts", options: "FitOptions") -> "Retriever":
    _tell_of_many("counting the words of", parts, options)
    return retriever_type.build(parts.train)  # type: ignore[no-any-return]


def _fit_task(retriever_type: Any, parts: "Parts", options: "FitOptions") -> "Retriever":
    from redraft.fitting import fit_encoder
    from redraft.training.train_retriever import task_target

    encoder = fit_encoder(parts, options, target=task_target)
    _tell_of_many("embedding", parts, options)
    return retriever_type.build(parts.train, encoder)  # type: ignore[no-any-return]


def _fit_input(retriever_type: Any, parts: "Parts", options: "FitOptions") -> "Retriever":
    from redraft.fitting import fit_encoder
    from redraft.training.train_retriever import input_target

    encoder = fit_encoder(parts, options, target=input_target)
    _tell_of_many("embedding", parts, options)
    return retriever_type.build(parts.train, encoder)  # type: ignore[no-any-return]


def _fit_hybrid(retriever_type: Any, parts: "Parts", options: "FitOptions") -> "Retriever":
    from redraft.evaluation.editability import mean_bleu
    from redraft.retrieval.lexical import Bm25Retriever

    learned = fit_retriever(parts, "task", options)
    lexical = fit_retriever(parts, Bm25Retriever.name, options)
    if not parts.dev:
        return retriever_type(learned, lexical)  # type: ignore[no-any-return]
    return retriever_type.choose(  # type: ignore[no-any-return]
        learned, lexical, lambda candidate: mean_bleu(candidate, parts.dev)
    )


_FITTERS: dict[str, Callable[[Any, "Parts", "FitOptions"], "Retriever"]] = {
    "lexical": _fit_words,
    "bm25": _fit_words,
    "task": _fit_task,
    "input": _fit_input,
    "hybrid": _fit_hybrid,
    "none": _fit_nothing,
}


def _fit_verbatim(_: "Parts", __: "Retriever", ___: "FitOptions") -> "Editor":
    from redraft.editing.editor import VerbatimEditor

    return VerbatimEditor()


def _fit_neural(parts: "Parts", retriever: "Retriever", options: "FitOptions") -> "Editor":
    from redraft.fitting import fit_editor

    return fit_editor(parts, retriever, options)


_EDITOR_FITTERS: dict[str, Callable[["Parts", "Retriever", "FitOptions"], "Editor"]] = {
    "verbatim": _fit_verbatim,
    "neural": _fit_neural,
}


def save_model(
    model: RetrieveAndEdit, folder: str | os.PathLike[str], *, store: str | None = None
) -> None:
    """Write the model to the folder, whole or not at all; with a store, its examples go there.

    Where the examples are those of the folder's own store, only what changed is written to it.
    """
    from redraft.retrieval.postgres import created
    from redraft.retrieval.stored import StoredExamples

    retriever, folder = model.retriever, Path(folder)
    examples = retriever.examples
    if isinstance(examples, StoredExamples) and examples.store.model == stored_model(folder):
        examples.write(retriever.directions(examples.added))
    elif store is None:
        _write(model, folder)
    else:
        before = stored_model(folder)
        directions = retriever.directions(range(len(examples)))
        with created(store, examples, directions) as made:
            # without examples it is a model like any other
            bare = RetrieveAndEdit(retriever.over([]), model.editor)
            _write(bare, folder, {"store": {"model": made.model}})
        if before is not None:
            _LOG.info(
                "%s: the examples it had before stay in their schema redraft_%s", folder, before
            )


def _write(
    model: RetrieveAndEdit, folder: Path, tables: Mapping[str, dict[str, Any]] | None = None
) -> None:
    with write_artifact(folder) as staging:
        examples = model.retriever.examples
        if isinstance(examples, FiledExamples):
            examples.save(staging)
        else:
            write_pairs(examples, staging / LINES)
        for name, saved in (("retriever", model.retriever), ("editor", model.editor)):
            (staging / name).mkdir()
            saved.save(staging / name)
        settings: dict[str, dict[str, Any]] = {
            "model": {"redraft": __version__, "examples": len(examples)},
            "retriever": {"name": model.retriever.name},
            "editor": {"name": model.editor.name},
            **(tables or {}),
        }
        (staging / _SETTINGS).write_text(to_toml(settings), encoding="utf-8")


def load_model(folder: str | os.PathLike[str], *, store: str | None = None) -> RetrieveAndEdit:
    """The model in the folder, over the examples of its store if it has one."""
    artifact = open_artifact(Path(folder))
    names = _part_names(artifact)
    retriever_type = part(RETRIEVERS, names["retriever"], kind="retriever")
    editor_type = part(EDITORS, names["editor"], kind="editor")
    retriever = retriever_type.load(artifact.part("retriever"), read_examples(artifact))
    editor = editor_type.load(artifact.part("editor"))
    opened = open_store(artifact, store)
    if opened is not None:
        from redraft.retrieval.stored import StoredExamples

        retriever = retriever.over(StoredExamples.read(opened))
    return RetrieveAndEdit(retriever, editor)


def refreshed(model: RetrieveAndEdit) -> RetrieveAndEdit:
    """The model over what its store has now, changes not written left out; itself if the same."""
    from redraft.retrieval.stored import StoredExamples

    examples = model.retriever.examples
    if not isinstance(examples, StoredExamples):
        return model
    now = examples.refreshed()
    return model if now is examples else RetrieveAndEdit(model.retriever.over(now), model.editor)


def stored_model(folder: Path) -> str | None:
    """What the model in the folder is called in its store; None if it has no store."""
    if not (folder / MANIFEST).exists():
        return None
    return _stored_model(open_artifact(folder, only=_SETTINGS))


def _stored_model(artifact: Artifact) -> str | None:
    settings = read_toml(artifact.path(_SETTINGS))
    return str(settings["store"]["model"]) if "store" in settings else None


def open_store(artifact: Artifact, store: str | None) -> "PostgresStore | None":
    """The store of a saved model; None where its examples are in its folder."""
    model = _stored_model(artifact)
    if model is None and store is None:
        return None
    if model is None:
        raise ModelError(f"{artifact.folder}: has its examples in the folder; leave out --store")
    if store is None:
        raise ModelError(
            f"{artifact.folder}: its examples are in a store; name it with --store postgresql://…"
        )
    from redraft.retrieval.postgres import PostgresStore

    return PostgresStore.open(store, model)


def check_store(folder: Path, store: str | None) -> None:
    """Refuse a store that is not the one of this model, or where it has none."""
    opened = open_store(open_artifact(folder, only=_SETTINGS), store)
    if opened is not None:
        opened.close()


def store_version(folder: str | os.PathLike[str], store: str | None) -> int | None:
    """How often the store of the model in the folder was changed; None where it has none."""
    opened = open_store(open_artifact(Path(folder), only=_SETTINGS), store)
    if opened is None:
        return None
    try:
        return opened.version
    finally:
        opened.close()


def _part_names(artifact: Artifact) -> dict[str, str]:
    settings = read_toml(artifact.path(_SETTINGS))
    try:
        return {kind: settings[kind]["name"] for kind in ("retriever", "editor")}
    except (KeyError, TypeError) as error:
        raise ModelError(f"{artifact.folder}: {_SETTINGS} names no {error}; fit again") from error


def read_examples(artifact: Artifact) -> Sequence[Example]:
    """The examples of a saved model, in the order of its rows; many stay in their file."""
    if OFFSETS in artifact.files:
        return FiledExamples(ExampleFile(*map(artifact.path, (LINES, OFFSETS, IDENTITIES))))
    with artifact.path(LINES).open(encoding="utf-8") as stream:
        return [Example.from_json(json.loads(line)) for line in stream]


def describe_model(folder: str | os.PathLike[str], *, store: str | None = None) -> dict[str, Any]:
    """What a saved model is made of."""
    artifact = open_artifact(Path(folder))
    opened = open_store(artifact, store)
    examples: Sequence[Example] = (
        list(opened.read({}).examples.values()) if opened else read_examples(artifact)
    )
    return {
        "model": str(folder),
        **_part_names(artifact),
        "examples": len(examples),
        "fields": list(examples[0].x) if examples else [],
        "meta": sorted({key for example in examples for key in example.meta}),
        "bytes": sum(path.stat().st_size for path in artifact.files.values()),
        "redraft": read_toml(artifact.path(_SETTINGS))["model"]["redraft"],
    }
