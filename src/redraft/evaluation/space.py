"""The space that a retriever searches, as a map: its two axes of most variance, and where all lie.

Knows vectors and examples; knows no page and no colour.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, svds

from redraft.data.example import Example
from redraft.retrieval.lexical import LexicalRetriever, WordRetriever, unit_vectors, words
from redraft.retrieval.retriever import Retriever

MAX_POINTS = 3000
"""Examples on the map; the axes are those of all."""

MAX_EVALUATED = 300
"""Evaluated inputs on the map: more would hide the examples."""

MAX_GROUPS = 12
FREQUENT = 0.02
"""A value that fewer of the examples share is one of the others."""

OTHER = ""
"""The group of an example without a frequent value."""

_SEED = 2018
_BLOCK = 4096
_DENSE_BELOW = 16

Floats = NDArray[np.float64]
Vectors = NDArray[np.float32] | sparse.csr_array


@dataclass(frozen=True)
class Axes:
    """The two directions of most variance, through the mean."""

    mean: Floats  # (D,)
    directions: Floats  # (2, D), rows of length 1
    shares: tuple[float, float]  # of the variance

    def project(self, vectors: Vectors) -> Floats:
        """Where the vectors lie on the axes: (N, 2)."""
        return np.asarray(vectors @ self.directions.T) - self.directions @ self.mean


@dataclass(frozen=True)
class Agreement:
    """How often the nearest other example is of the same group, and how often by chance."""

    share: float
    chance: float


@dataclass(frozen=True)
class Space:
    """A sample of a retriever's examples and the evaluated inputs, in two dimensions."""

    points: Floats  # (P, 2)
    examples: Sequence[Example]  # P of them
    groups: Sequence[str]  # P of them: the value of the key, or OTHER
    key: str | None
    evaluated: Floats  # (Q, 2)
    evaluated_rows: Sequence[int]  # Q of them: rows of the evaluation
    shares: tuple[float, float]
    agreement: Agreement | None
    size: int  # how many examples the retriever has

    @property
    def share(self) -> float:
        """The share of the variance that the two axes hold."""
        return sum(self.shares)


def space_of(retriever: Retriever, evaluated: Sequence[Example]) -> Space | None:
    """The map of a retriever that has vectors; none where they do not differ."""
    rows = sampled(len(evaluated), MAX_EVALUATED)
    encoded = _encoded(retriever, [evaluated[row] for row in rows])
    if encoded is None:
        return None
    vectors, queries = encoded
    axes = principal_axes(vectors)
    if axes is None:
        return None
    drawn = sampled(len(retriever.examples), MAX_POINTS)
    examples = [retriever.examples[row] for row in drawn]
    key = group_key(examples)
    groups = groups_by(examples, key) if key is not None else [OTHER] * len(examples)
    chosen: Vectors = vectors[drawn]
    return Space(
        points=axes.project(chosen),
        examples=examples,
        groups=groups,
        key=key,
        evaluated=axes.project(queries),
        evaluated_rows=rows,
        shares=axes.shares,
        agreement=_agreement(chosen, groups) if key is not None else None,
        size=len(retriever.examples),
    )


def sampled(size: int, most: int) -> list[int]:
    """All rows, or as many as allowed of them, always the same, in their order."""
    if size <= most:
        return list(range(size))
    chosen = np.random.default_rng(_SEED).choice(size, most, replace=False)
    rows: list[int] = np.sort(chosen).tolist()
    return rows


def principal_axes(vectors: Vectors) -> Axes | None:
    """The principal axes of the rows; none of rows that do not differ in two directions."""
    if min(vectors.shape) < 2:
        return None
    mean = np.asarray(vectors.mean(axis=0, dtype=np.float64)).ravel()
    if isinstance(vectors, np.ndarray):
        variance, directions, total = _of_covariance(_covariance(vectors, mean))
    elif min(vectors.shape) < _DENSE_BELOW:
        variance, directions, total = _of_covariance(_covariance(vectors.toarray(), mean))
    else:
        variance, directions, total = _of_sparse(vectors, mean)
    if variance[1] <= 1e-9:
        return None
    # an axis may point either way: let its largest part be positive, so that maps compare
    largest = np.abs(directions).argmax(axis=1)
    directions = directions * np.sign(directions[[0, 1], largest])[:, None]
    first, second = (variance / total).tolist()
    return Axes(mean, directions, (first, second))


