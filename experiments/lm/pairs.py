"""Provenance and confidence of answers that a language model takes part in, on messy pairs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.lib.results import ALL_SEEDS, Row
from experiments.lib.tables import Table
from experiments.messy.support_pairs import held_out, stored_rows
from redraft.editing.lm_editor import LmEditor
from redraft.lm.client import LmClient
from redraft.lm.settings import LmSettings
from redraft.metrics.calibration import Calibration
from redraft.metrics.exact_match import is_same_output
from redraft.model import RetrieveAndEdit
from redraft.predictor import lm_name
from redraft.training.fit import FitOptions
from redraft.types import Candidate, Input, Prototype

MESSY = "messy pairs"
"""The setting of the rows."""

TABLES = {
    "language model, pairs": Table(
        {
            "answers": "answers of the language model",
            "copied": "tokens marked as copied",
            "false": "not in the named source",
            "right": "right of mixed %",
            "error": "calibration error, points",
            "chance": "of perfect probabilities",
        },
        lambda row: row.setting == MESSY,
    )
}
"""By their names in the page."""


class Recorder(LmEditor):
    """An editor that keeps every answer of its language model."""

    def __init__(self, settings: LmSettings, client: LmClient | None) -> None:
        super().__init__(settings, client)
        self.answers: list[tuple[Input, Candidate]] = []

    def with_client(self, client: LmClient | None) -> "Recorder":
        """Return an editor that keeps its answers with those of this one."""
        editor = Recorder(self.settings, client)
        editor.answers = self.answers
        return editor

    def _answer(self, x: Input, prototypes: Sequence[Prototype]) -> list[Candidate]:
        answered = super()._answer(x, prototypes)
        self.answers += [(x, candidate) for candidate in answered]
        return answered


@dataclass(frozen=True)
class PairAnswers:
    """The answers of one team's model, and all of the language model's that it saw."""

    seed: int
    mixed: list[tuple[float, bool]]  # confidence and whether it is right; none if not used
    generated: list[tuple[Input, Candidate]]


def ask(client: LmClient, seed: int, shots: int, questions: int) -> PairAnswers:
    """Fit a model with a language model on a team's pairs, and ask it held-out questions."""
    train, asked = stored_rows(seed), held_out(seed)[:questions]
    settings = LmSettings.of(train, model=client.find_model(None), shots=shots)
    recorder = Recorder(settings, client)
    model = RetrieveAndEdit.fit(train, options=FitOptions(lm=recorder, log=print))
    mixed = []
    for example in asked if lm_name(model) is not None else ():
        answer = model.predict_one(example.x)
        is_right = is_same_output(answer.output, example.y)
        mixed.append((answer.confidence or 0.0, is_right))
    return PairAnswers(seed, mixed, recorder.answers)


def pair_row(answers: PairAnswers) -> Row:
    """Return the row of a team."""
    copied = false = 0
    for x, candidate in answers.generated:
        source = candidate.prototype.example.y if candidate.prototype else ""
        text = " ".join(x.values()).casefold()
        for token in candidate.provenance:
            places = {"prototype": f" {source}", "input": f" {text}"}.get(token.origin)
            if places is not None:
                copied += 1
                sought = token.text if token.origin == "prototype" else token.text.casefold()
                false += sought.strip() not in places
    metrics: dict[str, float] = {
        "answers": len(answers.generated),
        "copied": copied,
        "false": false,
    }
    mixed = [(round(confidence, 4), is_right) for confidence, is_right in answers.mixed]
    name = f"with SmolLM2, team {answers.seed}"
    return Row(
        name,
        MESSY,
        "dev",
        answers.seed,
        len(mixed),
        {**metrics, **_calibration(mixed)},
        config={"mixed": mixed},
    )


def pooled_row(rows: Sequence[Row]) -> Row:
    """Return the row of all teams together."""
    metrics: dict[str, float] = {
        name: sum(row.metrics[name] for row in rows) for name in ("answers", "copied", "false")
    }
    mixed = [pair for row in rows for pair in row.config["mixed"]]
    return Row(
        "with SmolLM2, all teams",
        MESSY,
        "dev",
        ALL_SEEDS,
        len(mixed),
        {**metrics, **_calibration(mixed)},
    )


def _calibration(mixed: Iterable[Sequence[float]]) -> dict[str, float]:
    """Return the share that is right and the calibration error, nothing without answers."""
    pairs = sorted((float(confidence), bool(is_right)) for confidence, is_right in mixed)
    if not pairs:
        return {}
    confidences, is_right = zip(*pairs, strict=True)
    calibration = Calibration(np.asarray(confidences), np.asarray(is_right), len(pairs))
    return {
        "right": round(100 * calibration.share.rate, 2),
        "error": round(100 * calibration.expected_error, 2),
        "chance": round(100 * calibration.chance_error, 2),
    }
