"""Retrieval by vectors: the nearest examples are those whose encoded inputs are closest.

Knows any encoder of inputs, and no network; `dense` has the learned ones.
"""

from collections.abc import Sequence
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from redraft.index.base import Index, Vectors, build_index
from redraft.index.neighbours import Neighbours
from redraft.index.vector_file import VectorFile
from redraft.retrieval.base import Retriever
from redraft.storage.disk import chunks, remove_with, removed_on_error, scratch
from redraft.storage.examples import examples_of, is_on_disk, replaced
from redraft.types import Example, Input


class TextEncoder(Protocol):
    """Anything that encodes inputs as unit vectors, such as a sentence encoder."""

    def encode(self, inputs: Sequence[Input]) -> Vectors:
        """Return the unit vector of each input: (B, D)."""
        ...


class VectorRetriever(Retriever):
    """An encoder and an index of the examples' unit vectors; distance ‖mu(x) − mu(x')‖²."""

    def __init__(self, examples: Sequence[Example], encoder: TextEncoder, index: Index) -> None:
        self.examples = examples
        self.encoder = encoder
        self.index = index

    @classmethod
    def build(cls, examples: Sequence[Example], encoder: TextEncoder) -> Self:
        """Encode `examples` and return a retriever; vectors of examples on disk go to disk too."""
        base = examples_of(examples).folder
        if base is not None:
            from redraft.index.ivfpq import index_of_file  # needs FAISS

            parts = (encoder.encode([e.x for e in chunk]) for chunk in chunks(examples))
            folder = scratch(base)
            with removed_on_error(folder):
                index = index_of_file(VectorFile.write(folder, parts, count=len(examples)))
            remove_with(index, folder)
            return cls(examples, encoder, index)
        vectors = encoder.encode([example.x for example in examples])
        return cls(examples, encoder, build_index(vectors))

    def search(
        self, inputs: Sequence[Input], k: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> Neighbours:
        """Return the k nearest rows for each input."""
        return self.index.search(self.encoder.encode(inputs), k, allowed=allowed)

    def add(self, examples: Sequence[Example]) -> Self:
        """Return a retriever with `examples` appended; only these are encoded."""
        return self.replace([], examples)

    def remove(self, rows: Sequence[int]) -> Self:
        """Return a retriever without the examples in `rows`; nothing is encoded."""
        return self.replace(rows, [])

    def replace(self, rows: Sequence[int], examples: Sequence[Example]) -> Self:
        """Remove the examples in `rows`, append `examples`; only new ones are encoded."""
        remaining = replaced(self.examples, rows, examples)
        if is_on_disk(examples) and is_on_disk(remaining):
            return self.build(remaining, self.encoder)  # too many vectors to hold in memory
        parts = [self.encoder.encode([e.x for e in chunk]) for chunk in chunks(examples)]
        parts.append(np.zeros((0, self.index.width), np.float32))
        index = self.index.replace(np.asarray(rows, np.int64), np.concatenate(parts))
        return type(self)(remaining, self.encoder, index)

    def with_examples(self, examples: Sequence[Example]) -> Self:
        """Return a retriever over `examples`; a store has their vectors already."""
        index = examples_of(examples).vector_index
        if index is not None:
            return type(self)(examples, self.encoder, index)
        return self.build(examples, self.encoder)

    def embeddings(self, rows: Sequence[int]) -> Vectors:
        """Return mu(x') of the examples in `rows`."""
        return self.index.take(np.asarray(rows, np.int64))
