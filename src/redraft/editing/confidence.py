"""How often an answer like this one is exactly right: a curve fitted on held-out answers.

Knows four numbers of an answer and whether it was right; knows no text, no editor and no network.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from redraft.errors import ModelError

FEATURES = ("log_prob", "log_prob_per_token", "log_length", "nearness")
"""What is known of an answer before anyone checks it, in the order of `features_of`."""

PENALTY = 1.0
"""On half the squared weights of the standardised features; the bias goes free."""

FOLDS = 5

_LARGEST_LOGIT = 30.0
"""Beyond it a confidence would round to 0 or 1."""

_ENTRIES = ("mean", "scale", "weight")


def features_of(log_prob: float, length: int, distance: float | None) -> list[float]:
    """The features of an answer of so many tokens; its prototype's distance, if it has one.

    Nearness is 1 / (1 + distance): no prototype is the same as one infinitely far away.
    """
    tokens = max(length, 1)
    nearness = 0.0 if distance is None else 1 / (1 + distance)
    return [log_prob, log_prob / tokens, math.log(tokens), nearness]


@dataclass(frozen=True)
class Curve:
    """A logistic curve over standardised features: one mean, scale and weight a feature."""

    means: tuple[float, ...]
    scales: tuple[float, ...]
    weights: tuple[float, ...]
    bias: float

    @classmethod
    def fit(cls, features: NDArray[np.float64], is_right: NDArray[np.bool_]) -> "Curve":
        """The curve of highest penalised likelihood, towards Platt's smoothed targets."""
        if not len(features):
            return cls((0.0,) * len(FEATURES), (1.0,) * len(FEATURES), (0.0,) * len(FEATURES), 0.0)
        means, scales = features.mean(axis=0), features.std(axis=0)
        # what did not vary has no say, however much it may vary later
        varies = scales > 1e-9 * np.abs(features).max(axis=0)
        scales = np.where(varies, scales, 1.0)
        standardised = np.where(varies, (features - means) / scales, 0.0)
        bias, *weights = _newton(standardised, smoothed_targets(is_right)).tolist()
        return cls(tuple(means.tolist()), tuple(scales.tolist()), tuple(weights), bias)

    def of(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """The confidence of each row (N,)."""
        standardised = (features - np.array(self.means)) / np.array(self.scales)
        return _logistic(standardised @ np.array(self.weights) + self.bias)


@dataclass(frozen=True)
class Confidence:
    """A logistic curve over an answer's likelihood, length and distance, and what it was fitted on.

    A weight may have any sign, that of the likelihood too: features that go together share what
    they say, so the weights are to be read together, not one by one.

    `held_out` has a pair for each answer that it was fitted on, in their order: a confidence by a
    curve that did not see this answer, and whether it was right. Thresholds are read from them,
    so that no answer helps to judge itself.
    """

    curve: Curve
    held_out: tuple[tuple[float, bool], ...]

    @classmethod
    def fit(cls, features: ArrayLike, is_right: ArrayLike) -> "Confidence":
        """The confidence that held-out answers (N, F) teach, with which of them were right (N,).

        With all right or none, it is Laplace's (r + 1) / (n + 2) for every answer.
        """
        rows, right = _matrix(features), np.asarray(is_right, np.bool_)
        if not len(rows) or right.shape != (len(rows),):
            raise ValueError(f"{len(rows)} answers and verdicts of shape {right.shape} do not fit")
        pairs = zip(_cross_fitted(rows, right).tolist(), right.tolist(), strict=True)
        return cls(Curve.fit(rows, right), tuple(pairs))

    def of(self, features: ArrayLike) -> NDArray[np.float64]:
        """The confidence of each row of features (N,), above 0 and below 1."""
        return self.curve.of(_matrix(features))

    def threshold(self, precision: float) -> float | None:
        """The lowest confidence from which on the held-out answers reach a precision, if any.

        Where it is high, few answers may speak for it: those of `held_out` at or above it.
        """
        if not 0 <= precision <= 1:
            raise ValueError(f"a precision is between 0 and 1, not {precision}")
        confidences, is_right = (np.array(column) for column in zip(*self.held_out, strict=True))
        order = np.argsort(-confidences, kind="stable")
        ranked = confidences[order]
        precisions = np.cumsum(is_right[order]) / np.arange(1, len(ranked) + 1)
        # equal confidences are taken all or none
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
        """The confidence that was saved, checked."""
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            names = tuple(values["features"])
            confidence = cls(_read_curve(values), _read_pairs(values["held_out"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
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
    """Platt's targets: a right answer counts as nearly 1, the nearer the more there are."""
    right = int(is_right.sum())
    wrong = len(is_right) - right
    return np.where(is_right, (right + 1) / (right + 2), 1 / (wrong + 2))


def _newton(rows: NDArray[np.float64], targets: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bias and weights at the one maximum of the penalised likelihood."""
    design = np.column_stack([np.ones(len(rows)), rows])  # (N, 1 + F)
    penalty = np.append(0.0, np.full(rows.shape[1], PENALTY))
    rate = targets.mean()
    found = np.append(math.log(rate / (1 - rate)), np.zeros(rows.shape[1]))

    def loss(values: NDArray[np.float64]) -> float:
        logits = design @ values
        return float((np.logaddexp(0, logits) - targets * logits).sum() + penalty @ values**2 / 2)

    for _ in range(100):
        chances = _logistic(design @ found)
        gradient = design.T @ (chances - targets) + penalty * found
        curvature = (design.T * (chances * (1 - chances))) @ design + np.diag(penalty)
        step = np.linalg.solve(curvature, gradient)
        gain, size = float(gradient @ step), 1.0
        # far from the maximum a full step can lead away from it
        while size > 1e-6 and loss(found - size * step) > loss(found) + 1e-12 * len(rows):
            size /= 2
        found = found - size * step
        if gain < 1e-14 * len(rows):
            break
    return found


def _cross_fitted(
    features: NDArray[np.float64], is_right: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """A confidence for each row by a curve fitted without it and its fold."""
    # dealt out by rank, the folds are alike, and the order of the rows does not matter
    folds = np.empty(len(features), np.int64)
    folds[np.lexsort([*features.T, is_right])] = np.arange(len(features)) % FOLDS
    confidences = np.empty(len(features))
    for fold in np.unique(folds):
        inside = folds == fold
        confidences[inside] = Curve.fit(features[~inside], is_right[~inside]).of(features[inside])
    return confidences


def _logistic(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    chances: NDArray[np.float64] = 1 / (1 + np.exp(-logits.clip(-_LARGEST_LOGIT, _LARGEST_LOGIT)))
    return chances


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
    if not all(map(math.isfinite, (*means, *scales, *weights, curve.bias))) or min(scales) <= 0:
        raise ValueError("a number of the curve is out of range")
    return curve


def _read_pairs(values: dict[str, Any]) -> tuple[tuple[float, bool], ...]:
    pairs = tuple(zip(map(float, values["confidence"]), values["is_right"], strict=True))
    if not pairs or not all(0 < each < 1 and isinstance(right, bool) for each, right in pairs):
        raise ValueError("a held-out answer is out of range")
    return pairs
