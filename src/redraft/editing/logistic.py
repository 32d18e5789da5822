"""Logistic regression with an L2 penalty, by Newton's method.

Small enough to be saved as JSON and read by anybody. Knows numbers only.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

PENALTY = 1.0
"""The L2 penalty on half the squared weights of standardised features; the bias is free."""

FOLDS = 5
"""The folds of cross-fitting."""

_LARGEST_LOGIT = 30.0
"""Logits are clipped here, before a probability would round to 0 or 1."""

_LARGEST = 1e12
"""The limit of the numbers in a saved curve, so that predictions cannot overflow."""

_ENTRIES = ("mean", "scale", "weight")


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
        count = features.shape[1]
        if not len(features):
            return cls((0.0,) * count, (1.0,) * count, (0.0,) * count, 0.0)
        means, scales = features.mean(axis=0), features.std(axis=0)
        # a feature that is constant here gets no weight, though it may vary later
        varies = scales > 1e-9 * np.abs(features).max(axis=0)
        scales = np.where(varies, scales, 1.0)
        standardised = np.where(varies, (features - means) / scales, 0.0)
        bias, *weights = _newton(standardised, smoothed_targets(is_right)).tolist()
        return cls(tuple(means.tolist()), tuple(scales.tolist()), tuple(weights), bias)

    def of(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability of each row (N,)."""
        standardised = (features - np.array(self.means)) / np.array(self.scales)
        return logistic(standardised @ np.array(self.weights) + self.bias)

    def to_json(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the curve as a JSON object, with the names of its features."""
        columns = zip(self.means, self.scales, self.weights, strict=True)
        named = (dict(zip(_ENTRIES, column, strict=True)) for column in columns)
        return {"bias": self.bias, "features": dict(zip(names, named, strict=True))}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Curve":
        """Return the curve that `to_json` wrote; raise ValueError for numbers out of range."""
        means, scales, weights = (
            tuple(float(feature[entry]) for feature in values["features"].values())
            for entry in _ENTRIES
        )
        curve = cls(means, scales, weights, float(values["bias"]))
        numbers = (*means, *scales, *weights, curve.bias)
        if not all(abs(number) <= _LARGEST for number in numbers) or min(scales) < 1 / _LARGEST:
            raise ValueError("a number of the curve is out of range")
        return curve


def matrix(features: ArrayLike, count: int) -> NDArray[np.float64]:
    """Return `features` as rows of `count` numbers; raise ValueError if they are not."""
    rows = np.asarray(features, np.float64)
    if not rows.size:
        return np.empty((0, count))
    if rows.ndim != 2 or rows.shape[1] != count or not np.isfinite(rows).all():
        raise ValueError(f"rows of {count} finite features expected, got {rows.shape}")
    return rows


def smoothed_targets(is_right: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return Platt's targets, which approach 1 and 0 as the number of answers grows."""
    right = int(is_right.sum())
    wrong = len(is_right) - right
    return np.where(is_right, (right + 1) / (right + 2), 1 / (wrong + 2))


def logistic(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probabilities of log-odds, above 0 and below 1."""
    probs: NDArray[np.float64] = 1 / (1 + np.exp(-logits.clip(-_LARGEST_LOGIT, _LARGEST_LOGIT)))
    return probs


def cross_fitted(features: NDArray[np.float64], is_right: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the probability of each row by a curve that was fitted without its fold."""
    # assigned by rank: folds are stratified and independent of the order of the rows
    folds = np.empty(len(features), np.int64)
    folds[np.lexsort([*features.T, is_right])] = np.arange(len(features)) % FOLDS
    probs = np.empty(len(features))
    for fold in np.unique(folds):
        inside = folds == fold
        probs[inside] = Curve.fit(features[~inside], is_right[~inside]).of(features[inside])
    return probs


def _newton(rows: NDArray[np.float64], targets: NDArray[np.float64]) -> NDArray[np.float64]:
    """Maximise the penalised likelihood by Newton's method; return the bias and the weights."""
    design = np.column_stack([np.ones(len(rows)), rows])  # (N, 1 + F)
    penalties = np.append(0.0, np.full(rows.shape[1], PENALTY))
    rate = targets.mean()
    solution = np.append(math.log(rate / (1 - rate)), np.zeros(rows.shape[1]))

    def loss(values: NDArray[np.float64]) -> float:
        logits = design @ values
        return float((np.logaddexp(0, logits) - targets * logits).sum() + penalties @ values**2 / 2)

    for _ in range(100):
        probs = logistic(design @ solution)
        gradient = design.T @ (probs - targets) + penalties * solution
        curvature = (design.T * (probs * (1 - probs))) @ design + np.diag(penalties)
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
