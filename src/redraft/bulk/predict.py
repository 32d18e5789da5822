"""Predict the outputs of shards of rows."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from redraft.bulk.shards import Row
from redraft.bulk.work import Result, ShardWorker, input_of_row, model_digest, one_thread
from redraft.model import RetrieveAndEdit
from redraft.predictor import PredictOptions, Predictor
from redraft.types import Input

BATCH = 64


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
