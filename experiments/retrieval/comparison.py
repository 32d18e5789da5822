"""Which retriever finds the output that is easiest to edit: learned ones, peers, the ceiling."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from experiments.lib.results import Row, interval_of
from redraft.data.split import split
from redraft.metrics.retrieval_quality import RetrievalQuality, first_prototypes, oracle_prototypes
from redraft.retrieval.base import Retriever
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.retrieval.bow import BowRetriever
from redraft.retrieval.dense import InputRetriever, TaskRetriever
from redraft.retrieval.encoder import DenseEncoder
from redraft.training.fit import DEV_SHARE, FitOptions, Split, retriever_config
from redraft.training.fit_neural import fit_encoder
from redraft.training.retriever_config import preset_config
from redraft.training.retriever_task import Target, input_target, task_target
from redraft.types import Example, Prototype

METRICS = {"bleu_yin": "BLEU yin", "bleu_paper": "BLEU paper", "edit_distance": "edit distance"}
KAPPAS = (10.0, 100.0, 1_000.0, 10_000.0)

Build = Callable[[Sequence[Example]], Retriever]


@dataclass(frozen=True)
class Setting:
    """Questions, and the examples that may answer them: one group, or one for each project."""

    name: str
    split: str
    groups: Sequence[tuple[Sequence[Example], Sequence[Example]]]
    leave_out: bool

    def questions(self) -> list[Example]:
        """The questions of all groups."""
        return [example for _, asked in self.groups for example in asked]

    def answer(self, build: Build) -> list[Prototype | None]:
        """The first prototype for each question, from a retriever over its own group."""
        return [
            found
            for known, asked in self.groups
            for found in first_prototypes(build(known), asked, leave_out=self.leave_out)
        ]

    def bleu(self, build: Build) -> float:
        """The mean sentence BLEU of what a retriever finds: what is chosen by, on dev."""
        return RetrievalQuality.of(self.questions(), self.answer(build)).means()["bleu_yin"]


@dataclass(frozen=True)
class Comparison:
    """Examples to train on, settings to measure in, and for each the one on dev to choose by."""

    train: Sequence[Example]
    settings: Sequence[tuple[Setting, Setting]]  # measured, chosen by


def by_hold_out(train: Sequence[Example], measured: Setting) -> Comparison:
    """The comparison in which a tenth of train is held out to choose by."""
    parts = split(train, {"train": 1 - DEV_SHARE, "dev": DEV_SHARE}, seed=0)
    chosen_by = Setting("held out", "train", [(parts["train"], parts["dev"])], leave_out=False)
    return Comparison(parts["train"], [(measured, chosen_by)])


def plain_rows(comparison: Comparison) -> Iterator[Row]:
    """The retrievers that learn nothing, and the oracle."""
    for setting, _ in comparison.settings:
        yield _row("lexical", setting, 0, BowRetriever.build)
        yield _row("bm25", setting, 0, Bm25Retriever.build)
        started = time.monotonic()
        found = [
            prototype
            for known, asked in setting.groups
            for prototype in oracle_prototypes(known, asked, leave_out=setting.leave_out)
        ]
        yield _scored("oracle", setting, 0, found, time.monotonic() - started)


def learned_rows(comparison: Comparison, options: FitOptions) -> Iterator[Row]:
    """Measure the task and the input retriever with one seed."""
    for retriever, target in ((TaskRetriever, task_target), (InputRetriever, input_target)):
        encoder, seconds = _train(comparison, options, target)
        about = _about(comparison, options, encoder, seconds)
        for setting, _ in comparison.settings:
            build = _learned(retriever, encoder)
            yield replace(_row(retriever.name, setting, options.seed, build), **about)


def paper_rows(comparison: Comparison, options: FitOptions) -> Iterator[Row]:
    """The task retriever with the sizes and the steps of the paper's code."""
    varied = replace(
        options, settings={"retriever": asdict(preset_config("paper", 0))}, folder=None
    )
    encoder, seconds = _train(comparison, varied, task_target)
    for setting, _ in comparison.settings:
        row = _row("task (paper)", setting, options.seed, _learned(TaskRetriever, encoder))
        yield replace(row, **_about(comparison, varied, encoder, seconds))


def kappa_rows(comparison: Comparison, options: FitOptions) -> Iterator[Row]:
    """The task retriever at several concentrations."""
    for kappa in KAPPAS:
        settings = {"retriever": {"network": {"concentration": kappa}}}
        varied = replace(options, settings=settings, folder=None)
        encoder, seconds = _train(comparison, varied, task_target)
        for setting, _ in comparison.settings:
            row = _row("task", setting, options.seed, _learned(TaskRetriever, encoder))
            about = _about(comparison, varied, encoder, seconds)
            yield replace(row, variant=f"kappa {kappa:g}", **about)


def _train(
    comparison: Comparison, options: FitOptions, target: Target
) -> tuple[DenseEncoder, float]:
    """An encoder, its checkpoint chosen by the first setting's dev."""
    chosen_by = comparison.settings[0][1]

    def validate(encoder: DenseEncoder) -> dict[str, float]:
        return {"dev_bleu": chosen_by.bleu(_learned(TaskRetriever, encoder))}

    folder = options.folder / f"{target.__name__}-{options.seed}" if options.folder else None
    started = time.monotonic()
    parts = Split(comparison.train, [])
    options = replace(options, folder=folder)
    encoder = fit_encoder(parts, options, target=target, validate=validate)
    return encoder, time.monotonic() - started


def _learned(retriever: type[TaskRetriever | InputRetriever], encoder: DenseEncoder) -> Build:
    return lambda known: retriever.build(known, encoder)


def _row(system: str, setting: Setting, seed: int, build: Build) -> Row:
    started = time.monotonic()
    found = setting.answer(build)
    return _scored(system, setting, seed, found, time.monotonic() - started)


def _scored(
    system: str, setting: Setting, seed: int, found: Sequence[Prototype | None], seconds: float
) -> Row:
    questions = setting.questions()
    editability = RetrievalQuality.of(questions, found)
    per_example = {
        "bleu_yin": [100 * value for value in editability.bleu_yin],
        "bleu_paper": [100 * value for value in editability.bleu_paper],
        "edit_distance": list(editability.edit_distance),
    }
    return Row(
        system,
        setting.name,
        setting.split,
        seed,
        len(questions),
        {name: round(value, 2) for name, value in editability.means().items()},
        interval_of(per_example),
        predict_seconds=round(seconds, 2),
    )


def _about(
    comparison: Comparison, options: FitOptions, encoder: DenseEncoder, seconds: float
) -> dict[str, Any]:
    """What a row says of a training."""
    config = retriever_config(len(comparison.train), options)
    return {
        "train_seconds": round(seconds, 1),
        "parameters": sum(each.numel() for each in encoder.network.parameters()),
        "config": asdict(config),
    }
