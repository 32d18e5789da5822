"""The contract of every retriever, and what all share: filters, leave-one-out, no duplicates."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from redraft.artifact import Artifact
from redraft.data.example import Example, Input
from redraft.retrieval.examples import allowed, exchanged
from redraft.retrieval.neighbours import Neighbours
from redraft.retrieval.prototype import Prototype

if TYPE_CHECKING:
    from typing_extensions import Self


SHARPNESS = 10.0
"""Of retrievers without a density of their own, whose distances lie between 0 and 1."""

DRAWN_FROM = 20
"""How many of the nearest a stochastic retrieval draws from."""


class Retriever(ABC):
    """Finds the examples whose outputs are easiest to edit into the output for an input."""

    name: ClassVar[str]
    examples: Sequence[Example]

    @property
    def sharpness(self) -> float:
        """How fast p_ret falls: it is proportional to exp(-sharpness · distance)."""
        return SHARPNESS

    @abstractmethod
    def search(
        self, inputs: Sequence[Input], k: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> Neighbours:
        """The k nearest rows for each input, among those that are allowed."""

    @abstractmethod
    def add(self, examples: Sequence[Example]) -> "Self":
        """A retriever over its own examples and these after them."""

    @abstractmethod
    def remove(self, rows: Sequence[int]) -> "Self":
        """A retriever without the examples of these rows."""

    def replace(self, rows: Sequence[int], examples: Sequence[Example]) -> "Self":
        """A retriever without the examples of these rows and with the given ones after the rest."""
        return self.remove(rows).add(examples)

    def over(self, examples: Sequence[Example]) -> "Self":
        """The same retriever, as it was learned, over other examples."""
        return self.replace(range(len(self.examples)), examples)

    def directions(self, rows: Sequence[int]) -> NDArray[np.float32] | None:  # noqa: ARG002
        """The vectors of these examples (B, D), if it searches by any."""
        return None

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write what `load` needs beside the examples into an existing, empty folder."""

    @classmethod
    @abstractmethod
    def load(cls, artifact: Artifact, examples: Sequence[Example]) -> "Self":
        """The retriever that was saved, over the same examples."""

    def retrieve(
        self,
        inputs: Sequence[Input],
        k: int = 1,
        *,
        exclude: Sequence[Example] | None = None,
        where: Mapping[str, Any] | None = None,
        without: Mapping[str, Any] | None = None,
        chance: np.random.Generator | None = None,
    ) -> list[list[Prototype]]:
        """At most k prototypes for each input, nearest first, no two with the same output.

        `exclude` names one example for each input that it must not get, nor any of its output;
        `where` keeps the examples whose meta has these values, `without` those whose meta has not;
        with `chance` the k are drawn from p_ret over the nearest, without replacement.
        """
        if chance is not None:
            pool = max(k, DRAWN_FROM)
            nearest = self.retrieve(inputs, pool, exclude=exclude, where=where, without=without)
            return [draw(ranked, k, chance) for ranked in nearest]
        among = allowed(self.examples, where, without)
        available = len(self.examples) if among is None else int(among.sum())
        found: list[list[Prototype]] = [[] for _ in inputs]
        pending, width = list(range(len(inputs))), k + 4
        # duplicates and the excluded use up neighbours: ask for more where they did
        while pending and available:
            neighbours = self.search([inputs[i] for i in pending], width, allowed=among)
            for at, i in enumerate(pending):
                excluded = exclude[i].y if exclude is not None else None
                found[i] = self._pick(neighbours, at, k, excluded)
            if width >= available:
                break
            pending = [i for i in pending if len(found[i]) < k]
            width *= 4
        return found

    def matching(self, where: Mapping[str, Any]) -> list[int]:
        """The rows of the examples whose meta has these values."""
        among = allowed(self.examples, where, None)
        return [] if among is None else np.flatnonzero(among).tolist()

    def _pick(
        self, neighbours: Neighbours, at: int, k: int, excluded: str | None
    ) -> list[Prototype]:
        picked: dict[str, Prototype] = {}
        for row, distance in zip(neighbours.rows[at], neighbours.distances[at], strict=True):
            if len(picked) == k or row < 0:
                break
            example = self.examples[row]
            if example.y not in picked and example.y != excluded:
                weight = -self.sharpness * float(distance)
                picked[example.y] = Prototype(example, float(distance), weight)
        return list(picked.values())


def draw(ranked: Sequence[Prototype], k: int, chance: np.random.Generator) -> list[Prototype]:
    """k of the prototypes, drawn by their weights without replacement, the first drawn first."""
    # the largest of weights with Gumbel noise are a draw without replacement
    keys = np.array([found.log_weight for found in ranked]) + chance.gumbel(size=len(ranked))
    return [ranked[at] for at in np.argsort(-keys)[:k]]


class NoRetriever(Retriever):
    """Retrieves nothing: what is left of the method without its first half."""

    name = "none"

    def __init__(self, examples: Sequence[Example] = ()) -> None:
        self.examples = examples

    def search(
        self,
        inputs: Sequence[Input],
        k: int,  # noqa: ARG002
        *,
        allowed: NDArray[np.bool_] | None = None,  # noqa: ARG002
    ) -> Neighbours:
        """Nothing."""
        return Neighbours.none(len(inputs))

    def add(self, examples: Sequence[Example]) -> "Self":
        """The null retriever over more examples."""
        return type(self)(exchanged(self.examples, [], examples))

    def remove(self, rows: Sequence[int]) -> "Self":
        """The null retriever over fewer examples."""
        return type(self)(exchanged(self.examples, rows, []))

    def over(self, examples: Sequence[Example]) -> "Self":
        """The null retriever over other examples."""
        return type(self)(examples)

    def save(self, folder: Path) -> None:
        """Nothing to write."""

    @classmethod
    def load(cls, artifact: Artifact, examples: Sequence[Example]) -> "Self":  # noqa: ARG003
        """The null retriever again."""
        return cls(examples)
