"""Which retriever finds the output that is easiest to edit: learned ones, peers, the ceiling."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from redraft.config import values_of
from redraft.data.example import Example
from redraft.data.split import split
from redraft.evaluation.editability import Editability, first_prototypes, oracle_prototypes
from redraft.fitting import DEV_SHARE, FitOptions, Parts, fit_encoder, retriever_config
from redraft.retrieval.encoder import DirectionEncoder
from redraft.retrieval.hybrid import WEIGHTS, HybridRetriever
from redraft.retrieval.learned import InputRetriever, TaskRetriever
from redraft.retrieval.lexical import Bm25Retriever, LexicalRetriever
from redraft.retrieval.prototype import Prototype
from redraft.retrieval.retriever import Retriever
from redraft.studies.results import Row, interval_of
from redraft.training.train_retriever import Target, input_target, paper_config, task_target

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
        return Editability.of(self.questions(), self.answer(build)).means()["bleu_yin"]


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
        for retriever in (LexicalRetriever, Bm25Retriever):
            yield _row(retriever.name, setting, 0, retriever.build)
        started = time.monotonic()
        found = [
            prototype
            for known, asked in setting.groups
            for prototype in oracle_prototypes(known, asked, leave_out=setting.leave_out)
        ]
        yield _scored("oracle", setting, 0, found, time.monotonic() - started)


def learned_rows(comparison: Comparison, options: FitOptions) -> Iterator[Row]:
    """The task and the input retriever and the hybrid with one seed."""
    for retriever, target in ((TaskRetriever, task_target), (InputRetriever, input_target)):
        encoder, seconds = _train(comparison, options, target)
        about = _about(comparison, options, encoder, seconds)
        mixtures = Mixtures(encoder)
        for setting, chosen_by in comparison.settings:
            build = _learned(retriever, encoder)
            yield replace(_row(retriever.name, setting, options.seed, build), **about)
            if retriever is TaskRetriever:
                weight = max(WEIGHTS, key=lambda each: chosen_by.bleu(mixtures.at(each)))
                row = _row("hybrid", setting, options.seed, mixtures.at(weight))
                yield replace(row, **{**about, "config": {**about["config"], "weight": weight}})


def paper_rows(comparison: Comparison, options: FitOptions) -> Iterator[Row]:
    """The task retriever with the sizes and the steps of the paper's code."""
    varied = replace(options, settings={"retriever": values_of(paper_config())}, folder=None)
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
            named = replace(setting, name=f"{setting.name}, kappa {kappa:g}")
            row = _row("task", named, options.seed, _learned(TaskRetriever, encoder))
            yield replace(row, **_about(comparison, varied, encoder, seconds))


def _train(
    comparison: Comparison, options: FitOptions, target: Target
) -> tuple[DirectionEncoder, float]:
    """An encoder, its checkpoint chosen by the first setting's dev."""
    chosen_by = comparison.settings[0][1]

    def judge(encoder: DirectionEncoder) -> dict[str, float]:
        return {"dev_bleu": chosen_by.bleu(_learned(TaskRetriever, encoder))}

    folder = options.folder / f"{target.__name__}-{options.seed}" if options.folder else None
    started = time.monotonic()
    parts = Parts(comparison.train, [])
    options = replace(options, folder=folder)
    encoder = fit_encoder(parts, options, target=target, judge=judge)
    return encoder, time.monotonic() - started


def _learned(retriever: type[TaskRetriever | InputRetriever], encoder: DirectionEncoder) -> Build:
    return lambda known: retriever.build(known, encoder)


class Mixtures:
    """Hybrids of one encoder with any weight; examples are encoded once, whatever the weight."""

    def __init__(self, encoder: DirectionEncoder) -> None:
        self.encoder = encoder
        self._parts: dict[int, tuple[TaskRetriever, Bm25Retriever]] = {}

    def at(self, weight: float) -> Build:
        """What builds the hybrid with this weight."""

        def build(known: Sequence[Example]) -> Retriever:
            if id(known) not in self._parts:
                learned = TaskRetriever.build(known, self.encoder)
                self._parts[id(known)] = learned, Bm25Retriever.build(known)
            return HybridRetriever(*self._parts[id(known)], weight)

        return build


def _row(system: str, setting: Setting, seed: int, build: Build) -> Row:
    started = time.monotonic()
    found = setting.answer(build)
    return _scored(system, setting, seed, found, time.monotonic() - started)


def _scored(
    system: str, setting: Setting, seed: int, found: Sequence[Prototype | None], seconds: float
) -> Row:
    questions = setting.questions()
    editability = Editability.of(questions, found)
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
    comparison: Comparison, options: FitOptions, encoder: DirectionEncoder, seconds: float
) -> dict[str, Any]:
    """What a row says of a training."""
    config = retriever_config(len(comparison.train), options)
    return {
        "train_seconds": round(seconds, 1),
        "parameters": sum(each.numel() for each in encoder.network.parameters()),
        "config": values_of(config),
    }
