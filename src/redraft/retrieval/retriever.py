"""The contract of every retriever, and what all share: filters, leave-one-out, no duplicates."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from redraft.artifact import Artifact
from redraft.data.example import Example, Input
from redraft.retrieval.prototype import Prototype


@dataclass(frozen=True)
class Neighbours:
    """Rows of the examples nearest to each input, nearest first; row -1 where there are fewer."""

    rows: NDArray[np.int64]  # (B, K)
    distances: NDArray[np.float32]  # (B, K)

    @classmethod
    def none(cls, inputs: int) -> "Neighbours":
        """No neighbours for this many inputs."""
        return cls(np.empty((inputs, 0), np.int64), np.empty((inputs, 0), np.float32))

    @classmethod
    def join(cls, parts: Sequence["Neighbours"]) -> "Neighbours":
        """The neighbours of several batches of inputs, one batch after the other."""
        rows = np.concatenate([part.rows for part in parts])
        return cls(rows, np.concatenate([part.distances for part in parts]))


class Retriever(ABC):
    """Finds the examples whose outputs are easiest to edit into the output for an input."""

    name: ClassVar[str]
    examples: Sequence[Example]

    @classmethod
    @abstractmethod
    def build(cls, examples: Sequence[Example]) -> "Retriever":
        """The retriever over these examples."""

    @abstractmethod
    def search(
        self, inputs: Sequence[Input], k: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> Neighbours:
        """The k nearest rows for each input, among those that are allowed."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write what `load` needs beside the examples into an existing, empty folder."""

    @classmethod
    @abstractmethod
    def load(cls, artifact: Artifact, examples: Sequence[Example]) -> "Retriever":
        """The retriever that was saved, over the same examples."""

    def retrieve(
        self,
        inputs: Sequence[Input],
        k: int = 1,
        *,
        exclude: Sequence[Example] | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> list[list[Prototype]]:
        """At most k prototypes for each input, nearest first, no two with the same output.

        `exclude` names one example for each input that it must not get, nor a duplicate of it;
        `where` keeps the examples whose meta has these values.
        """
        allowed = self._allowed(where)
        available = len(self.examples) if allowed is None else int(allowed.sum())
        found: list[list[Prototype]] = [[] for _ in inputs]
        pending, width = list(range(len(inputs))), k + 4
        # duplicates and the excluded use up neighbours: ask for more where they did
        while pending and available:
            neighbours = self.search([inputs[i] for i in pending], width, allowed=allowed)
            for at, i in enumerate(pending):
                excluded = exclude[i].identity if exclude is not None else None
                found[i] = self._pick(neighbours, at, k, excluded)
            if width >= available:
                break
            pending = [i for i in pending if len(found[i]) < k]
            width *= 4
        return found

    def _allowed(self, where: Mapping[str, Any] | None) -> NDArray[np.bool_] | None:
        if not where:
            return None
        matches = (
            all(str(example.meta.get(key)) == str(value) for key, value in where.items())
            for example in self.examples
        )
        return np.fromiter(matches, np.bool_, count=len(self.examples))

    def _pick(
        self, neighbours: Neighbours, at: int, k: int, excluded: str | None
    ) -> list[Prototype]:
        picked: dict[str, Prototype] = {}
        for row, distance in zip(neighbours.rows[at], neighbours.distances[at], strict=True):
            if len(picked) == k or row < 0:
                break
            example = self.examples[row]
            if example.y not in picked and (excluded is None or example.identity != excluded):
                picked[example.y] = Prototype(example, float(distance))
        return list(picked.values())


class NoRetriever(Retriever):
    """Retrieves nothing: what is left of the method without its first half."""

    name = "none"

    def __init__(self, examples: Sequence[Example] = ()) -> None:
        self.examples = examples

    @classmethod
    def build(cls, examples: Sequence[Example]) -> "NoRetriever":
        """The null retriever; the examples are kept for whoever trains on them."""
        return cls(examples)

    def search(
        self,
        inputs: Sequence[Input],
        k: int,  # noqa: ARG002
        *,
        allowed: NDArray[np.bool_] | None = None,  # noqa: ARG002
    ) -> Neighbours:
        """Nothing."""
        return Neighbours.none(len(inputs))

    def save(self, folder: Path) -> None:
        """Nothing to write."""

    @classmethod
    def load(cls, artifact: Artifact, examples: Sequence[Example]) -> "NoRetriever":  # noqa: ARG003
        """The null retriever again."""
        return cls(examples)


def nearest(
    distances: NDArray[np.float32], k: int, *, allowed: NDArray[np.bool_] | None = None
) -> Neighbours:
    """The k smallest of each row of a full distance matrix (B, N), ties to the earlier example."""
    count = distances.shape[1] if allowed is None else int(allowed.sum())
    k = min(k, count)
    if k == 0:
        return Neighbours.none(len(distances))
    if allowed is not None:
        distances = np.where(allowed, distances, np.float32(np.inf))
    # the k-th smallest distance is a threshold; of those that tie with it, the first ones are taken
    threshold = np.partition(distances, k - 1, axis=1)[:, k - 1]
    rows = np.empty((len(distances), k), np.int64)
    for at, row in enumerate(distances):
        candidates = np.flatnonzero(row <= threshold[at])
        rows[at] = candidates[np.argsort(row[candidates], kind="stable")[:k]]
    return Neighbours(rows, np.take_along_axis(distances, rows, axis=1))
