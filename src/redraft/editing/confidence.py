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

from redraft.errors import ModelError
from redraft.storage.checks import read_json
from redraft.types import Candidate

FEATURES = ("log_prob", "log_prob_per_token", "log_length", "nearness")
"""The names of the features, in the order of `features_of`."""

PENALTY = 1.0
"""The L2 penalty on half the squared weights of standardised features; the bias is free."""

FOLDS = 5
"""The folds of cross-fitting."""

_LARGEST_LOGIT = 30.0
"""Logits are clipped here, before a confidence would round to 0 or 1."""

_LARGEST = 1e12
"""The limit of the numbers in a saved curve, so that predictions cannot overflow."""

_MISTYPED = (ValueError, TypeError, AttributeError)

_ENTRIES = ("mean", "scale", "weight")


def features_of(log_prob: float, length: int, distance: float | None) -> list[float]:
    """Return the features of an answer of `length` tokens, in the order of `FEATURES`.

    `distance` is its prototype's; nearness is 1 / (1 + distance), and 0 without a prototype.
    """
    tokens = max(length, 1)
    nearness = 0.0 if distance is None else 1 / (1 + distance)
    return [log_prob, log_prob / tokens, math.log(tokens), nearness]


def features_of_candidate(candidate: Candidate) -> list[float]:
    """Return the features of `candidate` that its confidence is computed from."""
    distance = candidate.prototype.distance if candidate.prototype else None
    return features_of(candidate.log_prob or 0.0, len(candidate.provenance) + 1, distance)


