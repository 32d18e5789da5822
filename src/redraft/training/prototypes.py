"""Prototypes to train an editor on: drawn anew each epoch, never the example nor its output."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from redraft.data.example import Example
from redraft.models import vmf
from redraft.retrieval.encoder import DirectionEncoder
from redraft.retrieval.index import build_index
from redraft.retrieval.learned import LearnedRetriever
from redraft.retrieval.retriever import Retriever

Draws = Sequence[Example | None]
"""A prototype for each training example, or none where there is nothing to retrieve."""


class PrototypeSource(ABC):
    """Draws a prototype for every training example."""

    @abstractmethod
    def draw(self, *, seed: int) -> Draws:
        """The prototypes of one epoch; the same for the same seed."""


class TopPrototypes(PrototypeSource):
    """One of the nearest k, each as likely as the others; k = 1 is without noise."""

    def __init__(self, retriever: Retriever, examples: Sequence[Example], k: int) -> None:
        inputs = [example.x for example in examples]
        self.found = retriever.retrieve(inputs, k, exclude=examples)

    def draw(self, *, seed: int) -> Draws:
        """One of each list."""
        chance = np.random.default_rng(seed)
        picks = chance.random(len(self.found))
        return [
            ranked[int(pick * len(ranked))].example if ranked else None
            for ranked, pick in zip(self.found, picks, strict=True)
        ]


class NoisyPrototypes(PrototypeSource):
    """The nearest by noisy directions, as in the paper: query and index are both sampled."""

    def __init__(
        self,
        retriever: LearnedRetriever,
        encoder: DirectionEncoder,
        examples: Sequence[Example],
    ) -> None:
        self.known = retriever.examples
        self.examples = examples
        self.concentration = encoder.concentration
        self.directions = retriever.index.vectors
        self.queries = encoder.encode([example.x for example in examples])

    def draw(self, *, seed: int) -> Draws:
        """The nearest sample that stands for another output."""
        generator = torch.Generator().manual_seed(seed)
        index = build_index(self._sample(self.directions, generator))
        queries = self._sample(self.queries, generator)
        drawn: list[Example | None] = [None] * len(self.examples)
        pending, width = list(range(len(self.examples))), 8
        while pending:
            rows = index.search(queries[pending], width).rows
            for at, ranked in zip(pending, rows.tolist(), strict=True):
                drawn[at] = self._first(ranked, self.examples[at].y)
            pending = [at for at in pending if drawn[at] is None]
            if width >= len(self.known):
                break
            width *= 4
        return drawn

    def _sample(
        self, directions: NDArray[np.float32], generator: torch.Generator
    ) -> NDArray[np.float32]:
        means = torch.from_numpy(np.ascontiguousarray(directions))
        return vmf.sample(means, self.concentration, generator=generator).numpy()

    def _first(self, rows: Sequence[int], excluded: str) -> Example | None:
        others = (self.known[row] for row in rows if row >= 0 and self.known[row].y != excluded)
        return next(others, None)
