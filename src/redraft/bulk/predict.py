"""Predict the outputs of shards of rows."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from redraft.bulk.shards import Row
from redraft.bulk.work import Result, ShardWorker, input_of_row, model_digest, one_thread
from redraft.model import RetrieveAndEdit
from redraft.predictor import PredictOptions, Predictor

BATCH = 64


@dataclass(frozen=True)
class PredictJob:
    """Predict the output of each row; writes the JSON lines that `redraft predict` prints.

    `options` are the fields of `PredictOptions`.
    """

    model: str
    options: Mapping[str, Any]
    store: str | None = None

    name: ClassVar[str] = "predict"
    ending: ClassVar[str] = ".jsonl"

    def identity(self) -> dict[str, Any]:
        """Return the model's digest, the options, and the version of the store if there is one."""
        from redraft.persistence import store_version

        model = {"model": model_digest(self.model), "options": dict(self.options)}
        if self.store is None:
            return model
        # examples in a store change without a change of the model folder
        return {**model, "store": store_version(self.model, self.store)}

    def prepare(self) -> ShardWorker:
        """Load the model."""
        model = RetrieveAndEdit.load(self.model, store=self.store)
        one_thread()
        predictor = Predictor(model, PredictOptions(**self.options))
        return ShardWorker(
            lambda rows: _predict(rows, predictor), lambda row: input_of_row(row, predictor.fields)
        )


def _predict(rows: Sequence[Row], predictor: Predictor) -> Result:
    inputs = [input_of_row(row, predictor.fields) for row in rows]
    lines = (
        json.dumps(prediction.to_json(explain=predictor.options.explain), ensure_ascii=False) + "\n"
        for start in range(0, len(inputs), BATCH)
        for prediction in predictor.predict(inputs[start : start + BATCH])
    )
    return Result("".join(lines).encode(errors="backslashreplace"), len(rows))
