"""Fitting of the neural parts: the encoder of a learned retriever, and the neural editor."""

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from redraft.config.toml import override
from redraft.editing.constraints import AUTO
from redraft.editing.neural import NeuralEditor
from redraft.editing.sketch import sketch_examples
from redraft.editing.sketch_editor import SketchEditor
from redraft.editing.value_table import ValueTable
from redraft.metrics.next_token import first_choice_share
from redraft.metrics.retrieval_quality import mean_bleu
from redraft.model import RetrieveAndEdit
from redraft.retrieval.base import NoRetriever, Retriever
from redraft.retrieval.dense import InputRetriever, LearnedRetriever, TaskRetriever
from redraft.retrieval.encoder import DenseEncoder
from redraft.storage import disk
from redraft.storage.disk import draw_rows, take
from redraft.storage.examples import is_on_disk
from redraft.training.cache_gate import fit_cache
from redraft.training.editor_config import PROJECT, EditorConfig, count_projects
from redraft.training.editor_task import train_editor
from redraft.training.epoch_sampling import VOCABULARY_SAMPLE, vocabulary_sample
from redraft.training.fit import (
    DEV_MIN,
    RETRIEVER_SHARE,
    FitOptions,
    Split,
    calibrate,
    editor_config,
    log_many,
    retriever_config,
    time_left,
)
from redraft.training.progress import announced
from redraft.training.prototype_sampling import (
    Find,
    MixedPrototypes,
    NearbyPrototypes,
    NoisyPrototypes,
    NoPrototypes,
    PrototypeSource,
    TopPrototypes,
    across_projects,
    everywhere,
    in_project,
    whole_projects,
)
from redraft.training.retriever_task import (
    Target,
    Validate,
    input_target,
    task_target,
    train_encoder,
)
from redraft.training.run_folder import run_folder
from redraft.types import Example

SAMPLED_FROM = 3
"""A training prototype is one of this many nearest; a learned retriever adds noise instead."""

CALIBRATION_SHARE = 0.1
"""Share of the budget for calibration."""

CALIBRATED_PER_SECOND = 1.0
"""Held-out examples for calibration per second of the budget."""

VALIDATION_INDEX = 10_000
"""Size of the sample that a retriever is validated on, for examples on disk."""

OF_PROJECTS = 50_000
"""Size of the sample of whole projects that an editor is trained on, for examples on disk."""


def fit_learned_retriever(
    retriever: type[LearnedRetriever], parts: Split, options: FitOptions
) -> LearnedRetriever:
    """Train an encoder and return a retriever of this class over the training examples."""
    target = input_target if issubclass(retriever, InputRetriever) else task_target
    encoder = fit_encoder(parts, options, target=target)
    log_many("embedding", parts, options)
    return retriever.build(parts.train, encoder)


def fit_encoder(
    parts: Split,
    options: FitOptions,
    *,
    target: Target,
    validate: Validate | None = None,
) -> DenseEncoder:
    """Train the encoder of a learned retriever, validated by the BLEU of its prototypes on dev."""

    indexed = parts.train
    if is_on_disk(indexed):
        indexed = take(indexed, draw_rows(len(indexed), VALIDATION_INDEX, seed=0))

    def validate_on_dev(encoder: DenseEncoder) -> dict[str, float]:
        return {"dev_bleu": mean_bleu(TaskRetriever.build(indexed, encoder), parts.dev)}

    config = retriever_config(len(parts.train), options)
    options = _announcing("retriever", parts, options)
    _log_sampling("retriever", parts.train, options, trained=len(parts.train))
    with run_folder(options.folder, "retriever") as folder:
        return train_encoder(
            parts.train,
            config,
            target=target,
            validate=validate or (validate_on_dev if parts.dev else lambda _: {}),
            folder=folder,
            options=options.run(share=RETRIEVER_SHARE),
        )


def fit_editor(parts: Split, retriever: Retriever, options: FitOptions) -> NeuralEditor:
    """Train an editor on the prototypes of `retriever`, and calibrate its confidence on dev."""
    training = replace(options, budget=(1 - CALIBRATION_SHARE) * options.budget)
    editor = train_neural(parts, retriever, training)
    if not options.workers.is_main:
        return editor  # the rest does not change the trained weights
    held_out = _calibrated_on(parts, options)
    if held_out:
        options.log(
            f"editor: answering {len(held_out):,} held-out pairs to calibrate its confidence"
        )
    confidence = calibrate(RetrieveAndEdit(retriever, editor), held_out)
    return editor.with_confidence(confidence) if confidence else editor


