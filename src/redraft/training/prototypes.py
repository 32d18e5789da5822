"""Prototypes to train an editor on: drawn anew each epoch, never the example nor its output.

What an editor is trained on it can use when it is served: prototypes of the example's own project,
as the index of a user's project finds them, prototypes of other projects, and none at all.
"""

import math
import random
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from redraft.data.example import Example
from redraft.models import vmf
from redraft.retrieval.encoder import DirectionEncoder
from redraft.retrieval.index import build_index
from redraft.retrieval.learned import LearnedRetriever
from redraft.retrieval.prototype import Prototype
from redraft.retrieval.retriever import Retriever

MOST_ACROSS = 10_000
"""Examples that prototypes of other projects come from: the nearest of more would be no nearer."""

NEARBY = 32
"""Of many examples, so many of the nearest are sampled for each prototype that is read."""

_ASKED = 256

Draws = Sequence[Sequence[Example]]
"""The prototypes of each training example, nearest first; none where nothing is retrieved."""

Find = Callable[[Sequence[int], int], Sequence[Sequence[Prototype]]]
"""At most k prototypes for each of some training examples, which are given by their rows."""


class PrototypeSource(ABC):
    """Draws prototypes for training examples."""

    @abstractmethod
    def draw(self, rows: Sequence[int], *, seed: int) -> Draws:
        """The prototypes of some examples in one epoch; the same for the same seed and rows."""


class NoPrototypes(PrototypeSource):
    """None: the editor must write from the input alone."""

    def draw(self, rows: Sequence[int], *, seed: int) -> Draws:  # noqa: ARG002
        """Nothing for each."""
        return [[] for _ in rows]


class TopPrototypes(PrototypeSource):
    """Some of the nearest, each as likely as the others; a `top` of 1 is without noise."""

    def __init__(self, find: Find, *, top: int, count: int = 1, kept: float = math.inf) -> None:
        self.find = find
        self.count = count
        self.pool = top + count - 1
        self.kept = kept  # so many rows are not searched for again
        self._found: dict[int, list[Example]] = {}

    def draw(self, rows: Sequence[int], *, seed: int) -> Draws:
        """Some of each list, in their order."""
        if len(self._found) > self.kept:
            self._found.clear()
        new = [row for row in rows if row not in self._found]
        for row, ranked in zip(new, self.find(new, self.pool) if new else [], strict=True):
            self._found[row] = [found.example for found in ranked]
        chance = np.random.default_rng(seed)
        return [self._pick(self._found[row], chance.random(self.pool)) for row in rows]

    def _pick(self, ranked: Sequence[Example], keys: NDArray[np.float64]) -> list[Example]:
        picked = np.sort(np.argsort(keys[: len(ranked)])[: self.count])
        return [ranked[at] for at in picked]


class MixedPrototypes(PrototypeSource):
    """One of several sources for each example, drawn by its share."""

    def __init__(self, sources: Sequence[tuple[float, PrototypeSource]]) -> None:
        self.shares = [share for share, _ in sources]
        self.sources = [source for _, source in sources]

    def draw(self, rows: Sequence[int], *, seed: int) -> Draws:
        """What the source that an example fell to gives it."""
        fell = random.Random(seed).choices(range(len(self.sources)), self.shares, k=len(rows))
        drawn: list[Sequence[Example]] = [[] for _ in rows]
        for which, source in enumerate(self.sources):
            own = [at for at, each in enumerate(fell) if each == which]
            for at, found in zip(
                own, source.draw([rows[at] for at in own], seed=seed), strict=True
            ):
                drawn[at] = found
        return drawn


def everywhere(retriever: Retriever, examples: Sequence[Example]) -> Find:
    """What a retriever finds for training examples."""

    def find(rows: Sequence[int], k: int) -> Sequence[Sequence[Prototype]]:
        asked = [examples[row] for row in rows]
        return retriever.retrieve([each.x for each in asked], k, exclude=asked)

    return find


def in_project(retriever: Retriever, examples: Sequence[Example], key: str) -> Find:
    """What it would find in an index of the example's own project and of nothing else."""
    members = _by_project(retriever.examples, key)
    finders: dict[str, Find] = {}

    def within(project: str) -> Find:
        if project not in finders:
            own = set(members.get(project, []))
            others = [row for row in range(len(retriever.examples)) if row not in own]
            finders[project] = everywhere(retriever.remove(others), examples)
        return finders[project]

    return _project_by_project(examples, key, within)


def across_projects(retriever: Retriever, examples: Sequence[Example], key: str) -> Find:
    """What it finds among examples of other projects."""
    rows = range(len(retriever.examples))
    dropped = random.Random(0).sample(rows, max(0, len(rows) - MOST_ACROSS))
    fewer = retriever.remove(dropped) if dropped else retriever

    def outside(project: str) -> Find:
        def find(rows: Sequence[int], k: int) -> Sequence[Sequence[Prototype]]:
            asked = [examples[row] for row in rows]
            inputs, own = [each.x for each in asked], {key: project}
            return fewer.retrieve(inputs, k, exclude=asked, without=own)

        return find

    return _project_by_project(examples, key, outside)


