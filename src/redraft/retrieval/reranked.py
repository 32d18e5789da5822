"""Learned re-ranking: BM25's nearest examples, the one that is easiest to edit first.

A linear model re-ranks BM25's first candidates by the words in which the inputs differ and by the
similarity of their templates. It was trained on edits: on held-out training pairs it ranks first
the candidates whose substituted outputs are most similar to the truth.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from redraft.editing.reranker import SIMILARITIES, Differences, Reranker
from redraft.editing.slot_filling import Query
from redraft.editing.templates import Template, TemplateModel
from redraft.editing.value_table import ValueTable
from redraft.index.neighbours import Neighbours
from redraft.retrieval.base import Retriever
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.storage.artifact import Artifact
from redraft.types import Example, Input, normal_input

POOL = 50
"""BM25's candidates that are re-ranked; the others follow at distance 1."""

COLUMNS = (*SIMILARITIES, "bm25", "bm25_share", "shared")
"""Similarities of an input and a candidate: by their templates; the logarithm of BM25's score, its
share of the best candidate's, and the Jaccard index of their words."""

BASE, TABLE, TEMPLATES, RERANKER = "bm25", "values.json", "templates.json", "reranker.json"

_LEAST_DISTANCE = 1e-6


class RerankedRetriever(Retriever):
    """Re-ranks BM25's nearest; a score s becomes the distance 1 / (1 + exp(s)).

    `held_out` has, by the normal form of a training input, a re-ranker that was fitted without it:
    training inputs are ranked as new ones are. It is not saved.
    """

    name = "reranked"

    def __init__(
        self,
        base: Bm25Retriever,
        templates: TemplateModel,
        reranker: Reranker,
        held_out: Mapping[tuple[str, ...], Reranker] | None = None,
    ) -> None:
        self.examples = base.examples
        self.base = base
        self.templates = templates
        self.reranker = reranker
        self.held_out = held_out or {}

    def search(
        self, inputs: Sequence[Input], k: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> Neighbours:
        """Return the k nearest rows for each input."""
        found = self.base.search(inputs, max(k, POOL), allowed=allowed)
        ranked = Neighbours.join(
            [
                self._reranked(x, rows, distances)
                for x, rows, distances in zip(inputs, found.rows, found.distances, strict=True)
            ]
        )
        return Neighbours(ranked.rows[:, :k], ranked.distances[:, :k])

    def _reranked(
        self, x: Input, rows: NDArray[np.int64], distances: NDArray[np.float32]
    ) -> Neighbours:
        """Return the neighbours of one input, its first `POOL` sorted by their scores."""
        known = int((rows[:POOL] >= 0).sum())
        scored = np.ones(len(rows), np.float32)
        order = np.arange(len(rows))
        if known:
            read = [self.templates.template(self.examples[row]) for row in rows[:known]]
            compared = compare(x, read, distances[:known], self.templates)
            reranker = self.held_out.get(normal_input(x), self.reranker)
            scores = reranker.score(compared).clip(-30, 30)
            order[:known] = np.argsort(-scores, kind="stable")
            scored[:known] = 1 / (1 + np.exp(scores[order[:known]]))
        return Neighbours(rows[order][None], scored[None])

    def add(self, examples: Sequence[Example]) -> Self:
        """Return a retriever with `examples` appended; the re-ranker stays as it is."""
        return self.replace([], examples)

    def remove(self, rows: Sequence[int]) -> Self:
        """Return a retriever without the examples in `rows`."""
        return self.replace(rows, [])

    def replace(self, rows: Sequence[int], examples: Sequence[Example]) -> Self:
        """Remove the examples in `rows` and append `examples`."""
        return self._over(self.base.replace(rows, examples))

    def with_examples(self, examples: Sequence[Example]) -> Self:
        """Return a retriever with the same re-ranker over other examples."""
        return self._over(self.base.with_examples(examples))

    def _over(self, base: Bm25Retriever) -> Self:
        return type(self)(base, self.templates, self.reranker, self.held_out)

    def save(self, folder: Path) -> None:
        """Write BM25's index, the values, the counts of templates, and the re-ranker."""
        (folder / BASE).mkdir()
        self.base.save(folder / BASE)
        self.templates.table.save(folder / TABLE)
        self.templates.save(folder / TEMPLATES)
        self.reranker.save(folder / RERANKER)

    @classmethod
    def load(cls, artifact: Artifact, examples: Sequence[Example]) -> Self:
        """Return a saved retriever over its examples."""
        base = Bm25Retriever.load(artifact.part(BASE), examples)
        table = ValueTable.load(artifact.path(TABLE))
        templates = TemplateModel.load(artifact.path(TEMPLATES), table)
        return cls(base, templates, Reranker.load(artifact.path(RERANKER), names=COLUMNS))


def compare(
    x: Input,
    templates: Sequence[Template],
    distances: NDArray[np.float32],
    model: TemplateModel,
) -> Differences:
    """Return the differences between `x` and candidates at these BM25 distances, by `COLUMNS`."""
    query = Query.of(x, model.table)
    differences = Differences.of(model.compare(query, templates), templates)
    scores = 1 / distances.astype(np.float64).clip(_LEAST_DISTANCE) - 1
    own = set(query.words.folded)
    shared = [
        len(own & other) / max(1, len(own | other))
        for other in (set(template.source.x.folded) for template in templates)
    ]
    best = max(float(scores.max(initial=0.0)), _LEAST_DISTANCE)
    columns = (differences.similarities, np.log1p(scores), scores / best, shared)
    return Differences(differences.words, np.column_stack(columns))