def _covariance(vectors: NDArray[np.float32], mean: Floats) -> Floats:
    """Block by block: the vectors may be a mapped file that is larger than memory."""
    covariance = np.zeros((len(mean), len(mean)))
    for start in range(0, len(vectors), _BLOCK):
        centred = vectors[start : start + _BLOCK] - mean
        covariance += centred.T @ centred
    return covariance / len(vectors)


def _of_covariance(covariance: Floats) -> tuple[Floats, Floats, float]:
    variance, directions = np.linalg.eigh(covariance)
    return variance[:-3:-1], directions.T[:-3:-1], float(np.trace(covariance))


def _of_sparse(vectors: sparse.csr_array, mean: Floats) -> tuple[Floats, Floats, float]:
    """The same of many columns: the mean is subtracted from products, so all stays sparse."""
    count, width = vectors.shape
    matrix = vectors.astype(np.float64)
    turned = matrix.T.tocsr()

    def multiply(vector: Floats) -> Floats:
        return np.asarray(matrix @ vector.ravel() - mean @ vector.ravel())

    def multiply_turned(vector: Floats) -> Floats:
        return np.asarray(turned @ vector.ravel() - mean * vector.sum())

    centred = LinearOperator(
        (count, width), matvec=multiply, rmatvec=multiply_turned, dtype=np.dtype(np.float64)
    )
    start = np.random.default_rng(_SEED).normal(size=min(count, width))
    _, singular, directions = svds(centred, k=2, v0=start)
    order = np.argsort(singular)[::-1]
    total = float(matrix.multiply(matrix).sum() / count - mean @ mean)
    return singular[order] ** 2 / count, np.asarray(directions)[order], total


def group_key(examples: Sequence[Example]) -> str | None:
    """The key of the notes whose frequent values tell the examples apart best, if any does."""
    keys = dict.fromkeys(key for example in examples for key in example.meta)
    told = {key: _told(_frequent(examples, key), len(examples)) for key in keys}
    best = max(told, key=lambda key: told[key], default=None)
    return best if best is not None and told[best] > 0 else None


def groups_by(examples: Sequence[Example], key: str) -> list[str]:
    """The value of the key of each example, where it is frequent."""
    frequent = _frequent(examples, key)
    values = [_value(example, key) for example in examples]
    return [value if value is not None and value in frequent else OTHER for value in values]


def _frequent(examples: Sequence[Example], key: str) -> Mapping[str, int]:
    """The values that many examples share, most frequent first."""
    values = (_value(example, key) for example in examples)
    counts = Counter(value for value in values if value is not None)
    least = max(2, FREQUENT * len(examples))
    ranked = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return {value: count for value, count in ranked[:MAX_GROUPS] if count >= least}


def _value(example: Example, key: str) -> str | None:
    value: Any = example.meta.get(key)
    return str(value).strip() or None if isinstance(value, str | int) else None


def _told(frequent: Mapping[str, int], size: int) -> float:
    """The entropy of the frequent values; the others say nothing, and so does a single one."""
    if len(frequent) < 2:
        return 0.0
    parts = np.array(list(frequent.values())) / size
    return float(-(parts * np.log(parts)).sum())


def _agreement(vectors: Vectors, groups: Sequence[str]) -> Agreement:
    """In the whole space, not on the map; the rows are of unit length."""
    if isinstance(vectors, np.ndarray):
        cosines: NDArray[np.float32] = vectors @ vectors.T
    else:
        cosines = (vectors @ vectors.T).toarray()
    np.fill_diagonal(cosines, -np.inf)
    names = np.array(groups)
    named = np.flatnonzero(names != OTHER)
    same = names[cosines.argmax(axis=1)[named]] == names[named]
    counts = Counter(groups)
    by_chance = [(counts[groups[row]] - 1) / (len(groups) - 1) for row in named.tolist()]
    return Agreement(float(same.mean()), float(np.mean(by_chance)))


def _encoded(retriever: Retriever, evaluated: Sequence[Example]) -> tuple[Vectors, Vectors] | None:
    """The vectors of the retriever's examples and of these, if it has any."""
    inputs = [example.x for example in evaluated]
    if isinstance(retriever, WordRetriever):
        if not isinstance(retriever, LexicalRetriever):
            return None
        bags = [words(x) for x in inputs]
        return retriever.vectors, unit_vectors(bags, retriever.vocabulary)
    # here, because they need torch, which the retrievers above do without
    from redraft.retrieval.hybrid import HybridRetriever
    from redraft.retrieval.learned import LearnedRetriever

    learned = retriever.learned if isinstance(retriever, HybridRetriever) else retriever
    if not isinstance(learned, LearnedRetriever):
        return None
    return learned.index.vectors, learned.encoder.encode(inputs)