@dataclass(frozen=True)
class Curve:
    """A logistic curve over standardised features, with a mean, scale and weight per feature."""

    means: tuple[float, ...]
    scales: tuple[float, ...]
    weights: tuple[float, ...]
    bias: float

    @classmethod
    def fit(cls, features: NDArray[np.float64], is_right: NDArray[np.bool_]) -> "Curve":
        """Fit the curve to Platt's smoothed targets by penalised maximum likelihood."""
        if not len(features):
            return cls((0.0,) * len(FEATURES), (1.0,) * len(FEATURES), (0.0,) * len(FEATURES), 0.0)
        means, scales = features.mean(axis=0), features.std(axis=0)
        # a feature that is constant here gets no weight, though it may vary later
        varies = scales > 1e-9 * np.abs(features).max(axis=0)
        scales = np.where(varies, scales, 1.0)
        standardised = np.where(varies, (features - means) / scales, 0.0)
        bias, *weights = _newton(standardised, smoothed_targets(is_right)).tolist()
        return cls(tuple(means.tolist()), tuple(scales.tolist()), tuple(weights), bias)

    def of(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the confidence of each row (N,)."""
        standardised = (features - np.array(self.means)) / np.array(self.scales)
        return _logistic(standardised @ np.array(self.weights) + self.bias)


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

    @classmethod
    def fit(cls, features: ArrayLike, is_right: ArrayLike) -> "Confidence":
        """Fit on the features (N, F) of held-out answers and on which of them were right (N,).

        If all or none are right, every confidence is Laplace's estimate (r + 1) / (n + 2).
        """
        rows, right = _matrix(features), np.asarray(is_right, np.bool_)
        if not len(rows) or right.shape != (len(rows),):
            raise ValueError(f"{len(rows)} answers and verdicts of shape {right.shape} do not fit")
        pairs = zip(_cross_fitted(rows, right).tolist(), right.tolist(), strict=True)
        return cls(Curve.fit(rows, right), tuple(pairs))

    def of(self, features: ArrayLike) -> NDArray[np.float64]:
        """Return the confidence (N,) of each row of features, above 0 and below 1."""
        return self.curve.of(_matrix(features))

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
        curve = self.curve
        columns = zip(curve.means, curve.scales, curve.weights, strict=True)
        named = (dict(zip(_ENTRIES, column, strict=True)) for column in columns)
        confidences, is_right = zip(*self.held_out, strict=True)
        values = {
            "bias": curve.bias,
            "features": dict(zip(FEATURES, named, strict=True)),
            "held_out": {"confidence": confidences, "is_right": is_right},
        }
        path.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> "Confidence":
        """Load and validate the file that `save` wrote."""
        try:
            values = read_json(path)
            names = tuple(values["features"])
            confidence = cls(_read_curve(values), _read_pairs(values["held_out"]))
        except (ModelError, OSError, LookupError, ArithmeticError, *_MISTYPED) as error:
            raise ModelError(
                f"{path}: no confidence can be read from it; copy or fit the model again"
            ) from error
        if names != FEATURES:
            raise ModelError(
                f"{path}: a confidence over {', '.join(names)}, where this redraft takes "
                f"{', '.join(FEATURES)}; fit the model again"
            )
        return confidence


def smoothed_targets(is_right: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return Platt's targets, which approach 1 and 0 as the number of answers grows."""
    right = int(is_right.sum())
    wrong = len(is_right) - right
    return np.where(is_right, (right + 1) / (right + 2), 1 / (wrong + 2))


def _newton(rows: NDArray[np.float64], targets: NDArray[np.float64]) -> NDArray[np.float64]:
    """Maximise the penalised likelihood by Newton's method; return the bias and the weights."""
    design = np.column_stack([np.ones(len(rows)), rows])  # (N, 1 + F)
    penalty = np.append(0.0, np.full(rows.shape[1], PENALTY))
    rate = targets.mean()
    solution = np.append(math.log(rate / (1 - rate)), np.zeros(rows.shape[1]))

    def loss(values: NDArray[np.float64]) -> float:
        logits = design @ values
        return float((np.logaddexp(0, logits) - targets * logits).sum() + penalty @ values**2 / 2)

    for _ in range(100):
        probs = _logistic(design @ solution)
        gradient = design.T @ (probs - targets) + penalty * solution
        curvature = (design.T * (probs * (1 - probs))) @ design + np.diag(penalty)
        step = np.linalg.solve(curvature, gradient)
        gain, size = float(gradient @ step), 1.0
        # backtrack: far from the maximum a full Newton step can overshoot
        limit = loss(solution) + 1e-12 * len(rows)
        while size > 1e-6 and loss(solution - size * step) > limit:
            size /= 2
        solution = solution - size * step
        if gain < 1e-14 * len(rows):
            break
    return solution


def _cross_fitted(
    features: NDArray[np.float64], is_right: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return the confidence of each row by a curve that was fitted without its fold."""
    # assigned by rank: folds are stratified and independent of the order of the rows
    folds = np.empty(len(features), np.int64)
    folds[np.lexsort([*features.T, is_right])] = np.arange(len(features)) % FOLDS
    confidences = np.empty(len(features))
    for fold in np.unique(folds):
        inside = folds == fold
        confidences[inside] = Curve.fit(features[~inside], is_right[~inside]).of(features[inside])
    return confidences


def _logistic(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    probs: NDArray[np.float64] = 1 / (1 + np.exp(-logits.clip(-_LARGEST_LOGIT, _LARGEST_LOGIT)))
    return probs


def _matrix(features: ArrayLike) -> NDArray[np.float64]:
    rows = np.asarray(features, np.float64)
    if not rows.size:
        return np.empty((0, len(FEATURES)))
    if rows.ndim != 2 or rows.shape[1] != len(FEATURES) or not np.isfinite(rows).all():
        raise ValueError(f"rows of {len(FEATURES)} finite features expected, got {rows.shape}")
    return rows


def _read_curve(values: dict[str, Any]) -> Curve:
    means, scales, weights = (
        tuple(float(feature[entry]) for feature in values["features"].values())
        for entry in _ENTRIES
    )
    curve = Curve(means, scales, weights, float(values["bias"]))
    numbers = (*means, *scales, *weights, curve.bias)
    if not all(abs(number) <= _LARGEST for number in numbers) or min(scales) < 1 / _LARGEST:
        raise ValueError("a number of the curve is out of range")
    return curve


def _read_pairs(values: dict[str, Any]) -> tuple[tuple[float, bool], ...]:
    pairs = tuple(zip(map(float, values["confidence"]), values["is_right"], strict=True))
    if not pairs or not all(0 < value < 1 and isinstance(right, bool) for value, right in pairs):
        raise ValueError("a held-out answer is out of range")
    return pairs
