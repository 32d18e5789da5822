"""Systems that are trained on pairs, and the scores of their answers.

Nothing is chosen by the pairs that are measured: the editors train on all of train for a fixed
number of steps and keep their last weights. Knows no dataset.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from redraft.config import DEFAULT_RETRIEVER, merged, values_of
from redraft.data.example import Example
from redraft.editing.candidate import Candidate
from redraft.editing.editor import Editor, VerbatimEditor
from redraft.editing.neural_editor import NeuralEditor
from redraft.evaluation.bleu import bleu_yin
from redraft.evaluation.evaluation import Evaluation
from redraft.evaluation.exact_match import Language
from redraft.experiment import fit_model
from redraft.fitting import FitOptions, Parts, editor_config, fit_editor
from redraft.retrieval.prototype import Prototype
from redraft.retrieval.retriever import Retriever
from redraft.retrieve_and_edit import RetrieveAndEdit
from redraft.studies.completions import SIMILARITY
from redraft.studies.costs import training_costs, training_seconds
from redraft.studies.differences import difference_rows, keep, read_kept, similarity_rows
from redraft.studies.results import DECIMALS, Measured, Row
from redraft.training.train_editor import paper_config

Settings = Mapping[str, Mapping[str, Any]]

COPIED = "copied"
"""The share of an answer's tokens that were copied from its prototype, in per cent."""


@dataclass(frozen=True)
class Questions:
    """The pairs to learn from, and those to answer; the language is found out if none is given."""

    setting: str
    split: str
    train: Sequence[Example]
    asked: Sequence[Example]
    language: Language | None = None


class Bench:
    """Trains systems on pairs and scores their answers; retrievers are fitted once a seed."""

    def __init__(self, questions: Questions, options: FitOptions, folder: Path) -> None:
        self.questions = questions
        self.options = options
        self.folder = folder
        self._retrievers: dict[str, Retriever] = {}

    def retriever(self, name: str) -> Retriever:
        """The named retriever over all of train."""
        if name not in self._retrievers:
            options, train = self._options("retriever", name), self.questions.train
            model = fit_model(train, retriever=name, editor="verbatim", options=options)
            self._retrievers[name] = model.retriever
        return self._retrievers[name]

    def editor(self, name: str, retriever: Retriever, settings: Settings) -> NeuralEditor:
        """An editor trained on what the retriever finds."""
        options = replace(self._options("editor", name), settings={"editor": settings})
        return fit_editor(Parts(self.questions.train, []), retriever, options)

    def trained(self, system: str, setting: str, retriever_name: str) -> NeuralEditor:
        """The editor of a system with the default settings, trained unless it was before."""
        retriever = self.retriever(retriever_name)
        return self.editor(f"{system} {setting}", retriever, self.settings({}))

    def settings(self, changed: Settings) -> Settings:
        """The settings of every editor with some of them changed."""
        return merged(self.options.settings.get("editor", {}), changed)

    def _options(self, *place: str) -> FitOptions:
        return replace(self.options, folder=self._place(*place))

    def _place(self, *place: str) -> Path:
        names = (_file(each) for each in place)
        return self.folder.joinpath(f"seed-{self.options.seed}", *names)

    def measure(self, system: str, setting: str, retriever: Retriever, editor: Editor) -> Measured:
        """The scores of a system's answers, and the figures of every question."""
        inputs = [each.x for each in self.questions.asked]
        started = time.monotonic()
        answers = RetrieveAndEdit(retriever, editor).predict(inputs)
        return self._scored(system, setting, answers, time.monotonic() - started)

    def given(
        self, system: str, setting: str, editor: Editor, found: Sequence[Sequence[Prototype]]
    ) -> Measured:
        """The same with prototypes that no retriever found."""
        inputs = [each.x for each in self.questions.asked]
        started = time.monotonic()
        answers = editor.edit(inputs, found)
        return self._scored(system, setting, answers, time.monotonic() - started)

    def _scored(
        self,
        system: str,
        setting: str,
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
            setting,
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
        )
        values = {n: [100 * each for each in own] for n, own in scores.per_example.items()}
        values["exact_clean"] = [
            float("nan") if example.y in outputs else value
            for example, value in zip(asked, values["exact"], strict=True)
        ]
        # every question stands for itself when they are drawn again
        return Measured(row, {**values, **of_prototypes}, [str(at) for at in range(len(asked))])

    def alone(self, retriever_name: str, setting: str) -> Measured:
        """A retriever, its first prototype's output as the answer."""
        retriever = self.retriever(retriever_name)
        measured = self.measure(retriever_name, setting, retriever, VerbatimEditor())
        seconds = training_seconds(self._place("retriever", retriever_name))
        return replace(measured, row=replace(measured.row, train_seconds=seconds))

    def edited(
        self, system: str, setting: str, retriever_name: str, settings: Settings
    ) -> tuple[Measured, NeuralEditor]:
        """What a trained editor answers, and the editor."""
        retriever, name = self.retriever(retriever_name), f"{system} {setting}"
        settings = self.settings(settings)
        editor = self.editor(name, retriever, settings)
        folders = self._place("editor", name), self._place("retriever", retriever_name)
        config = editor_config(
            len(self.questions.train), replace(self.options, settings={"editor": settings})
        )
        measured = self.measure(system, setting, retriever, editor)
        row = replace(
            measured.row,
            metrics={**measured.row.metrics, **training_costs(editor.network, *folders)},
            train_seconds=training_seconds(*folders),
            parameters=sum(each.numel() for each in editor.network.parameters()),
            config={
                "retriever": retriever_name,
                **values_of(config),
                "numbering": values_of(editor.numbering.config),
            },
        )
        return replace(measured, row=row), editor


