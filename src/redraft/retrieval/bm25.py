"""BM25 retrieval: word counts in memory, or an inverted file for examples on disk."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from redraft.index.bm25 import Bm25Index
from redraft.index.neighbours import Neighbours
from redraft.index.postings import Postings
from redraft.index.postings_builder import PostingsBuilder
from redraft.retrieval.words import WordRetriever
from redraft.storage.artifact import Artifact
from redraft.storage.disk import chunks, remove_with, removed_on_error, scratch
from redraft.storage.examples import examples_of, is_on_disk
from redraft.text.words import words
from redraft.types import Example, Input

_SCORES = "data.csc.index.npy"
"""In models that were saved with scores instead of counts: their inputs are counted again."""


class Bm25Retriever(WordRetriever):
    """BM25 as in Lucene; a score s becomes the distance 1 / (1 + s).

    The index is a `Bm25Index` for examples in memory, `Postings` for examples on disk.
    """

    name = "bm25"

    def __init__(self, examples: Sequence[Example], index: Bm25Index | Postings) -> None:
        self.examples = examples
        self.index = index

    @classmethod
    def build(cls, examples: Sequence[Example]) -> Self:
        """Return a retriever over `examples`."""
        folder = examples_of(examples).folder
        if folder is not None:
            return cls(examples, _build_postings(folder, examples))
        return cls(examples, Bm25Index.build(words(example.x) for example in examples))

    def replace(self, rows: Sequence[int], examples: Sequence[Example]) -> Self:
        """Remove the examples in `rows` and append `examples`.

        Only the words of `examples` are counted. On disk the other postings are copied.
        """
        remaining = self.stored.replaced(rows, examples)
        folder = examples_of(remaining).folder
        if isinstance(self.index, Bm25Index) and folder is None:
            bags = (words(example.x) for example in examples)
            return type(self)(remaining, self.index.replace(rows, bags))
        if isinstance(self.index, Bm25Index) or folder is None:
            return self.build(remaining)
        removed = np.asarray(rows, np.int64)
        postings = _build_postings(folder, examples, base=(self.index, removed))
        return type(self)(remaining, postings)

    def search(
        self, inputs: Sequence[Input], k: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> Neighbours:
        """Return the k nearest rows for each input."""
        if isinstance(self.index, Bm25Index):
            return super().search(inputs, k, allowed=allowed)
        return Neighbours.join([self.index.search(words(x), k, allowed=allowed) for x in inputs])

    def distances(self, bags: Sequence[Sequence[str]]) -> NDArray[np.float32]:
        """Return 1 / (1 + score) for each bag and example in memory: 1 where they share no word."""
        assert isinstance(self.index, Bm25Index)
        scores = np.stack([self.index.scores(bag) for bag in bags])
        return np.asarray(1 / (1 + scores), np.float32)

    def save(self, folder: Path) -> None:
        """Write the index as NumPy arrays and JSON."""
        self.index.save(folder)

    @classmethod
    def load(cls, artifact: Artifact, examples: Sequence[Example]) -> Self:
        """Return a saved retriever over its examples."""
        if is_on_disk(examples):
            return cls(examples, Postings.load(artifact, len(examples)))
        if _SCORES in artifact.files:
            return cls.build(examples)
        return cls(examples, Bm25Index.load(artifact, len(examples)))


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
