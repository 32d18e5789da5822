"""Fit a whole model: first the retriever, then the editor, on one split of the examples.

Dispatches on the classes of the parts; `registry` maps names to classes.
"""

import inspect
from collections.abc import Sequence
from typing import Any

from redraft.editing.base import Editor
from redraft.editing.neural import NeuralEditor
from redraft.errors import ConfigError, PairsError
from redraft.model import RetrieveAndEdit
from redraft.registry import check_part, find_part
from redraft.retrieval.base import Retriever
from redraft.retrieval.dense import InputRetriever, LearnedRetriever
from redraft.storage.examples import is_on_disk
from redraft.training.fit import (
    FitOptions,
    Split,
    after_retriever,
    check_settings,
    fit_editor,
    fit_encoder,
)
from redraft.training.retriever_task import input_target, task_target
from redraft.training.run_folder import training_lock
from redraft.types import Example


def fit_model(
    examples: Sequence[Example],
    *,
    retriever: str | type[Retriever] | Retriever,
    editor: str | type[Editor] | Editor,
    options: FitOptions | None = None,
) -> RetrieveAndEdit:
    """Fit a model on `examples` with parts given by name, class or instance; return it."""
    if not examples:
        raise PairsError("no examples to fit; give at least one pair")
    # a wrong part or setting is an error before anything is trained
    retriever, editor = _find("retriever", retriever), _find("editor", editor)
    _check_editor(editor)
    options = options or FitOptions()
    check_settings(len(examples), options)
    learns_retriever = _is_a(retriever, LearnedRetriever)
    learns = learns_retriever or editor is NeuralEditor
    parts = Split.of(examples, options) if learns else Split(examples, [])
    with training_lock(options.folder, is_main=options.workers.is_main):
        fitted = fit_retriever(parts, retriever, options)
        remaining = after_retriever(options) if learns_retriever else options
        fitted_editor = _fit_editor(parts, fitted, editor, remaining)
    # examples held out of training are retrieved from as well
    held_out = [] if options.dev is not None else parts.dev
    return RetrieveAndEdit(fitted.add(held_out) if held_out else fitted, fitted_editor)


def fit_retriever(
    parts: Split, retriever: str | type[Retriever] | Retriever, options: FitOptions
) -> Retriever:
    """Return a retriever over the training examples of `parts`, trained if it is one that learns.

    `retriever` is a name, a class, or an instance, whose own examples are replaced.
    """
    chosen: Any = _find("retriever", retriever)
    if not isinstance(chosen, type):
        built = chosen.with_examples(parts.train)
    elif issubclass(chosen, LearnedRetriever):
        target = input_target if issubclass(chosen, InputRetriever) else task_target
        encoder = fit_encoder(parts, options, target=target)
        _log_many("embedding", parts, options)
        built = chosen.build(parts.train, encoder)
    elif hasattr(chosen, "build"):
        _log_many("indexing", parts, options)
        built = chosen.build(parts.train)
    else:
        built = chosen(parts.train)  # type: ignore[call-arg]
    return built  # type: ignore[no-any-return]


def _fit_editor(parts: Split, retriever: Retriever, editor: Any, options: FitOptions) -> Editor:
    """Return the editor: trained if it learns, built if it is a class, otherwise as it is."""
    if not isinstance(editor, type):
        return editor  # type: ignore[no-any-return]
    if editor is NeuralEditor:
        return fit_editor(parts, retriever, options)
    if hasattr(editor, "fit"):
        return editor.fit(parts.train, retriever)  # type: ignore[no-any-return]
    return editor()  # type: ignore[no-any-return]


def _find(kind: str, part: Any) -> Any:
    """Return a part by name as its class; check that a class or an instance is of this kind."""
    if isinstance(part, str):
        return find_part(kind, part)
    part_type = part if isinstance(part, type) else type(part)
    check_part(kind, part_type, source=f"{part_type.__module__}:{part_type.__qualname__}")
    return part


def _check_editor(editor: Any) -> None:
    """Raise a ConfigError for an editor class that cannot be built."""
    if not isinstance(editor, type) or editor is NeuralEditor or hasattr(editor, "fit"):
        return
    try:
        inspect.signature(editor).bind()
    except TypeError as error:
        raise ConfigError(
            f"{editor.__module__}:{editor.__qualname__}: cannot be built; give it a classmethod "
            "fit(examples, retriever), or a constructor without arguments"
        ) from error


def _is_a(part: Any, base: type) -> bool:
    return isinstance(part, type) and issubclass(part, base)


def _log_many(action: str, parts: Split, options: FitOptions) -> None:
    """Log an action that takes a while, if there are many examples."""
    if is_on_disk(parts.train):
        options.log(f"retriever: {action} {len(parts.train):,} examples")
