"""The composition root: the only place where names become parts, and parts become a model."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from redraft import __version__
from redraft.artifact import Artifact, open_artifact, write_artifact
from redraft.config import read_toml, to_toml
from redraft.data.example import Example
from redraft.data.pairs import write_pairs
from redraft.editing.editor import Editor, VerbatimEditor
from redraft.errors import ConfigError, ModelError, PairsError
from redraft.retrieval.lexical import Bm25Retriever, LexicalRetriever
from redraft.retrieval.retriever import NoRetriever, Retriever
from redraft.retrieve_and_edit import RetrieveAndEdit

RETRIEVERS: dict[str, type[Retriever]] = {
    part.name: part for part in (LexicalRetriever, Bm25Retriever, NoRetriever)
}
EDITORS: dict[str, type[Editor]] = {part.name: part for part in (VerbatimEditor,)}

_EXAMPLES = "examples.jsonl"
_SETTINGS = "model.toml"

Part = TypeVar("Part")


def part(table: Mapping[str, type[Part]], name: str, *, kind: str) -> type[Part]:
    """The part with this name, or an error that lists the names there are."""
    if name not in table:
        raise ConfigError(f"no {kind} is called {name!r}; choose one of: {', '.join(table)}")
    return table[name]


def fit_model(examples: Sequence[Example], *, retriever: str, editor: str) -> RetrieveAndEdit:
    """A model of these examples with the named parts."""
    if not examples:
        raise PairsError("no examples to fit; give at least one pair")
    retriever_type = part(RETRIEVERS, retriever, kind="retriever")
    editor_type = part(EDITORS, editor, kind="editor")
    return RetrieveAndEdit(retriever_type.build(examples), editor_type.build(examples))


def save_model(model: RetrieveAndEdit, folder: str | os.PathLike[str]) -> None:
    """Write the model to the folder, whole or not at all."""
    with write_artifact(Path(folder)) as staging:
        write_pairs(model.retriever.examples, staging / _EXAMPLES)
        for name, saved in (("retriever", model.retriever), ("editor", model.editor)):
            (staging / name).mkdir()
            saved.save(staging / name)
        settings: dict[str, dict[str, Any]] = {
            "model": {"redraft": __version__, "examples": len(model.retriever.examples)},
            "retriever": {"name": model.retriever.name},
            "editor": {"name": model.editor.name},
        }
        (staging / _SETTINGS).write_text(to_toml(settings), encoding="utf-8")


def load_model(folder: str | os.PathLike[str]) -> RetrieveAndEdit:
    """The model in the folder."""
    artifact = open_artifact(Path(folder))
    names = _part_names(artifact)
    examples = read_examples(artifact)
    retriever_type = part(RETRIEVERS, names["retriever"], kind="retriever")
    editor_type = part(EDITORS, names["editor"], kind="editor")
    return RetrieveAndEdit(
        retriever_type.load(artifact.part("retriever"), examples),
        editor_type.load(artifact.part("editor")),
    )


def _part_names(artifact: Artifact) -> dict[str, str]:
    settings = read_toml(artifact.path(_SETTINGS))
    try:
        return {kind: settings[kind]["name"] for kind in ("retriever", "editor")}
    except (KeyError, TypeError) as error:
        raise ModelError(f"{artifact.folder}: {_SETTINGS} names no {error}; fit again") from error


def read_examples(artifact: Artifact) -> list[Example]:
    """The examples of a saved model, in the order of its rows."""
    with artifact.path(_EXAMPLES).open(encoding="utf-8") as stream:
        return [Example.from_json(json.loads(line)) for line in stream]


def describe_model(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """What a saved model is made of."""
    artifact = open_artifact(Path(folder))
    examples = read_examples(artifact)
    return {
        "model": str(folder),
        **_part_names(artifact),
        "examples": len(examples),
        "fields": list(examples[0].x) if examples else [],
        "meta": sorted({key for example in examples for key in example.meta}),
        "bytes": sum(path.stat().st_size for path in artifact.files.values()),
        "redraft": read_toml(artifact.path(_SETTINGS))["model"]["redraft"],
    }