def train_neural(parts: Split, retriever: Retriever, options: FitOptions) -> NeuralEditor:
    """Train an editor on the prototypes of `retriever`, which indexes the training examples."""
    projects = count_projects(vocabulary_sample(parts.train))
    config = editor_config(len(parts.train), options, projects=projects)
    train, train_retriever = parts.train, retriever
    if projects > 1 and is_on_disk(train):
        train, train_retriever = _of_whole_projects(train, retriever, PROJECT)
    if isinstance(retriever, NoRetriever):
        config = override(config, {"encoding": {"prototypes": 0}}, where="no retriever")

    dev_inputs = [example.x for example in parts.dev]
    dev_prototypes = retriever.retrieve(dev_inputs, config.encoding.prototypes or 1)

    def validate(editor: NeuralEditor) -> dict[str, float]:
        # Decoding whole outputs would say more, but take longer than the training in between.
        return {"dev_accuracy": 100 * first_choice_share(editor, parts.dev, dev_prototypes)}

    options = _announcing("editor", parts, options)
    _log_sampling("editor", parts.train, options, trained=len(train))
    with run_folder(options.folder, "editor") as folder:
        editor = train_editor(
            train,
            prototype_source(train_retriever, train, config),
            config,
            validate=validate if parts.dev else lambda _: {},
            folder=folder,
            options=options.run(),
        )
    if not options.workers.is_main:
        return editor  # the rest does not change the trained weights
    if config.decoding.syntax == AUTO and editor.decoding.syntax != "any":
        name = editor.decoding.syntax
        options.log(f'editor: every answer will be valid {name}; decoding.syntax = "any" lifts it')
    held_out = _calibrated_on(parts, options)
    if config.decoding.ngram_cache_neighbours and held_out:
        nearest = retriever.retrieve(
            [example.x for example in held_out], config.decoding.ngram_cache_neighbours
        )
        editor = editor.with_cache(fit_cache(editor, held_out, nearest))
    return editor


SKETCHES: dict[str, dict[str, Any]] = {
    "training": {"batch_size": 32},
    "decoding": {"syntax": "any"},
}
"""Settings of a network over sketches in the place of the preset's."""


def train_sketches(parts: Split, table: ValueTable, options: FitOptions) -> SketchEditor:
    """Train a network on the sketches of the training examples; writing them uses the budget."""
    started = time.monotonic()
    train, model = sketch_examples(parts.train, table)
    with table.without(parts.dev):
        dev = [model.sketch(example, table) for example in parts.dev]
    given = options.settings.get("editor", {})
    ours = {table: {**values, **given.get(table, {})} for table, values in SKETCHES.items()}
    options = replace(
        options,
        settings={**options.settings, "editor": {**given, **ours}},
        budget=time_left(options.budget, time.monotonic() - started),
    )
    network = train_neural(Split(train, dev), NoRetriever(train), options)
    return SketchEditor(network, model, table)


def _calibrated_on(parts: Split, options: FitOptions) -> Sequence[Example]:
    """Return the dev examples that there is time to answer."""
    if not options.budget:
        return parts.dev
    return parts.dev[: max(DEV_MIN, int(CALIBRATED_PER_SECOND * options.budget))]


def prototype_source(
    retriever: Retriever, train: Sequence[Example], config: EditorConfig
) -> PrototypeSource:
    """Return the source of training prototypes that `config` describes."""
    prototypes, count = config.prototypes, config.encoding.prototypes
    if count == 0:
        return NoPrototypes()

    cache_rows = disk.CHUNK if is_on_disk(train) else math.inf

    def nearest(find: Find) -> TopPrototypes:
        return TopPrototypes(find, top=SAMPLED_FROM, count=count, cache_rows=cache_rows)

    def from_all() -> PrototypeSource:
        if isinstance(retriever, LearnedRetriever) and isinstance(retriever.encoder, DenseEncoder):
            noisy = NearbyPrototypes if is_on_disk(retriever.examples) else NoisyPrototypes
            return noisy(retriever, retriever.encoder, train, count=count)
        return nearest(everywhere(retriever, train))

    sources: list[tuple[float, PrototypeSource]]
    dropout = prototypes.prototype_dropout
    if count_projects(vocabulary_sample(train)) > 1:
        same = in_project(retriever, train, PROJECT)
        others = across_projects(retriever, train, PROJECT)
        sources = [
            (1 - prototypes.cross_project - dropout, nearest(same)),
            (prototypes.cross_project, nearest(others)),
        ]
    else:
        sources = [(1 - dropout, from_all())]
    return MixedPrototypes([*sources, (dropout, NoPrototypes())])


def _of_whole_projects(
    train: Sequence[Example], retriever: Retriever, key: str
) -> tuple[Sequence[Example], Retriever]:
    """Sample whole projects that fit in memory, and return them with a retriever over them."""
    rows = whole_projects(train, key, limit=OF_PROJECTS)
    others = np.delete(np.arange(len(train)), rows).tolist()
    sampled = retriever.remove(others)
    return sampled.examples, sampled


def _log_sampling(
    name: str, train: Sequence[Example], options: FitOptions, *, trained: int
) -> None:
    """Log the sample sizes where not all examples on disk are used."""
    if is_on_disk(train):
        words, drawn = min(len(train), VOCABULARY_SAMPLE), min(len(train), disk.CHUNK)
        part = f"each epoch draws {drawn:,} of them"
        if trained < len(train):
            part = f"{trained:,} of whole projects are trained on"
        options.log(f"{name}: words are counted in {words:,} of {len(train):,} examples; {part}")


def _announcing(name: str, parts: Split, options: FitOptions) -> FitOptions:
    """Return the options with a callback that first logs the pairs and the expected time."""
    line = f"{name}: training on {len(parts.train):,} pairs, {len(parts.dev):,} held out"
    return replace(options, on_step=announced(line, log=options.log, on_step=options.on_step))
