"""A learned and a lexical retriever as one: their similarities mixed, the weight chosen on dev."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from redraft.artifact import Artifact
from redraft.data.example import Example, Input
from redraft.retrieval.index import Vectors
from redraft.retrieval.learned import TaskRetriever
from redraft.retrieval.lexical import Bm25Retriever, words
from redraft.retrieval.neighbours import Neighbours, nearest
from redraft.retrieval.retriever import Retriever

if TYPE_CHECKING:
    from typing_extensions import Self

POOL = 100
"""How many of the nearest of each retriever the mixture chooses from."""

WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


class HybridRetriever(Retriever):
    """Distance 1 − (1 − w)·cosine − w·score, the BM25 score as a share of the input's best."""

    name = "hybrid"

    def __init__(self, learned: TaskRetriever, lexical: Bm25Retriever, weight: float = 0.5) -> None:
        self.examples = learned.examples
        self.learned = learned
        self.lexical = lexical
        self.weight = weight

    @classmethod
    def choose(
        cls,
        learned: TaskRetriever,
        lexical: Bm25Retriever,
        judge: Callable[[Retriever], float],
    ) -> "Self":
        """The mixture that the judge likes best; of equals the one nearest to the learned."""
        candidates = [cls(learned, lexical, weight) for weight in WEIGHTS]
        return max(candidates, key=judge)

    def search(
        self, inputs: Sequence[Input], k: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> Neighbours:
        """The k nearest rows for each input, from the nearest of both retrievers."""
        pool = max(POOL, k)
        directions = self.learned.encoder.encode(inputs)
        near = self.learned.index.search(directions, pool, allowed=allowed).rows
        parts = []
        for x, direction, rows in zip(inputs, directions, near, strict=True):
            scores = self.lexical.scores([words(x)])  # (1, N)
            shared = nearest(-scores, pool, allowed=allowed).rows[0]
            rows = np.union1d(rows[rows >= 0], shared)
            cosines = self.learned.index.cosines(rows, direction)
            shares = scores[0, rows] / max(scores.max(), 1e-9)
            similar = (1 - self.weight) * cosines + self.weight * shares
            distances: NDArray[np.float32] = (1 - similar[None]).astype(np.float32)
            found = nearest(distances, k)
            parts.append(Neighbours(rows[found.rows], found.distances))
        return Neighbours.join(parts)

    def add(self, examples: Sequence[Example]) -> "Self":
        """The mixture over these examples too."""
        return self.replace([], examples)

    def remove(self, rows: Sequence[int]) -> "Self":
        """The mixture without these examples."""
        return self.replace(rows, [])

    def replace(self, rows: Sequence[int], examples: Sequence[Example]) -> "Self":
        """The mixture over other examples."""
        lexical = self.lexical.replace(rows, examples)
        return type(self)(self.learned.replace(rows, examples), lexical, self.weight)

    def over(self, examples: Sequence[Example]) -> "Self":
        """The mixture over other examples."""
        return type(self)(self.learned.over(examples), self.lexical.over(examples), self.weight)

    def directions(self, rows: Sequence[int]) -> Vectors:
        """Those of the learned part."""
        return self.learned.directions(rows)

    def save(self, folder: Path) -> None:
        """Write both parts and the weight."""
        for part in (self.learned, self.lexical):
            (folder / part.name).mkdir()
            part.save(folder / part.name)
        text = json.dumps({"weight": self.weight}) + "\n"
        (folder / "hybrid.json").write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, artifact: Artifact, examples: Sequence[Example]) -> "Self":
        """The mixture that was saved."""
        learned = TaskRetriever.load(artifact.part(TaskRetriever.name), examples)
        lexical = Bm25Retriever.load(artifact.part(Bm25Retriever.name), examples)
        return cls(learned, lexical, artifact.json("hybrid.json")["weight"])
