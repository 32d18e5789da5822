"""Predict outputs with user options, for single inputs or in bulk."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from redraft.bulk.shards import Row
from redraft.bulk.work import Result, ShardWorker, input_of_row, model_digest, one_thread
from redraft.config.toml import override
from redraft.data.inputs import fields_of
from redraft.editing.base import CalibratedEditor, DecodingEditor, Editor
from redraft.errors import ConfigError
from redraft.model import RetrieveAndEdit
from redraft.types import Candidate, Input

BATCH = 64


@dataclass(frozen=True)
class Prediction:
    """The ranked candidates for an input, and the confidence threshold for abstaining."""

    x: Input
    ranked: Sequence[Candidate]
    threshold: float | None

    @property
    def confidence(self) -> float:
        """The calibrated confidence of the best candidate; 0 if there is none."""
        return (self.ranked[0].confidence or 0.0) if self.ranked else 0.0

    @property
    def abstains(self) -> bool:
        """True if the confidence is below the threshold."""
        return self.threshold is not None and self.confidence < self.threshold

    def to_json(self, *, explain: bool) -> dict[str, Any]:
        """Return the input, the best output and all candidates as one JSON object."""
        best = self.ranked[0].output if self.ranked and not self.abstains else None
        abstained = {} if self.threshold is None else {"abstained": self.abstains}
        candidates = [_row(candidate, explain=explain) for candidate in self.ranked]
        return {"x": dict(self.x), "output": best, **abstained, "candidates": candidates}


def _row(candidate: Candidate, *, explain: bool) -> dict[str, Any]:
    row = candidate.to_json()
    if not explain:
        del row["prototype"]
        return row
    defaults = {"log_prob": None, "confidence": None}
    provenance = [token.to_json() for token in candidate.provenance]
    return {**defaults, **row, "diff": candidate.diff().to_json(), "provenance": provenance}


@dataclass(frozen=True)
class PredictOptions:
    """Options of a prediction; None means the model's own setting."""

    k: int = 1
    explain: bool = False
    decoding: Mapping[str, int | str | None] = field(default_factory=dict)
    min_confidence: float | None = None
    precision: float | None = None
    where: Mapping[str, str] = field(default_factory=dict)


class Predictor:
    """A model together with the options of its predictions."""

    def __init__(self, model: RetrieveAndEdit, options: PredictOptions) -> None:
        self.fields = fields_of(model.retriever.examples)
        self.options = options
        self.threshold = _threshold(model.editor, options.min_confidence, options.precision)
        self._model = RetrieveAndEdit(model.retriever, _tune(model.editor, options.decoding))

    def predict(self, inputs: Sequence[Input]) -> list[Prediction]:
        """Return the best candidates for each input, by beam search."""
        ranked = self._model.predict(inputs, self.options.k, where=self.options.where)
        return self._predictions(inputs, ranked)

    def sample(self, inputs: Sequence[Input], *, seed: int) -> list[Prediction]:
        """Return sampled candidates for each input; they depend on the whole batch."""
        return self._predictions(inputs, self._model.sample(inputs, self.options.k, seed=seed))

    def _predictions(
        self, inputs: Sequence[Input], ranked: Sequence[Sequence[Candidate]]
    ) -> list[Prediction]:
        return [
            Prediction(x, candidates, self.threshold)
            for x, candidates in zip(inputs, ranked, strict=True)
        ]


def _needs_neural(editor: Editor, option: str) -> ConfigError:
    """Return the error for an option that the editor does not have."""
    return ConfigError(
        f"{option} needs the neural editor, and this model has the {editor.name} one; "
        "fit it again with --editor neural"
    )


def _tune(editor: Editor, decoding: Mapping[str, int | str | None]) -> Editor:
    """Return the editor with its decoding settings overridden by those that are not None."""
    overrides = {name: value for name, value in decoding.items() if value is not None}
    if not overrides:
        return editor
    option = f"--{next(iter(overrides)).removesuffix('_size').replace('_', '-')}"
    if not isinstance(editor, DecodingEditor):
        raise _needs_neural(editor, option)
    return editor.with_decoding(override(editor.decoding, overrides, where=option))


def _threshold(
    editor: Editor, min_confidence: float | None, precision: float | None
) -> float | None:
    """Return the confidence below which the model abstains, or None if it never does."""
    if min_confidence is None and precision is None:
        return None
    option = "--precision" if min_confidence is None else "--min-confidence"
    if not isinstance(editor, CalibratedEditor):
        raise _needs_neural(editor, option)
    confidence = editor.confidence
    if confidence is None:
        raise ConfigError(
            f"{option} needs a model with calibrated confidence; fit it again on 20 pairs or more"
        )
    if precision is None:
        return min_confidence
    threshold = confidence.threshold(precision)
    if threshold is None:
        raise ConfigError(
            f"--precision {precision:g}: not reached at any confidence on the "
            f"{len(confidence.held_out):,} held-out pairs; ask for less, or fit on more pairs"
        )
    return threshold


@dataclass(frozen=True)
class PredictJob:
    """Predict the output of each row; writes the JSON lines that `redraft predict` prints."""

    model: str
    options: Mapping[str, Any]
    store: str | None = None

    name: ClassVar[str] = "predict"
    ending: ClassVar[str] = ".jsonl"

    @classmethod
    def of(cls, model: str, options: PredictOptions, *, store: str | None) -> "PredictJob":
        """Return the job of predicting with the model in the folder `model`."""
        return cls(model, asdict(options), store)

    def identity(self) -> dict[str, Any]:
        """Return the model's digest, the options, and the version of the store if there is one."""
        model = {"model": model_digest(self.model), "options": dict(self.options)}
        # examples in a store change without a change of the model folder
        return model if self.store is None else {**model, "store": self._version()}

    def _version(self) -> int | None:
        from redraft.persistence import store_version

        return store_version(self.model, self.store)

    def prepare(self) -> ShardWorker:
        """Load the model."""
        model = RetrieveAndEdit.load(self.model, store=self.store)
        one_thread()
        predictor = Predictor(model, PredictOptions(**self.options))
        return ShardWorker(
            lambda rows: _predict(rows, predictor), lambda row: input_of_row(row, predictor.fields)
        )


def _predict(rows: Sequence[Row], predictor: Predictor) -> Result:
    lines = (
        json.dumps(prediction.to_json(explain=predictor.options.explain), ensure_ascii=False) + "\n"
        for batch in _batches(rows, predictor.fields)
        for prediction in predictor.predict(batch)
    )
    return Result("".join(lines).encode(errors="backslashreplace"), len(rows))


def _batches(rows: Sequence[Row], fields: Sequence[str]) -> Iterator[list[Input]]:
    inputs = [input_of_row(row, fields) for row in rows]
    for start in range(0, len(inputs), BATCH):
        yield inputs[start : start + BATCH]
