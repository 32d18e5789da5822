"""The composition root: the only place where names become parts, and parts become a model."""

import importlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from redraft import __version__
from redraft.artifact import Artifact, open_artifact, write_artifact
from redraft.config import override, read_toml, to_toml
from redraft.data.example import Example
from redraft.data.pairs import write_pairs
from redraft.data.split import split
from redraft.errors import ConfigError, ModelError, PairsError
from redraft.retrieve_and_edit import RetrieveAndEdit

if TYPE_CHECKING:
    from redraft.retrieval.encoder import DirectionEncoder
    from redraft.retrieval.retriever import Retriever
    from redraft.training.loop import Observer
    from redraft.training.train_retriever import Judge, RetrieverConfig, Target

RETRIEVERS = {
    "lexical": "redraft.retrieval.lexical:LexicalRetriever",
    "bm25": "redraft.retrieval.lexical:Bm25Retriever",
    "task": "redraft.retrieval.learned:TaskRetriever",
    "input": "redraft.retrieval.learned:InputRetriever",
    "hybrid": "redraft.retrieval.hybrid:HybridRetriever",
    "none": "redraft.retrieval.retriever:NoRetriever",
}
EDITORS = {"verbatim": "redraft.editing.editor:VerbatimEditor"}
"""Where each part is; it is imported when it is asked for, since some bring torch."""

DEV_SHARE = 0.1
DEV_MOST = 300
SMALL = 5_000

_EXAMPLES = "examples.jsonl"
_SETTINGS = "model.toml"


def part(table: dict[str, str], name: str, *, kind: str) -> Any:
    """The class with this name, or an error that lists the names there are."""
    if name not in table:
        raise ConfigError(f"no {kind} is called {name!r}; choose one of: {', '.join(table)}")
    module, _, attribute = table[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


@dataclass(frozen=True)
class FitOptions:
    """How learned parts are trained; parts that learn nothing pass it over."""

    settings: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    device: str = "auto"
    folder: Path | None = None
    observer: "Observer | None" = None


def fit_model(
    examples: Sequence[Example],
    *,
    retriever: str,
    editor: str,
    options: FitOptions | None = None,
) -> RetrieveAndEdit:
    """A model of these examples with the named parts."""
    if not examples:
        raise PairsError("no examples to fit; give at least one pair")
    editor_type = part(EDITORS, editor, kind="editor")
    fitted = fit_retriever(examples, retriever, options or FitOptions())
    return RetrieveAndEdit(fitted, editor_type())


def fit_retriever(examples: Sequence[Example], name: str, options: FitOptions) -> "Retriever":
    """The named retriever over these examples, trained if it is one that learns."""
    retriever_type = part(RETRIEVERS, name, kind="retriever")
    return _FITTERS[name](retriever_type, examples, options)


def _fit_nothing(retriever_type: Any, examples: Sequence[Example], _: FitOptions) -> "Retriever":
    return retriever_type(examples)  # type: ignore[no-any-return]


def _fit_words(retriever_type: Any, examples: Sequence[Example], _: FitOptions) -> "Retriever":
    return retriever_type.build(examples)  # type: ignore[no-any-return]


def _fit_task(retriever_type: Any, examples: Sequence[Example], options: FitOptions) -> "Retriever":
    from redraft.training.train_retriever import task_target

    encoder = _fit_and_hold_out(examples, options, target=task_target)
    return retriever_type.build(examples, encoder)  # type: ignore[no-any-return]


def _fit_input(
    retriever_type: Any, examples: Sequence[Example], options: FitOptions
) -> "Retriever":
    from redraft.training.train_retriever import input_target

    encoder = _fit_and_hold_out(examples, options, target=input_target)
    return retriever_type.build(examples, encoder)  # type: ignore[no-any-return]


def _fit_hybrid(
    retriever_type: Any, examples: Sequence[Example], options: FitOptions
) -> "Retriever":
    from redraft.evaluation.editability import mean_bleu
    from redraft.retrieval.learned import TaskRetriever
    from redraft.retrieval.lexical import Bm25Retriever
    from redraft.training.train_retriever import task_target

    train, dev = _hold_out(examples)
    encoder = _fit_and_hold_out(examples, options, target=task_target)
    chosen = retriever_type.choose(
        TaskRetriever.build(train, encoder),
        Bm25Retriever.build(train),
        lambda candidate: mean_bleu(candidate, dev),
    )
    learned, lexical = TaskRetriever.build(examples, encoder), Bm25Retriever.build(examples)
    return retriever_type(learned, lexical, chosen.weight)  # type: ignore[no-any-return]


_FITTERS: dict[str, Callable[[Any, Sequence[Example], FitOptions], "Retriever"]] = {
    "lexical": _fit_words,
    "bm25": _fit_words,
    "task": _fit_task,
    "input": _fit_input,
    "hybrid": _fit_hybrid,
    "none": _fit_nothing,
}


def _fit_and_hold_out(
    examples: Sequence[Example], options: FitOptions, *, target: "Target"
) -> "DirectionEncoder":
    """An encoder of most of the examples, its checkpoint chosen by the rest."""
    train, dev = _hold_out(examples)
    return fit_encoder(train, _judge_by(train, dev), options, target=target)


def _hold_out(examples: Sequence[Example]) -> tuple[list[Example], list[Example]]:
    """The examples to train on, and those to choose by; the same whatever the seed."""
    share = min(DEV_SHARE, DEV_MOST / len(examples))
    parts = split(examples, {"train": 1 - share, "dev": share}, seed=0)
    if not parts["dev"] or not parts["train"]:
        raise PairsError(f"{len(examples)} pairs are too few to learn from; give at least 20")
    return parts["train"], parts["dev"]


def retriever_config(examples: int, options: FitOptions) -> "RetrieverConfig":
    """The settings for this many examples, those given by the user in place of the defaults."""
    from redraft.training.train_retriever import large_config, small_config

    config = small_config() if examples < SMALL else large_config()
    config = override(config, {"training": {"seed": options.seed}}, where="seed")
    return override(config, options.settings.get("retriever", {}), where="[retriever]")


def _judge_by(train: Sequence[Example], dev: Sequence[Example]) -> "Judge":
    """Scores an encoder by the outputs it finds in train for the inputs of dev."""
    from redraft.evaluation.editability import mean_bleu
    from redraft.retrieval.learned import TaskRetriever

    return lambda encoder: {"dev_bleu": mean_bleu(TaskRetriever.build(train, encoder), dev)}


def fit_encoder(
    train: Sequence[Example], judge: "Judge", options: FitOptions, *, target: "Target"
) -> "DirectionEncoder":
    """The encoder of a learned retriever, its checkpoint chosen by the judge."""
    from redraft.training.device import choose_device
    from redraft.training.train_retriever import train_encoder

    with run_folder(options.folder) as folder:
        return train_encoder(
            train,
            retriever_config(len(train), options),
            target=target,
            judge=judge,
            folder=folder,
            device=choose_device(options.device),
            observer=options.observer,
        )


@contextmanager
def run_folder(folder: Path | None) -> Iterator[Path]:
    """The folder of a training that can go on after a kill; a passing one if none was named."""
    if folder is not None:
        yield folder
        return
    with TemporaryDirectory() as passing:
        yield Path(passing)


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
    retriever_type = part(RETRIEVERS, names["retriever"], kind="retriever")
    editor_type = part(EDITORS, names["editor"], kind="editor")
    return RetrieveAndEdit(
        retriever_type.load(artifact.part("retriever"), read_examples(artifact)),
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
