"""The chooser: the probability of each proposal that it is the right output.

A conditional logit model (McFadden 1974) over the proposals for one input and the alternative that
none of them is right: a softmax of linear scores, fitted by penalised maximum likelihood. Its
probabilities are calibrated on answers that it was not fitted on. Knows features, no text.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redraft.editing.confidence import Confidence
from redraft.errors import ModelError
from redraft.storage.checks import damaged, read_json

Matrix = NDArray[np.float64]

PENALTY = 1.0
"""The L2 penalty on half the squared weights of standardised features."""

FOLDS = 5
"""The folds of cross-fitting."""

_TINY = 1e-12
_LARGEST = 1e9
"""The limit of the numbers in a saved chooser."""

FLOOR = 0.04
"""The share of held-out inputs that are less familiar than those the editor claims to know."""

HIGHEST_FLOOR = 0.4
"""Where held-out inputs are near-copies of each other, a paraphrase is familiar all the same."""

CONFIDENCE_FEATURES = ("log_odds", "lead", "familiarity")
"""Of an answer: the log-odds of its probability, their lead over the second, and how similar the
most similar prototype is."""


@dataclass(frozen=True)
class Question:
    """The features (N, F) of the proposals for an input, its own, and which proposals are right."""

    proposals: Matrix
    context: NDArray[np.float64]  # (C,), for the alternative that none is right
    is_right: NDArray[np.bool_]


@dataclass(frozen=True)
class Weights:
    """The parameters of the model: scores are linear in standardised features."""

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    weight: NDArray[np.float64]
    none_weight: NDArray[np.float64]  # of the context, the bias first

    @classmethod
    def fit(cls, questions: Sequence[Question]) -> "Weights":
        """Maximise the probability of the right proposals, or of none where none is right."""
        from scipy.optimize import minimize  # a third of the start of a command that only predicts

        features = np.concatenate([question.proposals for question in questions])
        mean, scale = features.mean(axis=0), features.std(axis=0)
        scale = np.where(scale > 1e-9, scale, 1.0)
        context = np.stack([np.append(1.0, question.context) for question in questions])
        starts = np.cumsum([0, *(len(question.proposals) for question in questions[:-1])])
        owner = np.repeat(np.arange(len(questions)), [len(q.proposals) for q in questions])
        rows = (features - mean) / scale
        is_right = np.concatenate([question.is_right for question in questions])
        solved = np.logical_or.reduceat(is_right, starts)
        count = rows.shape[1]

        def loss(values: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            scores, none = rows @ values[:count], context @ values[count:]
            top = np.maximum(np.maximum.reduceat(scores, starts), none)
            odds, none_odds = np.exp(scores - top[owner]), np.exp(none - top)
            total = np.add.reduceat(odds, starts) + none_odds
            right = np.add.reduceat(np.where(is_right, odds, 0.0), starts)
            right = np.where(solved, right, none_odds)
            # gradient of the log-likelihood: model minus posterior over the right alternatives
            share = odds / total[owner] - np.where(is_right, odds, 0.0) / right[owner]
            none_share = none_odds / total - np.where(solved, 0.0, 1.0)
            penalised = values.copy()
            penalised[count] = 0.0  # the bias is free
            value = PENALTY / 2 * float(penalised @ penalised)
            value -= float(np.log(np.maximum(right, 1e-300) / total).sum())
            return value, PENALTY * penalised + np.append(rows.T @ share, context.T @ none_share)

        start = np.zeros(count + context.shape[1])
        solution = minimize(loss, start, jac=True, method="L-BFGS-B").x
        return cls(mean, scale, solution[:count], solution[count:])

    def probabilities(self, proposals: Matrix, context: NDArray[np.float64]) -> Matrix:
        """Return the probability (N,) of each proposal; with that of none they sum to 1."""
        scores = ((proposals - self.mean) / self.scale) @ self.weight
        none = float(np.append(1.0, context) @ self.none_weight)
        top = max(float(scores.max(initial=none)), none)
        odds = np.exp(scores - top)
        probs: Matrix = odds / (odds.sum() + math.exp(none - top))
        return probs


@dataclass(frozen=True)
class Chooser:
    """Weights, calibrated confidence, and what was measured on held-out pairs.

    `preferred` names the proposer whose first output is taken instead, if it was right more often.
    `accuracy` has the share of right answers of the chooser and of every proposer. Inputs with a
    lower familiarity than `floor` are like no example.
    """

    features: tuple[str, ...]
    weights: Weights
    confidence: Confidence
    preferred: str | None
    accuracy: dict[str, float]
    floor: float = 0.0

    @classmethod
    def fit(
        cls,
        questions: Sequence[Question],
        *,
        features: tuple[str, ...],
        firsts: Mapping[str, Sequence[int]],
    ) -> "Chooser":
        """Fit on held-out questions; `firsts` has each proposer's first output by question, or -1.

        Folds over the questions give every answer a probability by weights fitted without it.
        """
        chosen = [0] * len(questions)
        answers = np.empty((len(questions), len(CONFIDENCE_FEATURES)))
        for fold in range(min(FOLDS, len(questions))):
            weights = Weights.fit([q for i, q in enumerate(questions) if i % FOLDS != fold])
            for i in range(fold, len(questions), FOLDS):
                probs = weights.probabilities(questions[i].proposals, questions[i].context)
                chosen[i] = int(probs.argmax())
                answers[i] = answer_features(probs, chosen[i], questions[i].context)
        right = {"chooser": _share(questions, chosen)} | {
            name: _share(questions, rows) for name, rows in firsts.items()
        }
        best = max(firsts, key=lambda name: right[name], default=None)
        preferred = best if best is not None and right[best] > right["chooser"] else None
        if preferred is not None:
            chosen = list(firsts[preferred])
        verdicts = [
            row >= 0 and bool(question.is_right[row])
            for question, row in zip(questions, chosen, strict=True)
        ]
        confidence = Confidence.fit(answers, verdicts, names=CONFIDENCE_FEATURES)
        familiarity = [question.context[0] for question in questions]
        floor = min(float(np.quantile(familiarity, FLOOR)), HIGHEST_FLOOR)
        return cls(features, Weights.fit(questions), confidence, preferred, right, floor)

    def ranked(
        self,
        features: Matrix,
        context: NDArray[np.float64],
        first: int,
        generator: np.random.Generator | None,
    ) -> Iterator[tuple[int, float, float]]:
        """Yield the rows of all outputs, best first, with their log-probability and confidence.

        `first` is the row of the proposer that the chooser prefers to itself, if it prefers one.
        """
        probs = self.weights.probabilities(features, context)
        order = np.argsort(-probs, kind="stable")
        if generator is not None:  # Gumbel top-k: a sample without replacement
            order = np.argsort(-(np.log(probs + _TINY) + generator.gumbel(size=len(probs))))
        elif self.preferred is not None:
            order = np.array([first, *(row for row in order if row != first)])
        confidences = self.confidence.of([answer_features(probs, row, context) for row in order])
        for row, confidence in zip(order, confidences, strict=True):
            yield int(row), float(np.log(probs[row] + _TINY)), float(confidence)

    def save(self, path: Path, confidence: Path) -> None:
        """Write the weights and the measured shares as JSON, and the confidence beside them."""
        weights = self.weights
        columns = zip(weights.mean, weights.scale, weights.weight, strict=True)
        values = {
            "features": {
                name: dict(zip(("mean", "scale", "weight"), map(float, column), strict=True))
                for name, column in zip(self.features, columns, strict=True)
            },
            "none": weights.none_weight.tolist(),
            "preferred": self.preferred,
            "accuracy": self.accuracy,
            "floor": self.floor,
        }
        path.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
        self.confidence.save(confidence)

    @classmethod
    def load(
        cls, path: Path, confidence: Path, *, features: tuple[str, ...], context: int
    ) -> "Chooser":
        """Load and validate the files that `save` wrote."""
        saved = read_json(path)
        try:
            names = tuple(saved["features"])
            columns = [
                numbers([feature[entry] for feature in saved["features"].values()])
                for entry in ("mean", "scale", "weight")
            ]
            none = numbers(saved["none"])
            preferred, accuracy = saved["preferred"], dict(saved["accuracy"])
            floor = float(numbers([saved["floor"], *accuracy.values()])[0])
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise damaged(path, "not the weights of a chooser") from error
        if names != features or len(none) != 1 + context:
            raise ModelError(
                f"{path}: a chooser over other features than this redraft's; fit the model again"
            )
        if not (columns[1] > 0).all() or not (preferred is None or preferred in accuracy):
            raise damaged(path, "not the weights of a chooser")
        weights = Weights(columns[0], columns[1], columns[2], none)
        loaded = Confidence.load(confidence, names=CONFIDENCE_FEATURES)
        return cls(names, weights, loaded, preferred, accuracy, floor)


def answer_features(
    probs: Matrix, row: int, context: NDArray[np.float64]
) -> tuple[float, float, float]:
    """Return `CONFIDENCE_FEATURES` of the answer in `row`."""
    odds = log_odds(float(probs[row]))
    second = float(np.delete(probs, row).max(initial=0.0))
    return odds, odds - log_odds(second), float(context[0])


def log_odds(probability: float) -> float:
    """Return the log-odds of a probability, clipped to finite numbers."""
    clipped = min(max(probability, 1e-6), 1 - 1e-6)
    return math.log(clipped / (1 - clipped))


def _share(questions: Sequence[Question], rows: Sequence[int]) -> float:
    right = [
        row >= 0 and bool(question.is_right[row])
        for question, row in zip(questions, rows, strict=True)
    ]
    return sum(right) / max(1, len(right))


def numbers(values: Iterable[Any]) -> NDArray[np.float64]:
    """Return saved numbers as an array; raise a ValueError for anything else, or a huge one."""
    values = list(values)
    if not all(type(value) in (int, float) and abs(value) <= _LARGEST for value in values):
        raise ValueError("a number is out of range")
    return np.array(values, np.float64)
