"""Dense retrieval: the nearest examples are those whose mu(x') is closest to mu(x)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from redraft.errors import ModelError
from redraft.index.base import VECTORS, Index, Vectors, build_index, load_index
from redraft.index.ivfpq import index_of_file
from redraft.index.neighbours import Neighbours
from redraft.index.vector_file import VectorFile
from redraft.models import vmf
from redraft.retrieval.base import Retriever
from redraft.retrieval.encoder import DenseEncoder, TextEncoder
from redraft.storage.artifact import Artifact
from redraft.storage.checks import same
from redraft.storage.disk import chunks, remove_with, removed_on_error, scratch
from redraft.storage.examples import examples_of, is_on_disk, replaced
from redraft.types import Example, Input


class LearnedRetriever(Retriever):
    """An encoder and an index of the examples' unit vectors; distance ‖mu(x) − mu(x')‖²."""

    def __init__(self, examples: Sequence[Example], encoder: TextEncoder, index: Index) -> None:
        self.examples = examples
        self.encoder = encoder
        self.index = index

    @property
    def inverse_temperature(self) -> float:
        """C_kappa, the KL divergence per squared distance; the default for other encoders."""
        if not isinstance(self.encoder, DenseEncoder):
            return super().inverse_temperature
        return vmf.kl_factor(self.index.width, self.encoder.concentration)

    @classmethod
    def build(cls, examples: Sequence[Example], encoder: TextEncoder) -> Self:
        """Encode `examples` and return a retriever; vectors of examples on disk go to disk too."""
        base = examples_of(examples).folder
        if base is not None:
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

    def save(self, folder: Path) -> None:
        """Write the encoder and the index; only a `DenseEncoder` can be saved."""
        if not isinstance(self.encoder, DenseEncoder):
            kind = type(self.encoder).__name__
            raise ModelError(f"a custom encoder ({kind}) cannot be saved; build the model again")
        for name in ("encoder", "index"):
            (folder / name).mkdir()
        self.encoder.save(folder / "encoder")
        self.index.save(folder / "index")

    @classmethod
    def load(cls, artifact: Artifact, examples: Sequence[Example]) -> Self:
        """Return a saved retriever; check that each example has a vector of the right width."""
        encoder = DenseEncoder.load(artifact.part("encoder"))
        index_files = artifact.part("index")
        index = load_index(index_files)
        path = index_files.path(VECTORS)
        same(path, "examples and their vectors", (len(examples), len(index.vectors)))
        same(path, "the width of vectors", (encoder.network.config.embedding_dim, index.width))
        return cls(examples, encoder, index)


class TaskRetriever(LearnedRetriever):
    """The paper's task-dependent retriever: trained to reconstruct the output y."""

    name = "task"


class InputRetriever(LearnedRetriever):
    """The paper's ablation: trained to reconstruct the input x."""

    name = "input"
