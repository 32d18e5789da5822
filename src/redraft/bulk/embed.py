"""Embed inputs in bulk with a model's learned retriever."""

import importlib.util
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from redraft.bulk.shards import Row
from redraft.bulk.work import Result, ShardWorker, input_of_row, model_digest, one_thread
from redraft.errors import MissingExtraError, ModelError

if TYPE_CHECKING:
    from redraft.retrieval.base import Retriever
    from redraft.retrieval.encoder import DenseEncoder


@dataclass(frozen=True)
class EmbedJob:
    """Compute the embedding of each row; writes Parquet with columns file, line and vector."""

    model: str
    store: str | None = None

    name: ClassVar[str] = "embed"
    ending: ClassVar[str] = ".parquet"

    def identity(self) -> dict[str, Any]:
        """Return the digest of the model."""
        return {"model": model_digest(self.model)}

    def prepare(self) -> ShardWorker:
        """Load the model's encoder."""
        from redraft.persistence import load_model

        if importlib.util.find_spec("pyarrow") is None:
            raise MissingExtraError("pyarrow", extra="parquet", purpose="redraft embed")
        encoder = _learned_encoder(load_model(self.model, store=self.store).retriever, self.model)
        one_thread()
        return ShardWorker(
            lambda rows: _embed(rows, encoder), lambda row: input_of_row(row, encoder.fields)
        )


def _learned_encoder(retriever: "Retriever", model: str) -> "DenseEncoder":
    """Return the dense encoder of a learned retriever; raise `ModelError` for other retrievers."""
    encoder = getattr(retriever, "encoder", None)
    if encoder is not None:
        from redraft.retrieval.encoder import DenseEncoder

        if isinstance(encoder, DenseEncoder):
            return encoder
    raise ModelError(
        f"{model}: the {retriever.name} retriever has no vectors; "
        "fit a model with --retriever task or input"
    )


def _embed(rows: Sequence[Row], encoder: "DenseEncoder") -> Result:
    import pyarrow
    from pyarrow import parquet

    inputs = [input_of_row(row, encoder.fields) for row in rows]
    width = encoder.network.config.embedding_dim
    vectors = encoder.encode(inputs).reshape(-1)  # (B · D,)
    values = pyarrow.array(vectors, pyarrow.float32())
    table = pyarrow.table(
        {
            "file": pyarrow.array([row.file for row in rows], pyarrow.string()),
            "line": pyarrow.array([row.line for row in rows], pyarrow.int64()),
            "vector": pyarrow.FixedSizeListArray.from_arrays(values, width),
        }
    )
    stream = io.BytesIO()
    # vector values are all distinct: a dictionary or statistics would only cost space
    parquet.write_table(table, stream, use_dictionary=["file"], write_statistics=["line"])
    return Result(stream.getvalue(), len(rows))
