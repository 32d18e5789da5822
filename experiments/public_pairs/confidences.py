"""Measure the confidence of answers: calibration error, Brier score, precision and coverage."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from experiments.lib.results import DECIMALS, Measured, Row, interval_of
from experiments.public_pairs.comparison import QUESTION_MEAN
from experiments.public_pairs.promises import Fitted
from experiments.public_pairs.sets import is_question_split
from redraft.editing.choosing import ChoosingEditor
from redraft.metrics.exact_match import is_same_output
from redraft.types import Candidate

BINS = 10
"""Bins of equal size."""

CONFIDENCE = "confidence"
"""The variant of the rows."""

POOLED = QUESTION_MEAN.replace("mean of", "all")
"""The setting of the row over the questions of all question splits."""

CONFIDENCE_METRICS = {
    "right": "right %",
    "calibration_error": "calibration error %",
    "chance_error": "of perfect confidences %",
    "brier": "Brier",
    "brier_constant": "Brier of a constant",
    "precision": "precision %",
    "coverage": "coverage %",
}
"""The expected calibration error over ten bins of equal size, beside that of perfect confidences
for as many answers; Brier scores times 100; precision and coverage at the model's own threshold."""

_DRAWS = 200
_SEED = 2018

Numbers = NDArray[np.float64]


def confidence_values(
    fitted: Fitted, answers: Sequence[Candidate | None], precision: float
) -> Measured | None:
    """Return confidence, correctness and whether it is answered at `precision`, per question.

    None if the model has too few pairs for a confidence.
    """
    editor = fitted.model.editor
    if not isinstance(editor, ChoosingEditor) or editor.chooser is None:
        return None
    threshold = editor.chooser.confidence.threshold(precision)
    known = [(answer.confidence or 0.0) if answer is not None else 0.0 for answer in answers]
    values = {
        "confidence": known,
        "right": [
            float(answer is not None and is_same_output(answer.output, example.y))
            for answer, example in zip(answers, fitted.pairs.asked, strict=True)
        ],
        "answered": [float(threshold is not None and value >= threshold) for value in known],
    }
    row = fitted.row(CONFIDENCE, {}, {})
    return Measured(row, values, [str(i) for i in range(len(answers))])


def confidence_rows(measured: Sequence[Measured], precision: float) -> Iterator[Row]:
    """Yield a row per set and system, and one over all question splits of a system and seed."""
    pooled: dict[tuple[str, int | str], list[Measured]] = {}
    for one in measured:
        yield _row(one.row, one.row.setting, [one], precision)
        if is_question_split(one.row.setting):
            pooled.setdefault((one.row.system, one.row.seed), []).append(one)
    for parts in pooled.values():
        if len(parts) > 1:
            yield _row(parts[0].row, POOLED, parts, precision)


def _row(row: Row, setting: str, parts: Sequence[Measured], precision: float) -> Row:
    """Return the row of all questions of `parts`, called `setting`."""
    confidence, right, answered = (
        np.concatenate([np.asarray(part.values[name]) for part in parts])
        for name in ("confidence", "right", "answered")
    )
    accuracy = right.mean()
    per_question = {
        "right": 100 * right,
        "brier": 100 * (confidence - right) ** 2,
        "coverage": 100 * answered,
    }
    if answered.any():
        per_question["precision"] = 100 * right[answered > 0]
    metrics = {name: float(values.mean()) for name, values in per_question.items()}
    metrics |= {
        "calibration_error": 100 * calibration_error(confidence, right),
        "chance_error": 100 * chance_error(confidence),
        "brier_constant": 100 * float(accuracy * (1 - accuracy)),
    }
    return Row(
        row.system,
        setting,
        row.split,
        row.seed,
        len(right),
        {name: round(value, DECIMALS) for name, value in metrics.items()},
        interval_of({name: values.tolist() for name, values in per_question.items()}),
        config={"precision": precision, "sets": [part.row.setting for part in parts]},
        variant=CONFIDENCE,
    )


def calibration_error(confidence: Numbers, right: Numbers) -> float:
    """Return the expected calibration error over `BINS` bins of equal size."""
    gaps = (confidence - right)[np.argsort(confidence, kind="stable")]
    return float(sum(abs(part.sum()) for part in np.array_split(gaps, BINS)) / len(gaps))


def chance_error(confidence: Numbers) -> float:
    """Return the mean calibration error of answers that are right as often as `confidence` says."""
    generator = np.random.default_rng(_SEED)
    draws = (generator.random(len(confidence)) < confidence for _ in range(_DRAWS))
    return float(np.mean([calibration_error(confidence, drawn.astype(float)) for drawn in draws]))
