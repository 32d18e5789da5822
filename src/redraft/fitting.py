"""How parts are fitted: what is held out, what chooses a checkpoint, which sizes suit the data.

Knows the parts as classes; their names are the composition root's.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from redraft.config import override, values_of
from redraft.data import filed
from redraft.data.example import Example
from redraft.data.filed import FiledExamples, draw_rows, pick
from redraft.data.split import split
from redraft.editing.confidence import Confidence
from redraft.editing.explanation import features_of_candidate
from redraft.editing.neural_editor import NeuralEditor
from redraft.editing.syntax import AUTO
from redraft.errors import ConfigError
from redraft.evaluation.editability import mean_bleu
from redraft.evaluation.next_tokens import first_choice_share
from redraft.evaluation.scores import score
from redraft.retrieval.encoder import DirectionEncoder
from redraft.retrieval.learned import LearnedRetriever, TaskRetriever
from redraft.retrieval.retriever import NoRetriever, Retriever
from redraft.retrieve_and_edit import RetrieveAndEdit
from redraft.training import train_editor as editor_training
from redraft.training import train_retriever as retriever_training
from redraft.training.device import choose_device
from redraft.training.epoch import COUNTED, counted
from redraft.training.fit_cache import fit_cache
from redraft.training.loop import Observer, TrainingConfig
from redraft.training.prototypes import (
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
from redraft.training.train_editor import EditorConfig, count_projects, train_editor
from redraft.training.train_retriever import RetrieverConfig, Target, train_encoder
from redraft.training.workers import ALONE, Workers

DEV_SHARE = 0.1
DEV_MOST = 300
DEV_LEAST = 20
"""With fewer examples none is held out: nothing is chosen, and nothing calibrated."""

CALIBRATED_A_SECOND = 1.0
"""How many held-out answers each second of a budget allows for calibration."""

REMEMBERING = 3
"""How many times as long an answer takes for which examples are remembered."""

JUDGED = 10_000
"""Of many examples, those that a retriever is judged over while it is trained."""

OF_PROJECTS = 50_000
"""Of many examples of several projects, those that an editor is trained on: whole projects."""

RETRIEVER_SHARE = 0.2
"""What of a budget a retriever that learns gets; the editor gets the rest."""


@dataclass(frozen=True)
class FitOptions:
    """How learned parts are trained; parts that learn nothing pass it over.

    Without `dev`, a tenth of the examples is held out to choose a checkpoint by and to calibrate
    with; an empty `dev` holds out nothing, and the last weights are taken. `budget` is in seconds.
    Of several `workers` all get the trained weights, and the first alone a model to keep.
    """

    settings: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    device: str = "auto"
    folder: Path | None = None
    observer: Observer | None = None
    dev: Sequence[Example] | None = None
    budget: float = 0.0
    tell: Callable[[str], None] = lambda _: None
    workers: Workers = ALONE


@dataclass(frozen=True)
class Parts:
    """The examples to train on, and those to choose and calibrate by."""

    train: Sequence[Example]
    dev: Sequence[Example]

    @classmethod
    def of(cls, examples: Sequence[Example], options: FitOptions) -> "Parts":
        """The same parts whatever the seed."""
        if options.dev is not None:
            return cls(examples, options.dev)
        if len(examples) < DEV_LEAST:
            return cls(examples, [])
        share = min(DEV_SHARE, DEV_MOST / len(examples))
        found = split(examples, {"train": 1 - share, "dev": share}, seed=0)
        return cls(found["train"], found["dev"])


def after_retriever(options: FitOptions) -> FitOptions:
    """The options with what a retriever that learns leaves of the budget."""
    return replace(options, budget=(1 - RETRIEVER_SHARE) * options.budget)


def check_settings(examples: int, options: FitOptions) -> None:
    """An error if a setting is unknown or of the wrong type, before anything is trained."""
    unknown = [name for name in options.settings if name not in ("retriever", "editor")]
    if unknown:
        raise ConfigError(f"unknown table [{unknown[0]}]; known are: [retriever], [editor]")
    retriever_config(examples, options)
    editor_config(examples, options)


def retriever_config(examples: int, options: FitOptions) -> RetrieverConfig:
    """The settings for this many examples, those given by the user in place of the defaults."""
    small = examples < editor_training.SMALL
    config = retriever_training.small_config() if small else retriever_training.large_config()
    given = {"seed": options.seed, "budget": RETRIEVER_SHARE * options.budget}
    config = override(config, {"training": given}, where="options")
    return override(config, options.settings.get("retriever", {}), where="[retriever]")


def editor_config(examples: int, options: FitOptions, *, projects: int = 1) -> EditorConfig:
    """The settings for this many examples, those given by the user in place of the defaults."""
    config = editor_training.default_config(examples, projects=projects)
    given = {"seed": options.seed, "budget": options.budget}
    config = override(config, {"training": given}, where="options")
    return override(config, options.settings.get("editor", {}), where="[editor]")


def fit_encoder(
    parts: Parts,
    options: FitOptions,
    *,
    target: Target,
    judge: retriever_training.Judge | None = None,
) -> DirectionEncoder:
    """The encoder of a learned retriever, its checkpoint chosen by what it finds for dev."""

    judged = parts.train
    if isinstance(judged, FiledExamples):
        judged = pick(judged, draw_rows(len(judged), JUDGED, seed=0))

    def by_dev(encoder: DirectionEncoder) -> dict[str, float]:
        return {"dev_bleu": mean_bleu(TaskRetriever.build(judged, encoder), parts.dev)}

    config = retriever_config(len(parts.train), options)
    options.tell(f"retriever: {_described(config.training, config.network)}")
    _tell_of_parts("retriever", parts.train, options, trained=len(parts.train))
    with run_folder(options.folder, "retriever") as folder:
        return train_encoder(
            parts.train,
            config,
            target=target,
            judge=judge or (by_dev if parts.dev else lambda _: {}),
            folder=folder,
            device=choose_device(options.device),
            observer=options.observer,
            workers=options.workers,
        )


def fit_editor(parts: Parts, retriever: Retriever, options: FitOptions) -> NeuralEditor:
    """An editor of what a retriever over the training examples finds for each of them."""
    projects = count_projects(counted(parts.train))
    config = editor_config(len(parts.train), options, projects=projects)
    train, among = parts.train, retriever
    if projects > 1 and isinstance(train, FiledExamples):
        train, among = _of_whole_projects(train, retriever, config.prototypes.project)
    if isinstance(retriever, NoRetriever):
        config = override(config, {"numbering": {"prototypes": 0}}, where="no retriever")

    found = retriever.retrieve([each.x for each in parts.dev], config.numbering.prototypes or 1)

    def by_dev(editor: NeuralEditor) -> dict[str, float]:
        # decoding whole outputs would tell more, and take longer than the training between
        return {"dev_accuracy": 100 * first_choice_share(editor, parts.dev, found)}

    options.tell(f"editor: {_described(config.training, config.network)}")
    _tell_of_parts("editor", parts.train, options, trained=len(train))
    with run_folder(options.folder, "editor") as folder:
        editor = train_editor(
            train,
            prototype_source(among, train, config),
            config,
            judge=by_dev if parts.dev else lambda _: {},
            folder=folder,
            device=choose_device(options.device),
            observer=options.observer,
            workers=options.workers,
        )
    if not options.workers.is_first:
        return editor  # what follows changes no weight that is trained
    if config.decoding.syntax == AUTO and editor.decoding.syntax != "any":
        name = editor.decoding.syntax
        options.tell(f'editor: every answer will be valid {name}; decoding.syntax = "any" lifts it')
    asked = parts.dev
    if options.budget:
        rate = CALIBRATED_A_SECOND / (REMEMBERING if config.decoding.remembered else 1)
        asked = asked[: max(DEV_LEAST, int(rate * options.budget))]
    if config.decoding.cached and asked:
        nearest = retriever.retrieve([each.x for each in asked], config.decoding.cached)
        editor = editor.with_cache(fit_cache(editor, asked, nearest))
    confidence = calibrate(RetrieveAndEdit(retriever, editor), asked)
    return editor.with_confidence(confidence) if confidence else editor


def prototype_source(
    retriever: Retriever, train: Sequence[Example], config: EditorConfig
) -> PrototypeSource:
    """Where training prototypes come from: projects, the retriever's own noise, its nearest few."""
    prototypes, count = config.prototypes, config.numbering.prototypes
    if count == 0:
        return NoPrototypes()

    kept = filed.CHUNK if isinstance(train, FiledExamples) else math.inf

    def nearest(find: Find) -> TopPrototypes:
        return TopPrototypes(find, top=prototypes.top, count=count, kept=kept)

    def everything() -> PrototypeSource:
        if (
            prototypes.has_noise
            and isinstance(retriever, LearnedRetriever)
            and isinstance(retriever.encoder, DirectionEncoder)
        ):
            is_many = isinstance(retriever.examples, FiledExamples)
            noisy = NearbyPrototypes if is_many else NoisyPrototypes
            return noisy(retriever, retriever.encoder, train, count=count)
        return nearest(everywhere(retriever, train))

    present: list[tuple[float, PrototypeSource]]
    if count_projects(counted(train), prototypes.project) > 1:
        own = in_project(retriever, train, prototypes.project)
        others = across_projects(retriever, train, prototypes.project)
        present = [
            (1 - prototypes.across - prototypes.absent, nearest(own)),
            (prototypes.across, nearest(others)),
        ]
    else:
        present = [(1 - prototypes.absent, everything())]
    return MixedPrototypes([*present, (prototypes.absent, NoPrototypes())])


