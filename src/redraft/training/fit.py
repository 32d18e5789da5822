"""Fitting of retriever encoders and editors: dev split, settings, validation and calibration.

Knows the parts as classes; the registry knows their names.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from redraft.config.ranges import shown
from redraft.config.toml import override, values_of
from redraft.data.split import split
from redraft.editing.confidence import Confidence
from redraft.editing.constraints import AUTO
from redraft.editing.explanation import features_of_candidate
from redraft.editing.neural import NeuralEditor
from redraft.errors import ConfigError
from redraft.metrics.next_token import first_choice_share
from redraft.metrics.retrieval_quality import mean_bleu
from redraft.metrics.scores import score
from redraft.model import RetrieveAndEdit
from redraft.retrieval.base import NoRetriever, Retriever
from redraft.retrieval.dense import LearnedRetriever, TaskRetriever
from redraft.retrieval.encoder import DenseEncoder
from redraft.storage import disk
from redraft.storage.disk import draw_rows, take
from redraft.storage.examples import is_on_disk
from redraft.training import editor_task as editor_training
from redraft.training import retriever_task as retriever_training
from redraft.training.cache_gate import fit_cache
from redraft.training.device import choose_device
from redraft.training.distributed import SINGLE_PROCESS, ProcessGroup
from redraft.training.editor_task import EditorConfig, count_projects, train_editor
from redraft.training.epoch_sampling import VOCABULARY_SAMPLE, vocabulary_sample
from redraft.training.prototype_sampling import (
    PROJECT,
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
from redraft.training.retriever_task import RetrieverConfig, Target, train_encoder
from redraft.training.run_folder import run_folder
from redraft.training.trainer import AdamConfig, OnStep, RunOptions
from redraft.types import Example

DEV_SHARE = 0.1
DEV_MAX = 300
DEV_MIN = 20
"""With fewer examples none is held out: there is no validation and no calibration."""

CALIBRATED_PER_SECOND = 1.0
"""Held-out examples for calibration per second of the budget."""

VALIDATION_INDEX = 10_000
"""Size of the sample that a retriever is validated on, for examples on disk."""

OF_PROJECTS = 50_000
"""Size of the sample of whole projects that an editor is trained on, for examples on disk."""

RETRIEVER_SHARE = 0.2
"""Share of the budget for a learned retriever; the editor gets the rest."""


@dataclass(frozen=True)
class FitOptions:
    """Options for the training of learned parts; other parts ignore them.

    If `dev` is None, a tenth of the examples is held out for validation and calibration; with an
    empty `dev` the last weights are kept. `budget` is in seconds, 0 for no limit. `log` receives
    log lines. All `workers` get the trained weights, but only the main one a calibrated model.
    Errors about `settings` begin with `settings_file`.
    """

    settings: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    device: str = "auto"
    folder: Path | None = None
    on_step: OnStep | None = None
    dev: Sequence[Example] | None = None
    budget: float = 0.0
    log: Callable[[str], None] = lambda _: None
    workers: ProcessGroup = SINGLE_PROCESS
    settings_file: Path | None = None

    @property
    def source(self) -> str:
        """Return the prefix of errors about the settings: the name of their file, if any."""
        return f"{self.settings_file}: " if self.settings_file else ""

    def run(self, *, share: float = 1.0) -> RunOptions:
        """Return the options of a training run that gets this share of the budget."""
        device = choose_device(self.device)
        return RunOptions(self.seed, share * self.budget, device, self.on_step, self.workers)


@dataclass(frozen=True)
class Split:
    """Training examples, and dev examples for validation and calibration."""

    train: Sequence[Example]
    dev: Sequence[Example]

    @classmethod
    def of(cls, examples: Sequence[Example], options: FitOptions) -> "Split":
        """Split `examples`, independently of the seed."""
        if options.dev is not None:
            return cls(examples, options.dev)
        if len(examples) < DEV_MIN:
            return cls(examples, [])
        share = min(DEV_SHARE, DEV_MAX / len(examples))
        parts = split(examples, {"train": 1 - share, "dev": share}, seed=0)
        return cls(parts["train"], parts["dev"])


def after_retriever(options: FitOptions) -> FitOptions:
    """Return the options with the budget that a learned retriever leaves."""
    return replace(options, budget=(1 - RETRIEVER_SHARE) * options.budget)


def check_settings(examples: int, options: FitOptions) -> None:
    """Raise a ConfigError for an invalid setting, before anything is trained."""
    unknown = [name for name in options.settings if name not in ("retriever", "editor")]
    if unknown:
        name = shown(unknown[0])
        raise ConfigError(f"{options.source}unknown table {name}; known are: [retriever], [editor]")
    RunOptions(options.seed, options.budget)  # checks their ranges
    retriever_config(examples, options)
    editor_config(examples, options)


def retriever_config(examples: int, options: FitOptions) -> RetrieverConfig:
    """The settings for this many examples, those given by the user in place of the defaults."""
    config = retriever_training.default_config(examples)
    given = options.settings.get("retriever", {})
    return override(config, given, where=f"{options.source}[retriever]")


def editor_config(examples: int, options: FitOptions, *, projects: int = 1) -> EditorConfig:
    """Return the defaults for a number of examples, overridden by the user's settings."""
    config = editor_training.default_config(examples, projects=projects)
    given = options.settings.get("editor", {})
    return override(config, given, where=f"{options.source}[editor]")


