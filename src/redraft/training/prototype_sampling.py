"""Sampling of training prototypes: redrawn each epoch, never the example itself nor its output.

The mix covers what an editor meets in use: prototypes from the example's project, as an index of a
user's project returns them, prototypes from other projects, and none.
"""

import math
import random
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from redraft.index.base import build_index
from redraft.models import vmf
from redraft.retrieval.base import Retriever
from redraft.retrieval.dense import LearnedRetriever
from redraft.retrieval.encoder import DenseEncoder
from redraft.types import Example, Prototype

PROJECT = "package"
"""The key of meta that names the project of an example."""

MOST_ACROSS = 10_000
"""Size of the sample that cross-project prototypes come from; a larger one is hardly nearer."""

NEARBY = 32
"""Nearest examples per prototype that get noise, if there are too many to add it to all."""

_QUERY_BATCH = 256

Draws = Sequence[Sequence[Example]]
"""The prototypes of each training example, nearest first; none where nothing is retrieved."""

Find = Callable[[Sequence[int], int], Sequence[Sequence[Prototype]]]
"""Returns at most k prototypes for each of the given rows of the training examples."""


class PrototypeSource(ABC):
    """Draws prototypes for training examples."""

    @abstractmethod
    def draw(self, rows: Sequence[int], *, seed: int) -> Draws:
        """Return the prototypes of `rows` in one epoch, determined by `seed` and `rows`."""


class NoPrototypes(PrototypeSource):
    """No prototypes: the editor writes from the input alone."""

    def draw(self, rows: Sequence[int], *, seed: int) -> Draws:  # noqa: ARG002
        """Return an empty list per row."""
        return [[] for _ in rows]


class TopPrototypes(PrototypeSource):
    """Draws `count` prototypes uniformly from the `top + count - 1` nearest ones.

    A `top` of 1 always returns the nearest. Results of about `cache_rows` rows are cached.
    """

    def __init__(
        self, find: Find, *, top: int, count: int = 1, cache_rows: float = math.inf
    ) -> None:
        self.find = find
        self.count = count
        self.pool = top + count - 1
        self.cache_rows = cache_rows
        self._cache: dict[int, list[Example]] = {}

    def draw(self, rows: Sequence[int], *, seed: int) -> Draws:
        """Retrieve missing rows, then draw from each list; the order by distance is kept."""
        if len(self._cache) > self.cache_rows:
            self._cache.clear()
        new = [row for row in rows if row not in self._cache]
        for row, ranked in zip(new, self.find(new, self.pool) if new else [], strict=True):
            self._cache[row] = [prototype.example for prototype in ranked]
        rng = np.random.default_rng(seed)
        return [self._pick(self._cache[row], rng.random(self.pool)) for row in rows]

    def _pick(self, ranked: Sequence[Example], keys: NDArray[np.float64]) -> list[Example]:
        picked = np.sort(np.argsort(keys[: len(ranked)])[: self.count])
        return [ranked[rank] for rank in picked]


class MixedPrototypes(PrototypeSource):
    """Draws one of several sources for each example, with the given probabilities."""

    def __init__(self, sources: Sequence[tuple[float, PrototypeSource]]) -> None:
        self.shares = [share for share, _ in sources]
        self.sources = [source for _, source in sources]

    def draw(self, rows: Sequence[int], *, seed: int) -> Draws:
        """Assign each row to a source and return its draw."""
        assigned = random.Random(seed).choices(range(len(self.sources)), self.shares, k=len(rows))
        draws: list[Sequence[Example]] = [[] for _ in rows]
        for source_id, source in enumerate(self.sources):
            indices = [i for i, chosen in enumerate(assigned) if chosen == source_id]
            drawn = source.draw([rows[i] for i in indices], seed=seed)
            for i, prototypes in zip(indices, drawn, strict=True):
                draws[i] = prototypes
        return draws


def everywhere(retriever: Retriever, examples: Sequence[Example]) -> Find:
    """Return a search of `retriever` for training examples, excluding the examples themselves."""

    def find(rows: Sequence[int], k: int) -> Sequence[Sequence[Prototype]]:
        queries = [examples[row] for row in rows]
        return retriever.retrieve([example.x for example in queries], k, exclude=queries)

    return find


def in_project(retriever: Retriever, examples: Sequence[Example], key: str) -> Find:
    """Return a search in an index of only the example's project."""
    projects = _rows_by_project(retriever.examples, key)
    finders: dict[str, Find] = {}

    def within(project: str) -> Find:
        if project not in finders:
            in_this = set(projects.get(project, []))
            others = [row for row in range(len(retriever.examples)) if row not in in_this]
            finders[project] = everywhere(retriever.remove(others), examples)
        return finders[project]

    return _search_by_project(examples, key, within)


def across_projects(retriever: Retriever, examples: Sequence[Example], key: str) -> Find:
    """Return a search among the examples of other projects."""
    rows = range(len(retriever.examples))
    dropped = random.Random(0).sample(rows, max(0, len(rows) - MOST_ACROSS))
    sample = retriever.remove(dropped) if dropped else retriever

    def outside(project: str) -> Find:
        def find(rows: Sequence[int], k: int) -> Sequence[Sequence[Prototype]]:
            queries = [examples[row] for row in rows]
            inputs = [example.x for example in queries]
            return sample.retrieve(inputs, k, exclude=queries, without={key: project})

        return find

    return _search_by_project(examples, key, outside)


