"""BM25 retrieval: scored in memory by bm25s, or from an inverted file for examples on disk."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from redraft.index.bm25 import build_scorer, load_scorer, save_scorer
from redraft.index.neighbours import Neighbours
from redraft.index.postings import Postings
from redraft.index.postings_builder import PostingsBuilder
from redraft.retrieval.words import WordRetriever
from redraft.storage.artifact import Artifact
from redraft.storage.disk import chunks, remove_with, removed_on_error, scratch
from redraft.storage.examples import examples_of, is_on_disk, replaced
from redraft.text.words import words
from redraft.types import Example, Input


class Bm25Retriever(WordRetriever):
    """BM25 as in Lucene; a score s becomes the distance 1 / (1 + s).

    `scorer` is a bm25s scorer for examples in memory, `Postings` for examples on disk.
    """

    name = "bm25"

    def __init__(self, examples: Sequence[Example], scorer: Any) -> None:
        self.examples = examples
        self.scorer = scorer

    @classmethod
    def build(cls, examples: Sequence[Example]) -> Self:
        """Return a retriever over `examples`."""
        folder = examples_of(examples).folder
        if folder is not None:
            return cls(examples, _build_postings(folder, examples))
        return cls(examples, build_scorer([words(example.x) for example in examples]))

    def replace(self, rows: Sequence[int], examples: Sequence[Example]) -> Self:
        """Remove the examples in `rows` and append `examples`.

        On disk only the words of `examples` are counted; the other postings are copied.
        """
        remaining = replaced(self.examples, rows, examples)
        folder = examples_of(remaining).folder
        if not isinstance(self.scorer, Postings) or folder is None:
            return self.build(remaining)
        removed = np.asarray(rows, np.int64)
        postings = _build_postings(folder, examples, base=(self.scorer, removed))
        return type(self)(remaining, postings)

    def search(
        self, inputs: Sequence[Input], k: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> Neighbours:
        """Return the k nearest rows for each input."""
        if not isinstance(self.scorer, Postings):
            return super().search(inputs, k, allowed=allowed)
        return Neighbours.join([self.scorer.search(words(x), k, allowed=allowed) for x in inputs])

    def distances(self, bags: Sequence[Sequence[str]]) -> NDArray[np.float32]:
        """Return 1 / (1 + score) for each bag and example in memory: 1 where they share no word."""
        token_ids = [self.scorer.get_tokens_ids(list(bag)) for bag in bags]
        scores = np.stack([self.scorer.get_scores_from_ids(ids) for ids in token_ids])
        return np.asarray(1 / (1 + scores[:, : len(self.examples)]), np.float32)

    def save(self, folder: Path) -> None:
        """Write the scorer as NumPy arrays and JSON."""
        if isinstance(self.scorer, Postings):
            self.scorer.save(folder)
        else:
            save_scorer(self.scorer, folder)

    @classmethod
    def load(cls, artifact: Artifact, examples: Sequence[Example]) -> Self:
        """Return a saved retriever over its examples."""
        if is_on_disk(examples):
            return cls(examples, Postings.load(artifact, len(examples)))
        return cls(examples, load_scorer(artifact, len(examples)))


def _build_postings(
    folder: Path,
    examples: Sequence[Example],
    *,
    base: tuple[Postings, NDArray[np.int64]] | None = None,
) -> Postings:
    """Build postings of `examples` in a temporary folder inside `folder`.

    With `base`, the rows of existing postings come first, without the given removed rows.
    """
    target = scratch(folder)
    with removed_on_error(target):
        builder = PostingsBuilder(target)
        if base is not None:
            builder.take(*base)
        for chunk in chunks(examples):
            builder.add(words(example.x) for example in chunk)
        postings = builder.finish()
    remove_with(postings, target)
    return postings
