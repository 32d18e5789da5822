"""Two-dimensional map of a retriever's embeddings, by principal component analysis.

Examples of a retriever without embeddings are mapped by the TF-IDF of their words.

Knows vectors and examples; knows no HTML and no colours.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator, svds

from redraft.index.base import Index
from redraft.retrieval.auto import AutoRetriever
from redraft.retrieval.base import NoRetriever, Retriever
from redraft.retrieval.bow import BowRetriever, unit_vectors
from redraft.text.words import words
from redraft.types import Example

MAX_POINTS = 3000
"""Maximum number of examples on the map; the axes are computed from all that have vectors."""

MAX_EVALUATED = 300
"""Maximum number of evaluated inputs on the map: more would hide the examples."""

MAX_GROUPS = 12
FREQUENT = 0.02
"""Values of a smaller share of the examples belong to the group `OTHER`."""

OTHER = ""
"""The group of examples without a frequent value."""

_SEED = 2018
_BLOCK = 4096
_DENSE_BELOW = 16

Floats = NDArray[np.float64]
Vectors = NDArray[np.float32] | sparse.csr_array


@dataclass(frozen=True)
class Axes:
    """The first two principal components."""

    mean: Floats  # (D,)
    components: Floats  # (2, D), rows of length 1
    shares: tuple[float, float]  # of the variance

    def project(self, vectors: Vectors) -> Floats:
        """Return the coordinates (N, 2) of the vectors."""
        return np.asarray(vectors @ self.components.T) - self.components @ self.mean


@dataclass(frozen=True)
class Agreement:
    """How often the nearest neighbour has the same group, and the rate expected by chance."""

    share: float
    by_chance: float


@dataclass(frozen=True)
class EmbeddingMap:
    """A sample of a retriever's examples and of the evaluated inputs, in two dimensions."""

    points: Floats  # (P, 2)
    examples: Sequence[Example]  # P
    groups: Sequence[str]  # P, the value of the key or OTHER
    key: str | None
    evaluated: Floats  # (Q, 2)
    evaluated_rows: Sequence[int]  # Q, rows of the evaluation
    shares: tuple[float, float]
    agreement: Agreement | None
    size: int  # number of examples of the retriever

    @property
    def share(self) -> float:
        """The share of the variance explained by the two axes."""
        return sum(self.shares)