def _search_by_project(
    examples: Sequence[Example], key: str, finder: Callable[[str], Find]
) -> Find:
    """Return a search that uses the `finder` of each example's project."""

    def find(rows: Sequence[int], k: int) -> Sequence[Sequence[Prototype]]:
        prototypes: dict[int, Sequence[Prototype]] = {}
        queries = _rows_by_project([examples[row] for row in rows], key)
        for project, indices in queries.items():
            results = finder(project)([rows[i] for i in indices], k)
            prototypes.update(zip(indices, results, strict=True))
        return [prototypes[i] for i in range(len(rows))]

    return find


def _rows_by_project(examples: Sequence[Example], key: str) -> dict[str, list[int]]:
    """Return the rows of each project."""
    projects: dict[str, list[int]] = defaultdict(list)
    for row, example in enumerate(examples):
        projects[str(example.meta.get(key))].append(row)
    return projects


def whole_projects(examples: Sequence[Example], key: str, *, limit: int) -> list[int]:
    """Draw projects at random and return all their rows, at most `limit` unless one is larger."""
    projects = list(_rows_by_project(examples, key).values())
    random.Random(0).shuffle(projects)
    rows: list[int] = []
    for project in projects:
        if not rows or len(rows) + len(project) <= limit:
            rows += project
    return sorted(rows)


class NoisyPrototypes(PrototypeSource):
    """The nearest by noisy directions, as in the paper: noise on the query and on all examples."""

    def __init__(
        self,
        retriever: LearnedRetriever,
        encoder: DenseEncoder,
        examples: Sequence[Example],
        *,
        count: int = 1,
    ) -> None:
        self.retrieved = retriever.examples
        self.examples = examples
        self.count = count
        self.concentration = encoder.concentration
        self.embeddings = retriever.index.vectors
        self.queries = encoder.encode([example.x for example in examples])

    def draw(self, rows: Sequence[int], *, seed: int) -> Draws:
        """Return the nearest noisy examples with other outputs."""
        generator = torch.Generator().manual_seed(seed)
        index = build_index(_sample(self.embeddings, self.concentration, generator))
        queries = _sample(self.queries, self.concentration, generator)
        drawn: dict[int, list[Example]] = {}
        pending, k = list(rows), 8 * self.count
        while pending:
            neighbours = index.search(queries[pending], k).rows
            for row, ranked in zip(pending, neighbours.tolist(), strict=True):
                drawn[row] = _distinct_outputs(
                    self.retrieved, ranked, excluded=self.examples[row].y, count=self.count
                )
            pending = [row for row in pending if len(drawn[row]) < self.count]
            if k >= len(self.retrieved):
                break
            k *= 4
        return [drawn[row] for row in rows]


class NearbyPrototypes(PrototypeSource):
    """An approximation for many examples: noise only on the query and on its nearest examples."""

    def __init__(
        self,
        retriever: LearnedRetriever,
        encoder: DenseEncoder,
        examples: Sequence[Example],
        *,
        count: int = 1,
    ) -> None:
        self.retriever = retriever
        self.encoder = encoder
        self.examples = examples
        self.count = count

    def draw(self, rows: Sequence[int], *, seed: int) -> Draws:
        """Return the nearest noisy examples with other outputs."""
        generator = torch.Generator().manual_seed(seed)
        drawn: list[list[Example]] = []
        for start in range(0, len(rows), _QUERY_BATCH):
            batch = [self.examples[row] for row in rows[start : start + _QUERY_BATCH]]
            drawn += self._draw(batch, generator)
        return drawn

    def _draw(self, batch: Sequence[Example], generator: torch.Generator) -> list[list[Example]]:
        concentration, index = self.encoder.concentration, self.retriever.index
        queries = self.encoder.encode([example.x for example in batch])
        queries = _sample(queries, concentration, generator)
        near = index.search(queries, NEARBY * self.count).rows  # (B, K)
        sampled = _sample(index.take(near.clip(min=0).ravel()), concentration, generator)
        cosines = np.einsum("bkd,bd->bk", sampled.reshape(*near.shape, -1), queries)
        order = np.argsort(np.where(near >= 0, -cosines, np.inf), axis=1, kind="stable")
        return [
            _distinct_outputs(
                self.retriever.examples, ranked.tolist(), excluded=example.y, count=self.count
            )
            for example, ranked in zip(batch, np.take_along_axis(near, order, axis=1), strict=True)
        ]


def _sample(
    embeddings: NDArray[np.float32], concentration: float, generator: torch.Generator
) -> NDArray[np.float32]:
    means = torch.from_numpy(np.ascontiguousarray(embeddings))
    return vmf.sample(means, concentration, generator=generator).numpy()


def _distinct_outputs(
    examples: Sequence[Example], rows: Sequence[int], *, excluded: str, count: int
) -> list[Example]:
    """Return the first `count` of `rows` with distinct outputs other than `excluded`."""
    picked: dict[str, Example] = {}
    for row in rows:
        if len(picked) == count:
            break
        if row >= 0:
            example = examples[row]
            if example.y != excluded:
                picked.setdefault(example.y, example)
    return list(picked.values())
