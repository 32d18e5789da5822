"""Options, dev split, settings and calibration of a fit.

Knows no torch: `fit_neural` trains the neural parts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from redraft.config.ranges import shown
from redraft.config.toml import override
from redraft.data.split import split_rows
from redraft.editing.confidence import Confidence, features_of_candidate
from redraft.editing.lm_editor import LmEditor
from redraft.errors import ConfigError
from redraft.metrics.scores import score
from redraft.model import RetrieveAndEdit
from redraft.storage.disk import take
from redraft.storage.examples import is_on_disk
from redraft.training import editor_config as editor_settings
from redraft.training import retriever_config as retriever_settings
from redraft.training.editor_config import EditorConfig
from redraft.training.process_group import SINGLE_PROCESS, ProcessGroup
from redraft.training.progress import OnStep
from redraft.training.retriever_config import RetrieverConfig
from redraft.training.schedule import RunOptions
from redraft.types import Example, input_digest

DEV_SHARE = 0.1
DEV_MAX = 300
DEV_MIN = 20
"""With fewer examples none is held out: there is no validation and no calibration."""

JUDGED, JUDGED_SHARE = 100, 0.2
"""Examples that are held out to judge a network beside other proposers, at most this share."""

RETRIEVER_SHARE = 0.2
"""Share of the budget for a learned retriever; the editor gets the rest."""


@dataclass(frozen=True)
class FitOptions:
    """Options for the training of learned parts; other parts ignore them.

    If `dev` is None, `Split.of` holds examples out for validation and calibration; with an
    empty `dev` the last weights are kept. `budget` is in seconds, 0 for no limit. `log` receives
    log lines. All `workers` get the trained weights, but only the main one a calibrated model.
    Errors about `settings` begin with `settings_file`.

    With `train` the default editor also gets a network, if one helps on held-out pairs; `on_ready`
    receives the model before that is trained, if it is. With `lm` it also gets the answers of a
    language model, if they help on held-out pairs. `encoder` is the sentence encoder of the
    retriever `encoder`, and of a candidate of `auto`.
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
    train: bool = False
    on_ready: Callable[[RetrieveAndEdit], None] = lambda _: None
    lm: LmEditor | None = None
    encoder: Path | None = None

    @property
    def source(self) -> str:
        """Return the prefix of errors about the settings: the name of their file, if any."""
        return f"{self.settings_file}: " if self.settings_file else ""

    def run(self, *, share: float = 1.0) -> RunOptions:
        """Return the options of a training run that gets this share of the budget."""
        budget = share * self.budget
        return RunOptions(self.seed, budget, self.device, self.on_step, self.workers)


@dataclass(frozen=True)
class Split:
    """Training examples, and dev examples for validation and calibration."""

    train: Sequence[Example]
    dev: Sequence[Example]

    @classmethod
    def of(
        cls, examples: Sequence[Example], options: FitOptions, *, judges: bool = False
    ) -> "Split":
        """Split `examples`, independently of the seed; no input of dev is stored in train, too.

        If dev also judges a network beside other proposers, a small set holds out more.
        """
        if options.dev is not None:
            return cls(examples, options.dev)
        if len(examples) < DEV_MIN:
            return cls(examples, [])
        share = min(DEV_SHARE, DEV_MAX / len(examples))
        if judges:
            share = max(share, min(JUDGED_SHARE, JUDGED / len(examples)))
        rows = split_rows(examples, {"train": 1 - share, "dev": share}, seed=0)
        train, dev = (take(examples, rows[part]) for part in ("train", "dev"))
        # of equal inputs the last is the newest, and dev is appended to train afterwards
        keys = [input_digest(example.x) for example in dev]
        asked = set(keys)
        shared = {key for example in train if (key := input_digest(example.x)) in asked}
        if shared:
            moved = [row for row, key in zip(rows["dev"], keys, strict=True) if key in shared]
            train = take(examples, sorted([*rows["train"], *moved]))
            dev = [example for example, key in zip(dev, keys, strict=True) if key not in shared]
        return cls(train, dev)


def after_retriever(options: FitOptions) -> FitOptions:
    """Return the options with the budget that a learned retriever leaves."""
    return replace(options, budget=(1 - RETRIEVER_SHARE) * options.budget)


def time_left(budget: float, spent: float) -> float:
    """Return the seconds left of a budget; 0 is no limit."""
    return max(1.0, budget - spent) if budget else 0.0


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
    config = retriever_settings.default_config(examples)
    given = options.settings.get("retriever", {})
    return override(config, given, where=f"{options.source}[retriever]")


def editor_config(examples: int, options: FitOptions, *, projects: int = 1) -> EditorConfig:
    """Return the defaults for a number of examples, overridden by the user's settings."""
    config = editor_settings.default_config(examples, projects=projects)
    given = options.settings.get("editor", {})
    return override(config, given, where=f"{options.source}[editor]")


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


def log_many(action: str, parts: Split, options: FitOptions) -> None:
    """Log an action that takes a while, if there are many examples."""
    if is_on_disk(parts.train):
        options.log(f"retriever: {action} {len(parts.train):,} examples")
