"""The interface of retrievers, with filters, leave-one-out and removal of duplicates."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from redraft.data.inputs import as_inputs
from redraft.index.neighbours import Neighbours
from redraft.storage.artifact import Artifact
from redraft.storage.examples import Examples, allowed, examples_of, replaced
from redraft.types import Example, Input, Prototype

INVERSE_TEMPERATURE = 10.0
"""Default for retrievers that define no density; their distances lie between 0 and 1."""

SAMPLING_POOL = 20
"""Number of nearest examples that stochastic retrieval samples from."""


class Retriever(ABC):
    """Finds the examples whose outputs are easiest to edit into the output for an input."""

    name: ClassVar[str]
    examples: Sequence[Example]

    @property
    def inverse_temperature(self) -> float:
        """The factor of the distance in p_ret ∝ exp(−inverse_temperature · distance)."""
        return INVERSE_TEMPERATURE

    @abstractmethod
    def search(
        self, inputs: Sequence[Input], k: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> Neighbours:
        """Return the k nearest rows for each input among the `allowed` ones."""

    @abstractmethod
    def add(self, examples: Sequence[Example]) -> Self:
        """Return a retriever with `examples` appended."""

    @abstractmethod
    def remove(self, rows: Sequence[int]) -> Self:
        """Return a retriever without the examples in `rows`."""

    def replace(self, rows: Sequence[int], examples: Sequence[Example]) -> Self:
        """Return a retriever without the examples in `rows` and with `examples` appended."""
        return self.remove(rows).add(examples)

    def with_examples(self, examples: Sequence[Example]) -> Self:
        """Return a retriever with the same learned parameters over other examples."""
        return self.replace(range(len(self.examples)), examples)

    def embeddings(self, rows: Sequence[int]) -> NDArray[np.float32] | None:  # noqa: ARG002
        """Return the vectors (B, D) of the examples in `rows`; None if there are no vectors."""
        return None

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write everything but the examples into an existing, empty folder."""

    @classmethod
    @abstractmethod
    def load(cls, artifact: Artifact, examples: Sequence[Example]) -> Self:
        """Return a saved retriever over its examples."""

    def retrieve(
        self,
        inputs: Sequence[str | Input],
        k: int = 1,
        *,
        exclude: Sequence[Example] | None = None,
        where: Mapping[str, Any] | None = None,
        without: Mapping[str, Any] | None = None,
        distinct: bool = True,
        rng: np.random.Generator | None = None,
    ) -> list[list[Prototype]]:
        """Return at most k prototypes for each input: those with the same input, then the nearest.

        Equal inputs differ at most in case, white space and final punctuation; the newest comes
        first. If `distinct`, all prototypes have different outputs.
        `exclude` holds one example per input for leave-one-out: no prototype has its output.
        `where` selects the examples whose meta has these values, `without` drops those whose meta
        has them. With `rng` the k prototypes are sampled without replacement from p_ret over the
        nearest examples.
        """
        inputs = as_inputs(inputs, self.examples)
        if rng is not None:
            pool = max(k, SAMPLING_POOL)
            nearest = self.retrieve(
                inputs, pool, exclude=exclude, where=where, without=without, distinct=distinct
            )
            return [draw(ranked, k, rng) for ranked in nearest]
        mask = allowed(self.stored, where, without)
        available = len(self.examples) if mask is None else int(mask.sum())
        prototypes: list[list[Prototype]] = [[] for _ in inputs]
        pending, pool = list(range(len(inputs))), k + 4
        # duplicate and excluded outputs use up neighbours: search again for more of them
        while pending and available:
            neighbours = self.search([inputs[i] for i in pending], pool, allowed=mask)
            for position, i in enumerate(pending):
                excluded = exclude[i].y if exclude is not None else None
                ranked = self._ranked(inputs[i], neighbours, position, mask)
                prototypes[i] = _take(ranked, k, excluded=excluded, distinct=distinct)
            if pool >= available:
                break
            pending = [i for i in pending if len(prototypes[i]) < k]
            pool *= 4
        return prototypes

    def matching(self, where: Mapping[str, Any]) -> list[int]:
        """Return the rows of the examples whose meta has these values."""
        mask = allowed(self.stored, where, None)
        return [] if mask is None else np.flatnonzero(mask).tolist()

    @cached_property
    def stored(self) -> Examples:
        """The examples with their indexes of equal inputs, of identities, and masks of filters."""
        return examples_of(self.examples)

    def _ranked(
        self, x: Input, neighbours: Neighbours, i: int, mask: NDArray[np.bool_] | None
    ) -> Iterator[Prototype]:
        """Yield the examples with the same input, newest first, then the neighbours of input i."""
        same = self.stored.with_input(x)
        same = [row for row in reversed(same) if mask is None or mask[row]]
        for row in same:
            yield Prototype(self.examples[row], 0.0)
        for row, distance in zip(neighbours.rows[i], neighbours.distances[i], strict=True):
            if row < 0:
                break
            if row not in same:
                log_weight = -self.inverse_temperature * float(distance)
                yield Prototype(self.examples[row], float(distance), log_weight)


def _take(
    ranked: Iterable[Prototype], k: int, *, excluded: str | None, distinct: bool
) -> list[Prototype]:
    """Return the first k prototypes whose output is not `excluded`; if `distinct`, one of each."""
    taken: list[Prototype] = []
    outputs: set[str] = set()
    for prototype in ranked:
        if len(taken) == k:
            break
        output = prototype.example.y
        if output != excluded and not (distinct and output in outputs):
            taken.append(prototype)
            outputs.add(output)
    return taken


def draw(ranked: Sequence[Prototype], k: int, rng: np.random.Generator) -> list[Prototype]:
    """Sample k prototypes by their weights without replacement, in the order of drawing."""
    # Gumbel top-k: the k largest log weights with Gumbel noise are such a sample
    keys = np.array([prototype.log_weight for prototype in ranked])
    keys += rng.gumbel(size=len(ranked))
    return [ranked[i] for i in np.argsort(-keys)[:k]]


class NoRetriever(Retriever):
    """A retriever that returns no prototypes: the editor becomes a Seq2Seq model."""

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
        """Return no neighbours."""
        return Neighbours.none(len(inputs))

    def _ranked(self, *_: Any) -> Iterator[Prototype]:
        """Yield nothing, not even examples with the same input."""
        yield from ()

    def add(self, examples: Sequence[Example]) -> Self:
        """Return a null retriever with `examples` appended."""
        return type(self)(replaced(self.examples, [], examples))

    def remove(self, rows: Sequence[int]) -> Self:
        """Return a null retriever without the examples in `rows`."""
        return type(self)(replaced(self.examples, rows, []))

    def with_examples(self, examples: Sequence[Example]) -> Self:
        """Return a null retriever over `examples`."""
        return type(self)(examples)

    def save(self, folder: Path) -> None:
        """Write nothing."""

    @classmethod
    def load(cls, artifact: Artifact, examples: Sequence[Example]) -> Self:  # noqa: ARG003
        """Return a null retriever over `examples`."""
        return cls(examples)
