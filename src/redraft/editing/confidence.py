"""Calibrated confidence: the probability that an answer is an exact match.

A logistic regression (Platt scaling) on four features of held-out answers. Knows no text, no editor
and no network.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from redraft.editing.logistic import Curve, cross_fitted, matrix
from redraft.errors import ModelError
from redraft.storage.checks import read_json
from redraft.types import Candidate

FEATURES = ("log_prob", "log_prob_per_token", "log_length", "nearness")
"""The names of the features, in the order of `features_of_candidate`."""

_MISTYPED = (ValueError, TypeError, AttributeError)


def features_of_candidate(candidate: Candidate) -> list[float]:
    """Return the features of `candidate` that its confidence is computed from.

    Nearness is 1 / (1 + distance) of its prototype, and 0 without one.
    """
    log_prob, tokens = candidate.log_prob or 0.0, len(candidate.provenance) + 1
    nearness = 1 / (1 + candidate.prototype.distance) if candidate.prototype else 0.0
    return [log_prob, log_prob / tokens, math.log(tokens), nearness]


@dataclass(frozen=True)
class Confidence:
    """A curve over an answer's likelihood, length and distance, and its cross-fitted predictions.

    The features are correlated: interpret their weights together. Even the weight of the likelihood
    may be negative.

    `held_out` has a pair per fitted answer, in order: its confidence by a curve that was fitted
    without it, and whether it was right. Thresholds come from these pairs, so that they are not
    biased by overfitting.
    """

    curve: Curve
    held_out: tuple[tuple[float, bool], ...]
    names: tuple[str, ...] = FEATURES

    @classmethod
    def fit(
        cls, features: ArrayLike, is_right: ArrayLike, *, names: tuple[str, ...] = FEATURES
    ) -> "Confidence":
        """Fit on the features (N, F) of held-out answers and on which of them were right (N,).

        If all or none are right, every confidence is Laplace's estimate (r + 1) / (n + 2).
        """
        rows, right = matrix(features, len(names)), np.asarray(is_right, np.bool_)
        if not len(rows) or right.shape != (len(rows),):
            raise ValueError(f"{len(rows)} answers and verdicts of shape {right.shape} do not fit")
        pairs = zip(cross_fitted(rows, right).tolist(), right.tolist(), strict=True)
        return cls(Curve.fit(rows, right), tuple(pairs), names)

    def of(self, features: ArrayLike) -> NDArray[np.float64]:
        """Return the confidence (N,) of each row of features, above 0 and below 1."""
        return self.curve.of(matrix(features, len(self.names)))

    def threshold(self, precision: float) -> float | None:
        """Return the lowest confidence threshold at which held-out answers reach `precision`.

        Returns None if there is none. A high threshold may rest on few answers: count those in
        `held_out` at or above it.
        """
        if not 0 <= precision <= 1:
            raise ValueError(f"a precision is between 0 and 1, not {precision}")
        confidences, is_right = (np.array(column) for column in zip(*self.held_out, strict=True))
        order = np.argsort(-confidences, kind="stable")
        ranked = confidences[order]
        precisions = np.cumsum(is_right[order]) / np.arange(1, len(ranked) + 1)
        # a threshold cannot separate equal confidences
        is_last = np.append(ranked[1:] != ranked[:-1], True)
        reaching = np.flatnonzero(is_last & (precisions >= precision))
        return float(ranked[reaching[-1]]) if len(reaching) else None

    def save(self, path: Path) -> None:
        """Write the curve and the held-out pairs as JSON."""
        confidences, is_right = zip(*self.held_out, strict=True)
        values = {
            **self.curve.to_json(self.names),
            "held_out": {"confidence": confidences, "is_right": is_right},
        }
        path.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path, *, names: tuple[str, ...] = FEATURES) -> "Confidence":
        """Load and validate the file that `save` wrote, with features of these names."""
        try:
            values = read_json(path)
            saved = tuple(values["features"])
            held_out = _read_pairs(values["held_out"])
            confidence = cls(Curve.from_json(values), held_out, saved)
        except (ModelError, OSError, LookupError, ArithmeticError, *_MISTYPED) as error:
            raise ModelError(
                f"{path}: no confidence can be read from it; copy or fit the model again"
            ) from error
        if saved != names:
            raise ModelError(
                f"{path}: a confidence over {', '.join(saved)}, where this redraft takes "
                f"{', '.join(names)}; fit the model again"
            )
        return confidence


def _read_pairs(values: dict[str, Any]) -> tuple[tuple[float, bool], ...]:
    pairs = tuple(zip(map(float, values["confidence"]), values["is_right"], strict=True))
    if not pairs or not all(0 < value < 1 and isinstance(right, bool) for value, right in pairs):
        raise ValueError("a held-out answer is out of range")
    return pairs
