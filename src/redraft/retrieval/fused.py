"""BM25 and a sentence encoder, fused by reciprocal rank (Cormack et al. 2009)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from redraft.index.base import VECTORS, Vectors, load_index
from redraft.index.neighbours import Neighbours
from redraft.retrieval.base import Retriever
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.retrieval.sentence_encoder import SentenceEncoder
from redraft.retrieval.vectors import VectorRetriever
from redraft.storage.artifact import Artifact
from redraft.storage.checks import same
from redraft.types import Example, Input

POOL = 50
"""Nearest examples of each ranking that are fused, more if more are asked for."""

RANK_CONSTANT = 20
"""Added to every rank, from 0: the larger, the less the first places stand out."""

BM25, ENCODER, INDEX = "bm25", "encoder", "index"


class EncoderRetriever(Retriever):
    """BM25 and a pre-trained encoder: near are the examples that both rank high.

    The distance is 1 less the sum of the reciprocal ranks, which is 1 if both rank a row first.
    """

    name = "encoder"

    def __init__(self, bm25: Bm25Retriever, vectors: "EncodedRetriever") -> None:
        self.examples = bm25.examples
        self.bm25 = bm25
        self.vectors = vectors

    @classmethod
    def build(cls, examples: Sequence[Example], encoder: SentenceEncoder) -> Self:
        """Return a retriever over `examples`, encoded by `encoder`."""
        return cls(Bm25Retriever.build(examples), EncodedRetriever.build(examples, encoder))

    def search(
        self, inputs: Sequence[Input], k: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> Neighbours:
        """Return the k nearest rows for each input."""
        pool = max(k, POOL)
        words = self.bm25.search(inputs, pool, allowed=allowed)
        meaning = self.vectors.search(inputs, pool, allowed=allowed)
        pairs = zip(words.rows, words.distances, meaning.rows, strict=True)
        # BM25 ranks examples without a common word by their place in the file
        ranked = [fuse([rows[distances < 1], own], k) for rows, distances, own in pairs]
        return Neighbours.join([Neighbours(*_padded(*one, k)) for one in ranked])

    def add(self, examples: Sequence[Example]) -> Self:
        """Return a retriever with `examples` appended; only these are encoded."""
        return self.replace([], examples)

    def remove(self, rows: Sequence[int]) -> Self:
        """Return a retriever without the examples in `rows`; nothing is encoded."""
        return self.replace(rows, [])

    def replace(self, rows: Sequence[int], examples: Sequence[Example]) -> Self:
        """Remove the examples in `rows`, append `examples`; only new ones are encoded."""
        return type(self)(self.bm25.replace(rows, examples), self.vectors.replace(rows, examples))

    def with_examples(self, examples: Sequence[Example]) -> Self:
        """Return a retriever over `examples`; a store has their vectors already."""
        return type(self)(self.bm25.with_examples(examples), self.vectors.with_examples(examples))

    def embeddings(self, rows: Sequence[int]) -> Vectors:
        """Return the encoder's vectors of the examples in `rows`."""
        return self.vectors.embeddings(rows)

    def save(self, folder: Path) -> None:
        """Write BM25's index, the encoder and the index of vectors."""
        (folder / BM25).mkdir()
        self.bm25.save(folder / BM25)
        self.vectors.save(folder)

    @classmethod
    def load(cls, artifact: Artifact, examples: Sequence[Example]) -> Self:
        """Return a saved retriever over its examples."""
        bm25 = Bm25Retriever.load(artifact.part(BM25), examples)
        return cls(bm25, EncodedRetriever.load(artifact, examples))


class EncodedRetriever(VectorRetriever):
    """The nearest vectors of a sentence encoder alone."""

    name = "encoded"
    encoder: SentenceEncoder

    def save(self, folder: Path) -> None:
        """Write the encoder and the index."""
        for name in (ENCODER, INDEX):
            (folder / name).mkdir()
        self.encoder.save(folder / ENCODER)
        self.index.save(folder / INDEX)

    @classmethod
    def load(cls, artifact: Artifact, examples: Sequence[Example]) -> Self:
        """Return a saved retriever; check that each example has a vector of the right width."""
        encoder = SentenceEncoder.load(artifact.part(ENCODER))
        index_files = artifact.part(INDEX)
        index = load_index(index_files)
        path = index_files.path(VECTORS)
        same(path, "examples and their vectors", (len(examples), len(index.vectors)))
        same(path, "the width of vectors", (encoder.width, index.width))
        return cls(examples, encoder, index)


def fuse(
    rankings: Sequence[NDArray[np.int64]], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the k rows with the highest sum of reciprocal ranks, and their distances.

    Of equal sums the row that comes first in the first ranking that has it comes first.
    """
    best = len(rankings) / RANK_CONSTANT
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, row in enumerate(ranking[ranking >= 0].tolist()):
            scores[row] = scores.get(row, 0.0) + 1 / (RANK_CONSTANT + rank)
    rows = sorted(scores, key=lambda row: -scores[row])[:k]
    distances = [1 - scores[row] / best for row in rows]
    return np.array(rows, np.int64), np.array(distances, np.float32)


def _padded(
    rows: NDArray[np.int64], distances: NDArray[np.float32], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return one row of neighbours (1, K), filled up with row -1."""
    missing = (0, k - len(rows))
    filled = np.pad(rows, missing, constant_values=-1)
    return filled[None], np.pad(distances, missing, constant_values=1.0)[None]
