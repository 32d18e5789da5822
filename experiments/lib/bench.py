"""Train systems on pairs and score their answers.

The measured pairs choose nothing: editors train on all of train for a fixed number of steps and
keep their last weights. Knows no dataset.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from experiments.lib.costs import training_costs, training_seconds
from experiments.lib.example_scores import append_scores
from experiments.lib.paired import PAPERS_DEFAULT, PAPERS_UNAIDED, difference_rows
from experiments.lib.results import DECIMALS, SIMILARITY, Measured, Row
from experiments.lib.settings import merged
from redraft.config.toml import DEFAULT_RETRIEVER
from redraft.editing.base import Editor, VerbatimEditor
from redraft.editing.neural import NeuralEditor
from redraft.metrics.bleu import bleu_yin
from redraft.metrics.evaluation import Evaluation
from redraft.metrics.exact_match import Language
from redraft.model import RetrieveAndEdit
from redraft.retrieval.base import Retriever
from redraft.training.editor_config import preset_config
from redraft.training.fit import FitOptions, Split, editor_config
from redraft.training.fit_model import fit_model
from redraft.training.fit_neural import fit_editor
from redraft.types import Candidate, Example, Prototype

Settings = Mapping[str, Mapping[str, Any]]

COPIED = "copied"
"""The share of an answer's tokens that were copied from its prototype, in per cent."""


@dataclass(frozen=True)
class Questions:
    """The pairs to train on and those to answer; without a language it is detected."""

    setting: str
    split: str
    train: Sequence[Example]
    asked: Sequence[Example]
    language: Language | None = None
    variant: str = ""  # of the pairs, such as half of them


class Bench:
    """Trains systems on pairs and scores their answers; a retriever is fitted once per seed."""

    def __init__(self, questions: Questions, options: FitOptions, folder: Path) -> None:
        self.questions = questions
        self.options = options
        self.folder = folder
        self._retrievers: dict[str, Retriever] = {}

    def retriever(self, name: str) -> Retriever:
        """Return the named retriever over all of train."""
        if name not in self._retrievers:
            options, train = self._options("retriever", name), self.questions.train
            model = fit_model(train, retriever=name, editor="verbatim", options=options)
            self._retrievers[name] = model.retriever
        return self._retrievers[name]

    def editor(self, name: str, retriever: Retriever, settings: Settings) -> NeuralEditor:
        """Return an editor trained with the prototypes of `retriever`; `name` is its folder."""
        options = replace(self._options("editor", name), settings={"editor": settings})
        return fit_editor(Split(self.questions.train, []), retriever, options)

    def trained(self, system: str, retriever_name: str) -> NeuralEditor:
        """Return the editor of a system with the default settings, trained at most once."""
        retriever = self.retriever(retriever_name)
        name = self._name(system, self.questions.variant)
        return self.editor(name, retriever, self.settings({}))

    def _name(self, system: str, variant: str) -> str:
        """Return the name of the folder of a training."""
        return f"{system} {', '.join(filter(None, (self.questions.setting, variant)))}"

    def settings(self, changed: Settings) -> Settings:
        """Return the settings of every editor with those of `changed` in their place."""
        return merged(self.options.settings.get("editor", {}), changed)

    def _options(self, *place: str) -> FitOptions:
        return replace(self.options, folder=self._place(*place))

    def _place(self, *place: str) -> Path:
        names = (_file(each) for each in place)
        return self.folder.joinpath(f"seed-{self.options.seed}", *names)

    def measure(self, system: str, variant: str, retriever: Retriever, editor: Editor) -> Measured:
        """Return the scores of the system's answers, with those of every question."""
        inputs = [each.x for each in self.questions.asked]
        started = time.monotonic()
        answers = RetrieveAndEdit(retriever, editor).predict(inputs)
        return self._scored(system, variant, answers, time.monotonic() - started)

    def given(
        self, system: str, variant: str, editor: Editor, found: Sequence[Sequence[Prototype]]
    ) -> Measured:
        """Return the same for the prototypes in `found` instead of retrieved ones."""
        inputs = [each.x for each in self.questions.asked]
        started = time.monotonic()
        answers = editor.edit(inputs, found)
        return self._scored(system, variant, answers, time.monotonic() - started)

    def _scored(
        self,
        system: str,
        variant: str,
        predictions: Sequence[Sequence[Candidate]],
        seconds: float,
    ) -> Measured:
        asked = self.questions.asked
        outputs = {example.y for example in self.questions.train}
        scores = Evaluation.of(
            asked, predictions, train_outputs=outputs, language=self.questions.language
        ).scores
        of_prototypes = _of_prototypes(asked, predictions)
        means = {name: sum(each) / len(each) for name, each in of_prototypes.items()}
        row = Row(
            system,
            self.questions.setting,
            self.questions.split,
            self.options.seed,
            scores.n,
            {
                **{
                    name: round(value, DECIMALS)
                    for name, value in {**scores.metrics, **means}.items()
                },
                "per_second": round(len(asked) / seconds, DECIMALS),
            },
            {
                n: (round(low, DECIMALS), round(high, DECIMALS))
                for n, (low, high) in scores.interval.items()
            },
            predict_seconds=round(seconds, 2),
            variant=variant,
        )
        values = {n: [100 * each for each in own] for n, own in scores.per_example.items()}
        values["exact_unseen"] = [
            float("nan") if example.y in outputs else value
            for example, value in zip(asked, values["exact"], strict=True)
        ]
        # every question stands for itself when they are drawn again
        return Measured(row, {**values, **of_prototypes}, [str(at) for at in range(len(asked))])

    def alone(self, retriever_name: str) -> Measured:
        """Return the scores of a retriever whose first prototype's output is the answer."""
        retriever = self.retriever(retriever_name)
        measured = self.measure(retriever_name, self.questions.variant, retriever, VerbatimEditor())
        seconds = training_seconds(self._place("retriever", retriever_name))
        return replace(measured, row=replace(measured.row, train_seconds=seconds))

    def edited(
        self, system: str, variant: str, retriever_name: str, settings: Settings
    ) -> tuple[Measured, NeuralEditor]:
        """Train an editor and return the scores of its answers, and the editor."""
        retriever, name = self.retriever(retriever_name), self._name(system, variant)
        settings = self.settings(settings)
        editor = self.editor(name, retriever, settings)
        folders = self._place("editor", name), self._place("retriever", retriever_name)
        config = editor_config(
            len(self.questions.train), replace(self.options, settings={"editor": settings})
        )
        measured = self.measure(system, variant, retriever, editor)
        row = replace(
            measured.row,
            metrics={**measured.row.metrics, **training_costs(editor.network, *folders)},
            train_seconds=training_seconds(*folders),
            parameters=sum(each.numel() for each in editor.network.parameters()),
            config={
                "retriever": retriever_name,
                **asdict(config),
                "encoding": asdict(editor.encoding.config),
            },
        )
        return replace(measured, row=row), editor


