"""Fit a whole model: first the retriever, then the editor, on one split of the examples.

Dispatches on the classes of the parts; `registry` maps names to classes. Neural parts are known by
the names of their classes, so that torch is imported only if one of them is fitted.
"""

import inspect
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redraft.editing.base import Editor
from redraft.editing.choosing import ChoosingEditor
from redraft.editing.constraints import find_syntax
from redraft.editing.value_table import MAX_PAIRS
from redraft.errors import ConfigError, PairsError
from redraft.model import RetrieveAndEdit
from redraft.registry import EDITORS, RETRIEVERS, check_part, find_part, reference_of
from redraft.retrieval.base import Retriever
from redraft.storage.examples import is_on_disk
from redraft.training.epoch_sampling import vocabulary_sample
from redraft.training.fit import (
    FitOptions,
    Split,
    after_retriever,
    check_settings,
    log_many,
    time_left,
)
from redraft.training.fit_choosing import Judge, add_neural, fit_choosing
from redraft.training.fit_lm import add_lm
from redraft.training.run_folder import training_lock
from redraft.types import Example

if TYPE_CHECKING:
    from redraft.editing.neural import NeuralEditor
    from redraft.editing.sketch_editor import SketchEditor

NEURAL_EDITOR = EDITORS["neural"]
CHOOSING_EDITOR = EDITORS["choosing"]
LM_SHARE = 0.2
"""Share of the budget for judging a language model on dev."""

JUDGING_SHARE = 0.1
"""Share of the budget for judging the network on dev."""

LEARNED_RETRIEVER = "redraft.retrieval.dense:LearnedRetriever"


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
    _check_encoder(retriever, options)
    learns_retriever = _is_learned(retriever)
    is_choosing = isinstance(editor, type) and reference_of(editor) == CHOOSING_EDITOR
    if options.lm is not None and not is_choosing:
        raise ConfigError("a language model is judged beside the choosing editor; leave out one")
    trains = _is_neural(editor) or (is_choosing and _trains_network(options))
    parts = Split(examples, [])
    if learns_retriever or trains or options.lm is not None:
        parts = Split.of(examples, options, judges=is_choosing and (trains or bool(options.lm)))
    started = time.monotonic()
    with training_lock(options.folder, is_main=options.workers.is_main):
        fitted = fit_retriever(parts, retriever, options)
        # examples held out of training are retrieved from as well
        held_out = [] if options.dev is not None else parts.dev
        complete = _indexed(fitted, examples, held_out)
        remaining = after_retriever(options) if learns_retriever else options
        if not is_choosing:
            return RetrieveAndEdit(complete, _fit_editor(parts, fitted, editor, remaining))
        chosen = fit_choosing(complete.examples, complete, options)
        judge = Judge(parts.dev, fitted, chosen)
        trains = trains and judge.is_able(options)
        if trains and options.workers.is_main:
            options.on_ready(RetrieveAndEdit(complete, chosen))
        if held_out and (trains or options.lm is not None):
            unlogged = replace(options, log=lambda _: None)
            judge = replace(judge, editor=fit_choosing(parts.train, fitted, unlogged))
        if trains:
            import redraft.training.fit_neural  # noqa: F401 (torch's import uses the budget, too)

            left = replace(
                remaining, budget=time_left(remaining.budget, time.monotonic() - started)
            )
            if options.lm is not None:
                left = replace(left, budget=(1 - LM_SHARE) * left.budget)
            chosen = _with_network(chosen, parts, judge, left)
        if options.lm is not None and options.workers.is_main:
            seconds = LM_SHARE * options.budget if options.budget else math.inf
            chosen = add_lm(chosen, options.lm, judge, options, seconds=seconds)
    return RetrieveAndEdit(complete, chosen)


def _indexed(
    fitted: Retriever, examples: Sequence[Example], held_out: Sequence[Example]
) -> Retriever:
    """Return the retriever over all examples: in their order, as an untrained model has them.

    What takes minutes is not done twice: embedded examples and those on disk keep their places,
    and the held-out ones come last.
    """
    if not held_out:
        return fitted
    is_slow = is_on_disk(examples) or fitted.embeddings([0]) is not None
    return fitted.add(held_out) if is_slow else fitted.with_examples(examples)


def _trains_network(options: FitOptions) -> bool:
    """Return True if the default editor gets a network: it is wanted, and torch is installed."""
    if options.train and find_spec("torch") is None:
        options.log(
            "editor: no network, since torch is not installed (pip install 'redraft[neural]')"
        )
    return options.train and find_spec("torch") is not None


