"""The re-ranker: how likely the edit of a prototype answers an input.

A linear model over the words in which x and x' differ: words that only x has, words that only x'
has, and pairs of both, beside the similarities of their templates. Its labels are the success of
the edit on held-out training pairs (EPR, Rubin et al. 2022), so that it learns which words change
the output ("nonstop") and which do not ("please"), and which replace each other ("biggest",
"largest"). Knows words and numbers, no prototypes.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from redraft.editing.chooser import numbers
from redraft.editing.templates import Comparison, Template
from redraft.storage.checks import damaged, read_json

PENALTY = 1.0
"""The L2 penalty on half the squared weights of words; those of similarities are nearly free."""

SIMILARITY_PENALTY = 1e-3

MAX_PAIRS = 9
"""Words are paired if the differences are small: at most this many pairs."""

MIN_COUNT = 2
"""Rarer differences get no weight."""

MAX_ITERATIONS = 200

SHARPNESS = 12.0
"""The list-wise target is a softmax over the similarities of the edits times this factor."""

SIMILARITIES = ("cosine", "predicted", "missing", "extra", "only_x", "only_prototype")
"""Numbers of a comparison beside its words; the last two are the numbers of differing words."""

Vector = NDArray[np.float64]

Loss = Callable[[Vector], tuple[float, Vector]]
"""The loss of the scores of all prototypes, and its gradient."""


@dataclass(frozen=True)
class Differences:
    """An input against each of its prototypes: the differing words, and similarities (N, S)."""

    words: list[list[str]]
    similarities: Vector

    @classmethod
    def of(cls, comparison: Comparison, templates: Sequence[Template]) -> "Differences":
        """Return the differences between a query and the templates that it was compared with."""
        words, counts = [], []
        for template in templates:
            only_x = sorted(comparison.words - template.words)
            only_prototype = sorted(template.words - comparison.words)
            words.append(list(_difference_features(only_x, only_prototype)))
            counts.append((len(only_x), len(only_prototype)))
        columns = (comparison.cosine, comparison.predicted, comparison.missing, comparison.extra)
        return cls(words, np.column_stack([*columns, np.reshape(counts, (len(templates), 2))]))


def _difference_features(only_x: Sequence[str], only_prototype: Sequence[str]) -> Iterator[str]:
    yield from (f"-{word}" for word in only_x)
    yield from (f"+{word}" for word in only_prototype)
    if len(only_x) * len(only_prototype) <= MAX_PAIRS:
        yield from (f"-{word}\t+{other}" for word in only_x for other in only_prototype)


@dataclass(frozen=True)
class Reranker:
    """The weights of words and of standardised similarities, the bias last."""

    words: dict[str, float]
    mean: Vector
    scale: Vector
    weight: Vector  # (S + 1,)
    names: tuple[str, ...] = SIMILARITIES

    @classmethod
    def fit(
        cls, differences: Sequence[Differences], is_right: Sequence[NDArray[np.bool_]]
    ) -> "Reranker":
        """Fit by logistic regression on whether the edits of held-out inputs were right.

        Its scores are log-odds.
        """
        return cls._fit(differences, SIMILARITIES, _logistic(np.concatenate(is_right)))

    @classmethod
    def fit_lists(
        cls,
        differences: Sequence[Differences],
        similarities: Sequence[Vector],
        *,
        names: tuple[str, ...],
    ) -> "Reranker":
        """Fit list by list to rank first the prototypes whose edits are most similar to the truth.

        `names` are those of the columns of the differences. Only scores of one list compare.
        """
        return cls._fit(differences, names, _listwise(similarities))

    @classmethod
    def _fit(
        cls, differences: Sequence[Differences], names: tuple[str, ...], loss: Loss
    ) -> "Reranker":
        """Minimise the loss of the scores and the penalty on the weights."""
        from scipy.optimize import minimize  # slow to import, and not needed to predict
        from scipy.sparse import csr_array

        counts = Counter(word for asked in differences for row in asked.words for word in row)
        kept = sorted(word for word, count in counts.items() if count >= MIN_COUNT)
        columns = {word: column for column, word in enumerate(kept)}
        rows = [
            [columns[word] for word in row if word in columns]
            for asked in differences
            for row in asked.words
        ]
        indices = [column for row in rows for column in row]
        starts = np.cumsum([0, *map(len, rows)])
        words = csr_array((np.ones(len(indices)), indices, starts), shape=(len(rows), len(columns)))
        similarities = np.concatenate([asked.similarities for asked in differences])
        mean, scale = similarities.mean(axis=0), similarities.std(axis=0)
        scale = np.where(scale > 1e-9, scale, 1.0)
        standard = np.column_stack([(similarities - mean) / scale, np.ones(len(rows))])
        penalty = np.append(
            np.full(len(columns), PENALTY), np.full(standard.shape[1], SIMILARITY_PENALTY)
        )

        def penalised(weights: Vector) -> tuple[float, Vector]:
            scores = words @ weights[: len(columns)] + standard @ weights[len(columns) :]
            value, slope = loss(scores)
            value += float(penalty @ (weights * weights)) / 2
            gradient = np.append(words.T @ slope, standard.T @ slope)
            return value, gradient + penalty * weights

        solved = minimize(
            penalised,
            np.zeros(len(penalty)),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": MAX_ITERATIONS},
        )
        best: Vector = solved.x
        return cls(
            dict(zip(kept, best[: len(kept)].tolist(), strict=True)),
            mean,
            scale,
            best[len(kept) :],
            names,
        )

    def score(self, differences: Differences) -> Vector:
        """Return the scores (N,) of the prototypes: the higher, the better its edit."""
        weights = self.words
        words = [sum(weights.get(word, 0.0) for word in row) for row in differences.words]
        standard = (differences.similarities - self.mean) / self.scale
        scores: Vector = np.array(words) + standard @ self.weight[:-1] + self.weight[-1]
        return scores

    def save(self, path: Path) -> None:
        """Write the weights as JSON."""
        values = {
            "similarities": {
                name: {"mean": mean, "scale": scale, "weight": weight}
                for name, mean, scale, weight in zip(
                    self.names,
                    self.mean.tolist(),
                    self.scale.tolist(),
                    self.weight[:-1].tolist(),
                    strict=True,
                )
            },
            "bias": float(self.weight[-1]),
            "words": self.words,
        }
        text = json.dumps(values, ensure_ascii=False, indent=1)
        path.write_text(text, encoding="utf-8", errors="backslashreplace")

    @classmethod
    def load(cls, path: Path, *, names: tuple[str, ...] = SIMILARITIES) -> "Reranker":
        """Load and validate the file that `save` wrote for similarities of these `names`."""
        saved = read_json(path)
        try:
            rows = [saved["similarities"][name] for name in names]
            mean, scale, weight = (
                numbers([row[entry] for row in rows]) for entry in ("mean", "scale", "weight")
            )
            words = dict(
                zip(saved["words"], numbers(saved["words"].values()).tolist(), strict=True)
            )
            weights = np.append(weight, numbers([saved["bias"]]))
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise damaged(path, "not the weights of a re-ranker") from error
        if not (scale > 0).all():
            raise damaged(path, "not the weights of a re-ranker")
        return cls(words, mean, scale, weights, names)


def _logistic(is_right: NDArray[np.bool_]) -> Loss:
    """Return the negative log-likelihood of labels under independent log-odds."""
    right = is_right.astype(np.float64)

    def loss(scores: Vector) -> tuple[float, Vector]:
        value = np.logaddexp(0, scores).sum() - right @ scores
        return float(value), 1 / (1 + np.exp(-scores)) - right

    return loss


def _listwise(similarities: Sequence[Vector]) -> Loss:
    """Return the cross-entropy between softmax targets and scores, summed over lists (ListNet)."""
    starts = np.cumsum([0, *map(len, similarities[:-1])])
    owner = np.repeat(np.arange(len(similarities)), list(map(len, similarities)))

    def softmax(scores: Vector) -> Vector:
        odds = np.exp(scores - np.maximum.reduceat(scores, starts)[owner])
        probs: Vector = odds / np.add.reduceat(odds, starts)[owner]
        return probs

    targets = softmax(SHARPNESS * np.concatenate(similarities))

    def loss(scores: Vector) -> tuple[float, Vector]:
        probs = softmax(scores)
        return -float(targets @ np.log(np.maximum(probs, 1e-300))), probs - targets

    return loss