def fit_encoder(
    parts: Split,
    options: FitOptions,
    *,
    target: Target,
    validate: retriever_training.Validate | None = None,
) -> DenseEncoder:
    """Train the encoder of a learned retriever, validated by the BLEU of its prototypes on dev."""

    indexed = parts.train
    if is_on_disk(indexed):
        indexed = take(indexed, draw_rows(len(indexed), VALIDATION_INDEX, seed=0))

    def validate_on_dev(encoder: DenseEncoder) -> dict[str, float]:
        return {"dev_bleu": mean_bleu(TaskRetriever.build(indexed, encoder), parts.dev)}

    config = retriever_config(len(parts.train), options)
    options.log(f"retriever: {_described(config.training, config.network)}")
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

    options.log(f"editor: {_described(config.training, config.network)}")
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
    held_out = parts.dev
    if options.budget:
        held_out = held_out[: max(DEV_MIN, int(CALIBRATED_PER_SECOND * options.budget))]
    if config.decoding.ngram_cache_neighbours and held_out:
        nearest = retriever.retrieve(
            [example.x for example in held_out], config.decoding.ngram_cache_neighbours
        )
        editor = editor.with_cache(fit_cache(editor, held_out, nearest))
    confidence = calibrate(RetrieveAndEdit(retriever, editor), held_out)
    return editor.with_confidence(confidence) if confidence else editor


def prototype_source(
    retriever: Retriever, train: Sequence[Example], config: EditorConfig
) -> PrototypeSource:
    """Return the source of training prototypes that `config` describes."""
    prototypes, count = config.prototypes, config.encoding.prototypes
    if count == 0:
        return NoPrototypes()

    cache_rows = disk.CHUNK if is_on_disk(train) else math.inf

    def nearest(find: Find) -> TopPrototypes:
        return TopPrototypes(
            find, top=prototypes.sample_from_top, count=count, cache_rows=cache_rows
        )

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


def calibrate(model: RetrieveAndEdit, dev: Sequence[Example]) -> Confidence | None:
    """Fit the confidence of the model's first candidates on dev; None if there are none."""
    predicted = model.predict([example.x for example in dev])
    pairs = [
        (example, candidates[0])
        for example, candidates in zip(dev, predicted, strict=True)
        if candidates
    ]
    if not pairs:
        return None
    scores = score([example.y for example, _ in pairs], [best.output for _, best in pairs])
    features = [features_of_candidate(best) for _, best in pairs]
    return Confidence.fit(np.array(features), np.array(scores.per_example["exact"]) > 0)


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


def _described(training: AdamConfig, network: Any) -> str:
    """Return the most important settings in one line."""
    sizes = ", ".join(f"{name} {value}" for name, value in values_of(network).items())
    return f"at most {training.steps:,} steps of {training.batch_size}; {sizes}"