def calibrate(model: RetrieveAndEdit, dev: Sequence[Example]) -> Confidence | None:
    """How often the model's answers are right, learned from those to dev; None without any."""
    ranked = model.predict([each.x for each in dev])
    asked = [(each, found[0]) for each, found in zip(dev, ranked, strict=True) if found]
    if not asked:
        return None
    scores = score([each.y for each, _ in asked], [answer.output for _, answer in asked])
    features = [features_of_candidate(answer) for _, answer in asked]
    return Confidence.fit(np.array(features), np.array(scores.per_example["exact"]) > 0)


def _of_whole_projects(
    train: Sequence[Example], retriever: Retriever, key: str
) -> tuple[Sequence[Example], Retriever]:
    """Examples of some projects, and a retriever over them: in memory, as prototypes are drawn."""
    rows = whole_projects(train, key, most=OF_PROJECTS)
    others = np.delete(np.arange(len(train)), rows).tolist()
    among = retriever.remove(others)
    return among.examples, among


def _tell_of_parts(
    name: str, train: Sequence[Example], options: FitOptions, *, trained: int
) -> None:
    """Say where many examples are not all looked at."""
    if isinstance(train, FiledExamples):
        words, drawn = min(len(train), COUNTED), min(len(train), filed.CHUNK)
        part = f"each epoch draws {drawn:,} of them"
        if trained < len(train):
            part = f"{trained:,} of whole projects are trained on"
        options.tell(f"{name}: words are counted in {words:,} of {len(train):,} examples; {part}")


def _described(training: TrainingConfig, network: Any) -> str:
    """The settings that matter most, in a line."""
    sizes = ", ".join(f"{name} {value}" for name, value in values_of(network).items())
    return f"at most {training.steps:,} steps of {training.batch_size}; {sizes}"


@contextmanager
def run_folder(folder: Path | None, name: str) -> Iterator[Path]:
    """The folder of a training that can go on after a kill; a passing one if none was named."""
    if folder is not None:
        yield folder / name
        return
    with TemporaryDirectory() as passing:
        yield Path(passing)