def _of_prototypes(
    asked: Sequence[Example], predictions: Sequence[Sequence[Candidate]]
) -> dict[str, list[float]]:
    """How near the prototype of each answer is to the truth, and what was copied from it.

    Nothing of the one where an answer has no prototype, of the other where no token has an origin.
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


def measured_rows(bench: Bench, measures: Sequence[Rows], folder: Path) -> Iterator[Row]:
    """The rows of some measures; the figures of every question are kept in the folder."""
    for rows in measures:
        for measured in rows(bench):
            keep(measured, folder, metrics=measured.values)
            yield measured.row


def compared_rows(
    folder: Path, metrics: Collection[str], *, setting: str = "", similarities: Sequence[int] = ()
) -> Iterator[Row]:
    """What Retrieve+Edit is ahead by of each other system, in all that was kept in the folder.

    Of Seq2Seq also, in this setting, by how near the prototype was: between each two similarities.
    """
    kept, place = read_kept(folder), f"{setting}, "
    by_similarity = similarity_rows(kept, [setting], similarities, metrics, place=place)
    for row in (*difference_rows(kept, metrics=metrics), *by_similarity):
        # of a system that is never right everything is an endless multiple
        shown = {name: row.metrics[name] for name in metrics if name in row.metrics}
        interval = {name: row.interval[name] for name in shown}
        yield replace(row, metrics=shown, interval=interval)


def is_ahead(row: Mapping[str, Any]) -> bool:
    """Whether a row of results.json compares two systems."""
    return " − " in row["system"]


SYSTEMS = {"retrieve+edit": DEFAULT_RETRIEVER, "seq2seq": "none"}
"""The systems with the default settings, and what each retrieves by."""


def system_rows(bench: Bench) -> Iterator[Measured]:
    """Retrieve+Edit and Seq2Seq, both with the default settings."""
    for system, retriever in SYSTEMS.items():
        yield bench.edited(system, bench.questions.setting, retriever, {})[0]


def paper_rows(bench: Bench) -> Iterator[Measured]:
    """Both with the paper's LSTMs at their published size and steps."""
    setting, settings = bench.questions.setting, values_of(paper_config())
    settings["training"] = {**settings["training"], "seed": bench.options.seed}
    yield bench.edited("retrieve+edit (paper)", setting, "task", settings)[0]
    yield bench.edited("seq2seq (paper)", setting, "none", settings)[0]
