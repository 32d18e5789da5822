"""Inputs by the million to vectors: the directions that a model's learned retriever gives them."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from redraft.bulk.shards import Row
from redraft.bulk.work import Result, Worker, model_digest, one_thread
from redraft.data.inputs import input_of
from redraft.errors import MissingExtraError, ModelError, PairsError

if TYPE_CHECKING:
    from redraft.retrieval.encoder import DirectionEncoder
    from redraft.retrieval.retriever import Retriever


@dataclass(frozen=True)
class Embedding:
    """The vector of each row, as Parquet with the file and the line that it is of."""

    model: str
    store: str | None = None

    name: ClassVar[str] = "embed"
    ending: ClassVar[str] = ".parquet"

    def identity(self) -> dict[str, Any]:
        """The model."""
        return {"model": model_digest(self.model)}

    def prepare(self) -> Worker:
        """Load the model's encoder."""
        from redraft.experiment import load_model

        _arrow()
        one_thread()
        encoder = learned_encoder(load_model(self.model, store=self.store).retriever, self.model)
        return lambda rows: _embed(rows, encoder)


def learned_encoder(retriever: "Retriever", model: str) -> "DirectionEncoder":
    """What gives inputs their vectors, in a model that learned it."""
    from redraft.retrieval.encoder import DirectionEncoder
    from redraft.retrieval.hybrid import HybridRetriever
    from redraft.retrieval.learned import LearnedRetriever

    learned = retriever.learned if isinstance(retriever, HybridRetriever) else retriever
    encoder = learned.encoder if isinstance(learned, LearnedRetriever) else None
    if not isinstance(encoder, DirectionEncoder):
        raise ModelError(
            f"{model}: the {retriever.name} retriever has no vectors; "
            "fit a model with --retriever task, input or hybrid"
        )
    return encoder


def _embed(rows: Sequence[Row], encoder: "DirectionEncoder") -> Result:
    pyarrow = _arrow()
    from pyarrow import parquet

    inputs = []
    for row in rows:
        try:
            inputs.append(input_of(row.value, encoder.fields))
        except PairsError as error:
            raise row.error(error) from error
    width = encoder.network.config.code_width
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
    # no dictionary and no statistics of the vectors: each of their values is another
    parquet.write_table(table, stream, use_dictionary=["file"], write_statistics=["line"])
    return Result(stream.getvalue(), len(rows))


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", extra="parquet", purpose="redraft embed") from error
    return pyarrow