def _project_by_project(
    examples: Sequence[Example], key: str, finder: Callable[[str], Find]
) -> Find:
    """A search that asks the finder of each example's own project."""

    def find(rows: Sequence[int], k: int) -> Sequence[Sequence[Prototype]]:
        found: dict[int, Sequence[Prototype]] = {}
        asked = _by_project([examples[row] for row in rows], key)
        for project, places in asked.items():
            own = [rows[at] for at in places]
            found.update(zip(places, finder(project)(own, k), strict=True))
        return [found[at] for at in range(len(rows))]

    return find


def _by_project(examples: Sequence[Example], key: str) -> dict[str, list[int]]:
    """The rows of each project."""
    members: dict[str, list[int]] = defaultdict(list)
    for row, example in enumerate(examples):
        members[str(example.meta.get(key))].append(row)
    return members


def whole_projects(examples: Sequence[Example], key: str, *, most: int) -> list[int]:
    """The rows of some projects with all of their examples, about so many, drawn at random."""
    members = list(_by_project(examples, key).values())
    random.Random(0).shuffle(members)
    rows: list[int] = []
    for project in members:
        if not rows or len(rows) + len(project) <= most:
            rows += project
    return sorted(rows)


class NoisyPrototypes(PrototypeSource):
    """The nearest by noisy directions, as in the paper: query and index are both sampled."""

    def __init__(
        self,
        retriever: LearnedRetriever,
        encoder: DirectionEncoder,
        examples: Sequence[Example],
        *,
        count: int = 1,
    ) -> None:
        self.known = retriever.examples
        self.examples = examples
        self.count = count
        self.concentration = encoder.concentration
        self.directions = retriever.index.vectors
        self.queries = encoder.encode([example.x for example in examples])

    def draw(self, rows: Sequence[int], *, seed: int) -> Draws:
        """The nearest samples that stand for other outputs."""
        generator = torch.Generator().manual_seed(seed)
        index = build_index(_sample(self.directions, self.concentration, generator))
        queries = _sample(self.queries, self.concentration, generator)
        drawn: dict[int, list[Example]] = {}
        pending, width = list(rows), 8 * self.count
        while pending:
            found = index.search(queries[pending], width).rows
            for row, ranked in zip(pending, found.tolist(), strict=True):
                drawn[row] = _first(self.known, ranked, self.examples[row].y, count=self.count)
            pending = [row for row in pending if len(drawn[row]) < self.count]
            if width >= len(self.known):
                break
            width *= 4
        return [drawn[row] for row in rows]


class NearbyPrototypes(PrototypeSource):
    """The nearest by noisy directions of many examples: of a noisy query's nearest alone."""

    def __init__(
        self,
        retriever: LearnedRetriever,
        encoder: DirectionEncoder,
        examples: Sequence[Example],
        *,
        count: int = 1,
    ) -> None:
        self.retriever = retriever
        self.encoder = encoder
        self.examples = examples
        self.count = count

    def draw(self, rows: Sequence[int], *, seed: int) -> Draws:
        """The nearest samples that stand for other outputs."""
        generator = torch.Generator().manual_seed(seed)
        drawn: list[list[Example]] = []
        for start in range(0, len(rows), _ASKED):
            asked = [self.examples[row] for row in rows[start : start + _ASKED]]
            drawn += self._draw(asked, generator)
        return drawn

    def _draw(self, asked: Sequence[Example], generator: torch.Generator) -> list[list[Example]]:
        concentration, index = self.encoder.concentration, self.retriever.index
        queries = self.encoder.encode([each.x for each in asked])
        queries = _sample(queries, concentration, generator)
        near = index.search(queries, NEARBY * self.count).rows  # (B, K)
        sampled = _sample(index.take(near.clip(min=0).ravel()), concentration, generator)
        cosines = np.einsum("bkd,bd->bk", sampled.reshape(*near.shape, -1), queries)
        order = np.argsort(np.where(near >= 0, -cosines, np.inf), axis=1, kind="stable")
        return [
            _first(self.retriever.examples, ranked.tolist(), example.y, count=self.count)
            for example, ranked in zip(asked, np.take_along_axis(near, order, axis=1), strict=True)
        ]


def _sample(
    directions: NDArray[np.float32], concentration: float, generator: torch.Generator
) -> NDArray[np.float32]:
    means = torch.from_numpy(np.ascontiguousarray(directions))
    return vmf.sample(means, concentration, generator=generator).numpy()


def _first(
    known: Sequence[Example], rows: Sequence[int], excluded: str, *, count: int
) -> list[Example]:
    """The first ones whose outputs are others than this one and than one another's."""
    picked: dict[str, Example] = {}
    for row in rows:
        if len(picked) == count:
            break
        if row >= 0:
            example = known[row]
            if example.y != excluded:
                picked.setdefault(example.y, example)
    return list(picked.values())
