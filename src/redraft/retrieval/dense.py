"""Dense retrieval: the nearest examples are those whose mu(x') is closest to mu(x)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

from redraft.errors import ModelError
from redraft.index.base import VECTORS, load_index
from redraft.models import vmf
from redraft.retrieval.encoder import DenseEncoder
from redraft.retrieval.vectors import VectorRetriever
from redraft.storage.artifact import Artifact
from redraft.storage.checks import same
from redraft.types import Example


class LearnedRetriever(VectorRetriever):
    """A retriever whose encoder was trained on the pairs."""

    @property
    def inverse_temperature(self) -> float:
        """C_kappa, the KL divergence per squared distance; the default for other encoders."""
        if not isinstance(self.encoder, DenseEncoder):
            return super().inverse_temperature
        return vmf.kl_factor(self.index.width, self.encoder.concentration)

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
