"""The base class of the retrievers that compare bags of words."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from redraft.index.neighbours import Neighbours, nearest
from redraft.retrieval.base import Retriever
from redraft.storage.examples import replaced
from redraft.text.words import words
from redraft.types import Example, Input

_BATCH = 64
"""Maximum number of inputs per batch."""

_MAX_DISTANCES = 10_000_000
"""Maximum size of the dense distance matrix of a batch."""


class WordRetriever(Retriever):
    """A retriever that compares bags of words; subclasses define the distance."""

    @classmethod
    @abstractmethod
    def build(cls, examples: Sequence[Example]) -> Self:
        """Return a retriever over `examples`."""

    def add(self, examples: Sequence[Example]) -> Self:
        """Return a retriever with `examples` appended."""
        return self.replace([], examples)

    def remove(self, rows: Sequence[int]) -> Self:
        """Return a retriever without the examples in `rows`."""
        return self.replace(rows, [])

    def replace(self, rows: Sequence[int], examples: Sequence[Example]) -> Self:
        """Remove the examples in `rows`, append `examples` and rebuild the retriever once."""
        return self.build(replaced(self.examples, rows, examples))

    def with_examples(self, examples: Sequence[Example]) -> Self:
        """Return a new retriever over `examples`; word counts are not learned."""
        return self.build(examples)

    @abstractmethod
    def distances(self, bags: Sequence[Sequence[str]]) -> NDArray[np.float32]:
        """Return the distance of each bag of words to each example: (B, N)."""

    def search(
        self, inputs: Sequence[Input], k: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> Neighbours:
        """Return the k nearest rows for each input."""
        parts = []
        batch = max(1, min(_BATCH, _MAX_DISTANCES // max(1, len(self.examples))))
        for start in range(0, len(inputs), batch):
            bags = [words(x) for x in inputs[start : start + batch]]
            parts.append(nearest(self.distances(bags), k, allowed=allowed))
        return Neighbours.join(parts)
