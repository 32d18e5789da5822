"""Inputs to answers, as a model and the options of a user want them: one, or by the million."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from redraft.bulk.shards import Row
from redraft.bulk.work import Result, Worker, model_digest, one_thread
from redraft.config import override
from redraft.data.example import Input
from redraft.data.inputs import fields_of, input_of
from redraft.editing.candidate import Candidate
from redraft.editing.editor import Editor
from redraft.editing.neural_editor import NeuralEditor
from redraft.errors import ConfigError, PairsError
from redraft.retrieve_and_edit import RetrieveAndEdit

BATCH = 64


@dataclass(frozen=True)
class Answer:
    """The candidates for an input, and from which confidence on they are an answer."""

    x: Input
    ranked: Sequence[Candidate]
    threshold: float | None

    @property
    def confidence(self) -> float:
        """How sure the model is of the best candidate."""
        return (self.ranked[0].confidence or 0.0) if self.ranked else 0.0

    @property
    def is_abstained(self) -> bool:
        """Whether the model is not sure enough."""
        return self.threshold is not None and self.confidence < self.threshold

    def to_json(self, *, explain: bool) -> dict[str, Any]:
        """One line of output: the input, its best output, and every candidate."""
        best = self.ranked[0].output if self.ranked and not self.is_abstained else None
        verdict = {} if self.threshold is None else {"abstained": self.is_abstained}
        candidates = [_row(candidate, explain=explain) for candidate in self.ranked]
        return {"x": dict(self.x), "output": best, **verdict, "candidates": candidates}


def _row(candidate: Candidate, *, explain: bool) -> dict[str, Any]:
    row = candidate.to_json()
    if not explain:
        del row["prototype"]
        return row
    unknown = {"log_prob": None, "confidence": None}
    provenance = [token.to_json() for token in candidate.provenance]
    return {**unknown, **row, "diff": candidate.diff().to_json(), "provenance": provenance}


@dataclass(frozen=True)
class Asked:
    """What a user wants of answers; `None` is what the model was fitted with."""

    k: int = 1
    explain: bool = False
    decoding: Mapping[str, int | str | None] = field(default_factory=dict)
    min_confidence: float | None = None
    precision: float | None = None
    where: Mapping[str, str] = field(default_factory=dict)


class Predictor:
    """A model that answers as it is asked to."""

    def __init__(self, model: RetrieveAndEdit, asked: Asked) -> None:
        self.fields = fields_of(model.retriever.examples)
        self.asked = asked
        self.threshold = _threshold(model.editor, asked.min_confidence, asked.precision)
        self._model = RetrieveAndEdit(model.retriever, _tune(model.editor, asked.decoding))

    def predict(self, inputs: Sequence[Input]) -> list[Answer]:
        """The best candidates for each input."""
        found = self._model.predict(inputs, self.asked.k, where=self.asked.where)
        return self._answers(inputs, found)

    def sample(self, inputs: Sequence[Input], *, seed: int) -> list[Answer]:
        """Candidates at random; they depend on all inputs that are drawn for together."""
        return self._answers(inputs, self._model.sample(inputs, self.asked.k, seed=seed))

    def _answers(
        self, inputs: Sequence[Input], found: Sequence[Sequence[Candidate]]
    ) -> list[Answer]:
        return [Answer(x, each, self.threshold) for x, each in zip(inputs, found, strict=True)]


def _neural(editor: Editor, option: str) -> NeuralEditor:
    """The editor, if it is one that an option like this can be meant for."""
    if not isinstance(editor, NeuralEditor):
        raise ConfigError(
            f"{option} needs the neural editor, and this model has the {editor.name} one; "
            "fit it again with --editor neural"
        )
    return editor


def _tune(editor: Editor, decoding: Mapping[str, int | str | None]) -> Editor:
    """The editor that searches as the options tell."""
    told = {name: value for name, value in decoding.items() if value is not None}
    if not told:
        return editor
    option = f"--{next(iter(told)).removesuffix('_size')}"
    neural = _neural(editor, option)
    return neural.with_decoding(override(neural.decoding, told, where=option))


def _threshold(
    editor: Editor, min_confidence: float | None, precision: float | None
) -> float | None:
    """From which confidence on an answer is given, if that was asked for."""
    if min_confidence is None and precision is None:
        return None
    option = "--precision" if min_confidence is None else "--min-confidence"
    confidence = _neural(editor, option).confidence
    if confidence is None:
        raise ConfigError(
            f"{option} needs a model that learned how often it is right; "
            "fit it again on 20 pairs or more"
        )
    if precision is None:
        return min_confidence
    found = confidence.threshold(precision)
    if found is None:
        raise ConfigError(
            f"--precision {precision:g}: no confidence was right as often on the "
            f"{len(confidence.held_out):,} held-out pairs; ask for less, or fit on more pairs"
        )
    return found


@dataclass(frozen=True)
class Predicting:
    """The answer of each row, as the JSON lines that `redraft predict` prints."""

    model: str
    asked: Mapping[str, Any]
    store: str | None = None

    name: ClassVar[str] = "predict"
    ending: ClassVar[str] = ".jsonl"

    @classmethod
    def of(cls, model: str, asked: Asked, *, store: str | None) -> "Predicting":
        """The work of answering so."""
        return cls(model, asdict(asked), store)

    def identity(self) -> dict[str, Any]:
        """The model, the version of its store if it has one, and what is asked of it."""
        model = {"model": model_digest(self.model), "asked": dict(self.asked)}
        # the store of a model changes and its folder does not
        return model if self.store is None else {**model, "store": self._version()}

    def _version(self) -> int | None:
        from redraft.experiment import store_version

        return store_version(self.model, self.store)

    def prepare(self) -> Worker:
        """Load the model."""
        one_thread()
        model = RetrieveAndEdit.load(self.model, store=self.store)
        predictor = Predictor(model, Asked(**self.asked))
        return lambda rows: _predict(rows, predictor)


def _predict(rows: Sequence[Row], predictor: Predictor) -> Result:
    lines = (
        json.dumps(answer.to_json(explain=predictor.asked.explain), ensure_ascii=False) + "\n"
        for batch in _batches(rows, predictor.fields)
        for answer in predictor.predict(batch)
    )
    return Result("".join(lines).encode(errors="backslashreplace"), len(rows))


def _batches(rows: Sequence[Row], fields: Sequence[str]) -> Iterator[list[Input]]:
    inputs = []
    for row in rows:
        try:
            inputs.append(input_of(row.value, fields))
        except PairsError as error:
            raise row.error(error) from error
    for start in range(0, len(inputs), BATCH):
        yield inputs[start : start + BATCH]