def embedding_map(retriever: Retriever, evaluated: Sequence[Example]) -> EmbeddingMap | None:
    """Return the map of a retriever, or None if it does not retrieve or its vectors do not vary."""
    rows = sampled(len(evaluated), MAX_EVALUATED)
    drawn = sampled(len(retriever.examples), MAX_POINTS)
    encoded = _encoded(retriever, drawn, [evaluated[row] for row in rows])
    if encoded is None:
        return None
    vectors, chosen, queries = encoded
    axes = principal_axes(vectors)
    if axes is None:
        return None
    examples = [retriever.examples[row] for row in drawn]
    key = group_key(examples)
    groups = groups_by(examples, key) if key is not None else [OTHER] * len(examples)
    return EmbeddingMap(
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
    """Return all rows, or a fixed random sample of `most` rows in order."""
    if size <= most:
        return list(range(size))
    chosen = np.random.default_rng(_SEED).choice(size, most, replace=False)
    rows: list[int] = np.sort(chosen).tolist()
    return rows


def principal_axes(vectors: Vectors) -> Axes | None:
    """Return the first two principal axes, or None if the rows vary in fewer dimensions."""
    if min(vectors.shape) < 2:
        return None
    mean = np.asarray(vectors.mean(axis=0, dtype=np.float64)).ravel()
    if not isinstance(vectors, np.ndarray) and min(vectors.shape) < _DENSE_BELOW:
        vectors = vectors.toarray()
    if isinstance(vectors, np.ndarray):
        variance, components, total = _of_dense(vectors, mean)
    else:
        variance, components, total = _of_sparse(vectors, mean)
    if variance[1] <= 1e-9:
        return None
    # the sign of an axis is arbitrary: make its largest component positive, for reproducible maps
    largest = np.abs(components).argmax(axis=1)
    components = components * np.sign(components[[0, 1], largest])[:, None]
    first, second = (variance / total).tolist()
    return Axes(mean, components, (first, second))


def _of_dense(vectors: NDArray[np.float32], mean: Floats) -> tuple[Floats, Floats, float]:
    """Compute the covariance in blocks: memory-mapped vectors may be larger than memory."""
    covariance = np.zeros((len(mean), len(mean)))
    for start in range(0, len(vectors), _BLOCK):
        centred = vectors[start : start + _BLOCK] - mean
        covariance += centred.T @ centred
    covariance /= len(vectors)
    variance, components = np.linalg.eigh(covariance)
    return variance[:-3:-1], components.T[:-3:-1], float(np.trace(covariance))


def _of_sparse(vectors: sparse.csr_array, mean: Floats) -> tuple[Floats, Floats, float]:
    """Compute the axes by sparse SVD; the mean is subtracted implicitly, in the products."""
    count = vectors.shape[0]
    matrix = vectors.astype(np.float64)
    ones = aslinearoperator(np.ones((count, 1)))
    centred = aslinearoperator(matrix) - ones @ aslinearoperator(mean[None, :])
    start = np.random.default_rng(_SEED).normal(size=min(matrix.shape))
    _, singular, components = svds(centred, k=2, v0=start)
    order = np.argsort(singular)[::-1]
    total = float(matrix.multiply(matrix).sum() / count - mean @ mean)
    return singular[order] ** 2 / count, np.asarray(components)[order], total


def group_key(examples: Sequence[Example]) -> str | None:
    """Return the meta key whose frequent values have the highest entropy, or None."""
    keys = dict.fromkeys(key for example in examples for key in example.meta)
    entropies = {key: _entropy(_frequent(examples, key), len(examples)) for key in keys}
    best = max(entropies, key=lambda key: entropies[key], default=None)
    return best if best is not None and entropies[best] > 0 else None


def groups_by(examples: Sequence[Example], key: str) -> list[str]:
    """Return the group of each example: its value of `key` if frequent, or OTHER."""
    frequent = _frequent(examples, key)
    values = [_value(example, key) for example in examples]
    return [value if value is not None and value in frequent else OTHER for value in values]


def _frequent(examples: Sequence[Example], key: str) -> Mapping[str, int]:
    """Return the frequent values of `key` with their counts, most frequent first."""
    values = (_value(example, key) for example in examples)
    counts = Counter(value for value in values if value is not None)
    least = max(2, FREQUENT * len(examples))
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return {value: count for value, count in ranked[:MAX_GROUPS] if count >= least}


def _value(example: Example, key: str) -> str | None:
    value: Any = example.meta.get(key)
    return str(value).strip() or None if isinstance(value, str | int) else None


def _entropy(frequent: Mapping[str, int], size: int) -> float:
    """Return the entropy of the frequent values; 0 if there are fewer than two."""
    if len(frequent) < 2:
        return 0.0
    parts = np.array(list(frequent.values())) / size
    return float(-(parts * np.log(parts)).sum())


def _agreement(vectors: Vectors, groups: Sequence[str]) -> Agreement:
    """Return the agreement of nearest neighbours by the full unit vectors, not the projection."""
    product = vectors @ vectors.T
    cosines = product if isinstance(product, np.ndarray) else product.toarray()
    np.fill_diagonal(cosines, -np.inf)
    names = np.array(groups)
    named = np.flatnonzero(names != OTHER)
    same = names[cosines.argmax(axis=1)[named]] == names[named]
    counts = Counter(groups)
    by_chance = [(counts[groups[row]] - 1) / (len(groups) - 1) for row in named.tolist()]
    return Agreement(float(same.mean()), float(np.mean(by_chance)))


def _encoded(
    retriever: Retriever, drawn: Sequence[int], evaluated: Sequence[Example]
) -> tuple[Vectors, Vectors, Vectors] | None:
    """Return the vectors for the axes, of the `drawn` examples and of `evaluated`.

    A retriever without vectors is mapped by the TF-IDF of the drawn examples; None if it does not
    retrieve.
    """
    if isinstance(retriever, AutoRetriever):
        retriever = retriever.chosen
    inputs = [example.x for example in evaluated]
    if isinstance(retriever, NoRetriever):
        return None
    if isinstance(retriever, BowRetriever):
        bags = [words(x) for x in inputs]
        vectors = retriever.vectors
        return vectors, vectors[drawn], unit_vectors(bags, retriever.vocabulary)
    index, encoder = getattr(retriever, "index", None), getattr(retriever, "encoder", None)
    if isinstance(index, Index) and encoder is not None:
        return index.vectors, index.vectors[drawn], encoder.encode(inputs)
    bow = BowRetriever.build([retriever.examples[row] for row in drawn])
    weights = _inverse_frequencies(bow.vectors)
    queries = unit_vectors([words(x) for x in inputs], bow.vocabulary)
    vectors, queries = (_weighted(counts, weights) for counts in (bow.vectors, queries))
    return vectors, vectors, queries


def _inverse_frequencies(counts: sparse.csr_array) -> Floats:
    """Return the smoothed inverse document frequency of each column."""
    frequencies = np.bincount(counts.indices, minlength=counts.shape[1])
    return np.log((1 + counts.shape[0]) / (1 + frequencies)) + 1


def _weighted(counts: sparse.csr_array, weights: Floats) -> sparse.csr_array:
    """Return the rows with weighted columns, each of unit length unless it is zero."""
    weighted = sparse.csr_array(counts.multiply(weights[None, :]))
    lengths = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
    scaled = weighted.multiply(1 / np.maximum(lengths, 1e-12)[:, None])
    return sparse.csr_array(scaled).astype(np.float32)