def _of_prototypes(
    asked: Sequence[Example], predictions: Sequence[Sequence[Candidate]]
) -> dict[str, list[float]]:
    """Return the similarity of each prototype to the true output, and the share copied from it.

    The first is missing if an answer has no prototype, the second if no token has an origin.
    """
    answers = [candidates[0] for candidates in predictions if candidates]
    prototypes = [each.prototype for each in answers if each.prototype]
    origins = [[token.origin for token in each.provenance] for each in answers]
    found = {}
    if len(prototypes) == len(asked):
        pairs = zip(asked, prototypes, strict=True)
        found[SIMILARITY] = [100 * bleu_yin(own.y, each.example.y) for own, each in pairs]
    if len(answers) == len(asked) and any(origins):
        found[COPIED] = [100 * own.count("prototype") / max(len(own), 1) for own in origins]
    return found


def _file(name: str) -> str:
    return "".join(each if each.isalnum() else "-" for each in name)


Rows = Callable[[Bench], Iterator[Measured]]


def measured_rows(bench: Bench, measures: Sequence[Rows], scores: Path) -> Iterator[Row]:
    """Yield the rows of some measures; append the scores of every question to a file."""
    for rows in measures:
        for measured in rows(bench):
            append_scores(measured, scores)
            yield measured.row


def compared_rows(measured: Sequence[Measured], metrics: Collection[str]) -> Iterator[Row]:
    """Yield the paired differences of Retrieve+Edit to each other system."""
    yield from without_ratios(difference_rows(measured, metrics))


def without_ratios(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows without ratios: to a system that is never right they are infinite."""
    for row in rows:
        names = [name for name in row.metrics if not name.endswith("_ratio")]
        yield replace(
            row,
            metrics={name: row.metrics[name] for name in names},
            interval={name: row.interval[name] for name in names},
        )


SYSTEMS = {"retrieve+edit": DEFAULT_RETRIEVER, "seq2seq": "none"}
"""The systems with the default settings, and the retriever of each."""


def system_rows(bench: Bench) -> Iterator[Measured]:
    """Measure Retrieve+Edit and Seq2Seq, both with the default settings."""
    for system, retriever in SYSTEMS.items():
        yield bench.edited(system, bench.questions.variant, retriever, {})[0]


def paper_rows(bench: Bench) -> Iterator[Measured]:
    """Measure both with the paper's LSTMs at their published size and steps."""
    variant, settings = bench.questions.variant, asdict(preset_config("paper", 0))
    yield bench.edited(PAPERS_DEFAULT, variant, "task", settings)[0]
    yield bench.edited(PAPERS_UNAIDED, variant, "none", settings)[0]
