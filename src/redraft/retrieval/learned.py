"""Retrieval by learned directions: nearest are the examples whose mu(x') is closest to mu(x)."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from redraft.artifact import Artifact
from redraft.data.example import Example, Input
from redraft.data.filed import FiledExamples, chunks, remove_with, removed_on_error, scratch
from redraft.errors import ModelError
from redraft.models import vmf
from redraft.retrieval.compressed import index_of_file, open_index
from redraft.retrieval.encoder import DirectionEncoder, Encoder
from redraft.retrieval.examples import KeptExamples, exchanged
from redraft.retrieval.index import Index, Vectors, build_index
from redraft.retrieval.neighbours import Neighbours
from redraft.retrieval.retriever import Retriever
from redraft.retrieval.vector_file import VectorFile

if TYPE_CHECKING:
    from typing_extensions import Self


class LearnedRetriever(Retriever):
    """A direction encoder and an index of the examples' directions; distance ‖mu(x) − mu(x')‖²."""

    def __init__(self, examples: Sequence[Example], encoder: Encoder, index: Index) -> None:
        self.examples = examples
        self.encoder = encoder
        self.index = index

    @property
    def sharpness(self) -> float:
        """C_kappa: the density of the noise falls with the squared distance."""
        if not isinstance(self.encoder, DirectionEncoder):
            return super().sharpness
        return vmf.kl_factor(self.index.width, self.encoder.concentration)

    @classmethod
    def build(cls, examples: Sequence[Example], encoder: Encoder) -> "Self":
        """The retriever over these examples; the vectors of many go to a file beside theirs."""
        if isinstance(examples, FiledExamples):
            parts = (encoder.encode([each.x for each in part]) for part in chunks(examples))
            folder = scratch(examples.folder)
            with removed_on_error(folder):
                index = index_of_file(VectorFile.write(folder, parts, count=len(examples)))
            remove_with(index, folder)
            return cls(examples, encoder, index)
        vectors = encoder.encode([example.x for example in examples])
        return cls(examples, encoder, build_index(vectors))

    def search(
        self, inputs: Sequence[Input], k: int, *, allowed: NDArray[np.bool_] | None = None
    ) -> Neighbours:
        """The k nearest rows for each input."""
        return self.index.search(self.encoder.encode(inputs), k, allowed=allowed)

    def add(self, examples: Sequence[Example]) -> "Self":
        """The retriever over these examples too; only they are encoded."""
        return self.replace([], examples)

    def remove(self, rows: Sequence[int]) -> "Self":
        """The retriever without these examples; nothing is encoded again."""
        index = self.index.remove(np.asarray(rows, np.int64))
        return type(self)(exchanged(self.examples, rows, []), self.encoder, index)

    def replace(self, rows: Sequence[int], examples: Sequence[Example]) -> "Self":
        """The retriever over other examples: only new ones are encoded, the index is built once."""
        known = exchanged(self.examples, rows, examples)
        if isinstance(examples, FiledExamples) and isinstance(known, FiledExamples):
            return self.build(known, self.encoder)  # too many to add vectors in memory
        parts = [self.encoder.encode([each.x for each in part]) for part in chunks(examples)]
        vectors = np.concatenate(parts) if parts else self.encoder.encode([])
        index = self.index.replace(np.asarray(rows, np.int64), vectors)
        return type(self)(known, self.encoder, index)

    def over(self, examples: Sequence[Example]) -> "Self":
        """The retriever over other examples; those that have an index are not encoded."""
        if isinstance(examples, KeptExamples):
            return type(self)(examples, self.encoder, examples.vector_index)
        return self.build(examples, self.encoder)

    def directions(self, rows: Sequence[int]) -> Vectors:
        """mu(x') of these examples."""
        return self.index.take(np.asarray(rows, np.int64))

    def save(self, folder: Path) -> None:
        """Write the encoder and the index; only a learned encoder can be written as data."""
        if not isinstance(self.encoder, DirectionEncoder):
            kind = type(self.encoder).__name__
            raise ModelError(f"an encoder of your own ({kind}) cannot be saved; build it anew")
        for name in ("encoder", "index"):
            (folder / name).mkdir()
        self.encoder.save(folder / "encoder")
        self.index.save(folder / "index")

    @classmethod
    def load(cls, artifact: Artifact, examples: Sequence[Example]) -> "Self":
        """The retriever that was saved."""
        encoder = DirectionEncoder.load(artifact.part("encoder"))
        return cls(examples, encoder, open_index(artifact.part("index")))


class TaskRetriever(LearnedRetriever):
    """The paper's: its directions were learned by reconstructing the output y."""

    name = "task"


class InputRetriever(LearnedRetriever):
    """The paper's ablation: its directions were learned by reconstructing the input x."""

    name = "input"