def _with_network(
    editor: ChoosingEditor, parts: Split, judge: Judge, options: FitOptions
) -> ChoosingEditor:
    """Train a network and let it propose, if it helps on dev."""
    from redraft.training.fit_neural import train_neural, train_sketches

    training = replace(options, budget=(1 - JUDGING_SHARE) * options.budget)
    neural: NeuralEditor | SketchEditor
    outputs = [example.y for example in vocabulary_sample(parts.train)]
    if len(parts.train) + len(parts.dev) <= MAX_PAIRS and find_syntax(outputs) == "any":
        neural = train_sketches(parts, editor.templates.table, training)
    else:  # sketches are not checked for their syntax, and need the values of every pair
        neural = train_neural(parts, judge.retriever, training)
    if not options.workers.is_main:
        return editor
    seconds = JUDGING_SHARE * options.budget if options.budget else math.inf
    return add_neural(editor, neural, judge, options, seconds=seconds)


def fit_retriever(
    parts: Split, retriever: str | type[Retriever] | Retriever, options: FitOptions
) -> Retriever:
    """Return a retriever over the training examples of `parts`, trained if it is one that learns.

    `retriever` is a name, a class, or an instance, whose own examples are replaced.
    """
    chosen: Any = _find("retriever", retriever)
    if not isinstance(chosen, type):
        built = chosen.with_examples(parts.train)
    elif _is_learned(chosen):
        from redraft.training.fit_neural import fit_learned_retriever

        built = fit_learned_retriever(chosen, parts, options)
    elif reference_of(chosen) in (RETRIEVERS["auto"], RETRIEVERS["reranked"]):
        from redraft.training.fit_auto import fit_auto, fit_reranked

        options.log(f"retriever: editing held-out pairs of {len(parts.train):,} to compare by")
        is_auto = reference_of(chosen) == RETRIEVERS["auto"]
        built = fit_auto(parts.train, options) if is_auto else fit_reranked(parts.train)
    elif reference_of(chosen) == RETRIEVERS["encoder"]:
        from redraft.retrieval.fused import EncoderRetriever
        from redraft.retrieval.published_encoder import read_encoder

        log_many("encoding", parts, options)
        built = EncoderRetriever.build(parts.train, read_encoder(_encoder(options)))
    elif hasattr(chosen, "build"):
        log_many("indexing", parts, options)
        built = chosen.build(parts.train)
    else:
        built = chosen(parts.train)
    return built  # type: ignore[no-any-return]


def _fit_editor(parts: Split, retriever: Retriever, editor: Any, options: FitOptions) -> Editor:
    """Return the editor: trained if it learns, built if it is a class, otherwise as it is."""
    if not isinstance(editor, type):
        return editor  # type: ignore[no-any-return]
    if _is_neural(editor):
        from redraft.training.fit_neural import fit_editor

        return fit_editor(parts, retriever, options)
    if hasattr(editor, "fit"):
        return editor.fit(parts.train, retriever)  # type: ignore[no-any-return]
    return editor()  # type: ignore[no-any-return]


def _find(kind: str, part: Any) -> Any:
    """Return a part by name as its class; check that a class or an instance is of this kind."""
    if isinstance(part, str):
        return find_part(kind, part)
    part_type = part if isinstance(part, type) else type(part)
    check_part(kind, part_type, source=reference_of(part_type))
    return part


def _check_editor(editor: Any) -> None:
    """Raise a ConfigError for an editor class that cannot be built."""
    is_ours = isinstance(editor, type) and reference_of(editor) in (NEURAL_EDITOR, CHOOSING_EDITOR)
    if not isinstance(editor, type) or is_ours or hasattr(editor, "fit"):
        return
    try:
        inspect.signature(editor).bind()
    except TypeError as error:
        raise ConfigError(
            f"{reference_of(editor)}: cannot be built; give it a classmethod "
            "fit(examples, retriever), or a constructor without arguments"
        ) from error


def _check_encoder(retriever: Any, options: FitOptions) -> None:
    """Raise a ConfigError for a sentence encoder that no retriever uses, or the reverse."""
    reference = reference_of(retriever) if isinstance(retriever, type) else ""
    if reference == RETRIEVERS["encoder"]:
        _encoder(options)
    elif options.encoder is not None and reference != RETRIEVERS["auto"]:
        raise ConfigError("--encoder: needs --retriever encoder or auto")


def _encoder(options: FitOptions) -> Path:
    if options.encoder is None:
        raise ConfigError("--retriever encoder: needs a sentence encoder; add --encoder PATH")
    return options.encoder


def _is_learned(retriever: Any) -> bool:
    """Return True for a class of learned retrievers, whose encoder has to be trained."""
    bases = retriever.__mro__ if isinstance(retriever, type) else ()
    return any(reference_of(base) == LEARNED_RETRIEVER for base in bases)


def _is_neural(editor: Any) -> bool:
    """Return True for the class of the neural editor; a class derived from it has its own `fit`."""
    return isinstance(editor, type) and reference_of(editor) == NEURAL_EDITOR
