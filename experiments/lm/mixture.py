"""Trains the mixture of suggestions: two logistic regressions on answers at cursors."""

import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from experiments.completion.projects import is_right
from experiments.lm.collection import CursorAnswer
from redraft.completion.evidence import SHORT_WIDTH
from redraft.completion.generated_text import GeneratedEnd
from redraft.completion.mixing import SuggestionMixture, copied_features, generated_features
from redraft.types import Completion

PENALTY = 5.0
"""L2 penalty of all weights but the first, in cursors."""

Floats = NDArray[np.float64]
Rows = list[tuple[Floats, bool, float]]


def copied_of(answer: CursorAnswer) -> list[Completion]:
    """Return the suggestions of the product."""
    return [Completion("", text, math.log(max(p, 1e-6)), None) for text, p in answer.ours]


def generated_of(answer: CursorAnswer) -> list[GeneratedEnd]:
    """Return the ends of the generation."""
    return [GeneratedEnd(*end) for end in answer.ends]


def fit_mixture(answers: Sequence[CursorAnswer]) -> SuggestionMixture:
    """Return the mixture that predicts best which suggestions are right; a cursor weighs alike."""
    copied: Rows = []
    generated: Rows = []
    for answer in answers:
        ours, ends = copied_of(answer), generated_of(answer)
        if not ends:
            continue
        copied += [
            (copied_features(one, ends), is_right(one.text, answer.rest), len(ours) ** -0.5)
            for one in ours
        ]
        generated += [
            (generated_features(end, ours), is_right(end.text, answer.rest), len(ends) ** -0.5)
            for end in ends
            if end.width >= SHORT_WIDTH
        ]
    return SuggestionMixture(_fit(copied), _fit(generated))


def write_mixture(mixture: SuggestionMixture, path: Path) -> None:
    """Write the weights, rounded."""
    weights = {
        "copied": mixture.copied.round(4).tolist(),
        "generated": mixture.generated.round(4).tolist(),
    }
    path.write_text(json.dumps(weights, indent=2) + "\n", encoding="utf-8")


def _fit(rows: Rows) -> Floats:
    features = np.stack([row[0] for row in rows])
    labels = np.asarray([row[1] for row in rows], float)
    weights = np.asarray([row[2] for row in rows])
    weights /= weights.sum()
    penalty = PENALTY / len(rows)

    def loss(beta: Floats) -> tuple[float, Floats]:
        scores = features @ beta
        value = weights @ (np.logaddexp(0, scores) - labels * scores)
        gradient = features.T @ (weights / (1 + np.exp(-scores)) - weights * labels)
        gradient[1:] += 2 * penalty * beta[1:]
        return float(value + penalty * beta[1:] @ beta[1:]), gradient

    start = np.zeros(features.shape[1])
    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B").x)
