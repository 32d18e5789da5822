"""A network in an ONNX file, run by onnxruntime: token ids to states. Needs `redraft[encoders]`."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from redraft.errors import MissingExtraError, ModelError
from redraft.storage.checks import damaged

POOLED = "sentence_embedding"
"""The name of an output that has a vector per text already."""

IDS, MASK, SEGMENTS = "input_ids", "attention_mask", "token_type_ids"

LARGEST_GRAPH = 1 << 31
"""Bytes of a graph with its weights: the limit of the format."""


class OnnxNetwork:
    """A session over the bytes of a graph, so that weights in other files are never read."""

    def __init__(self, graph: bytes) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3  # errors are raised
        self.graph = graph
        self.session = onnxruntime.InferenceSession(
            graph, options, providers=["CPUExecutionProvider"]
        )
        self.inputs = [node.name for node in self.session.get_inputs()]
        names = [node.name for node in self.session.get_outputs()]
        self.output = POOLED if POOLED in names else names[0]

    @classmethod
    def read(cls, path: Path) -> "OnnxNetwork":
        """Return the network in the file at `path`."""
        try:
            import onnxruntime  # noqa: F401
        except ModuleNotFoundError as error:
            raise MissingExtraError("onnxruntime", extra="encoders", purpose=str(path)) from error
        if path.stat().st_size > LARGEST_GRAPH:
            raise damaged(path, f"more than {LARGEST_GRAPH:,} bytes")
        try:
            network = cls(path.read_bytes())
        except Exception as error:  # onnxruntime raises bare exceptions
            raise damaged(path, "not an ONNX graph with its weights in one file") from error
        if IDS not in network.inputs or set(network.inputs) - {IDS, MASK, SEGMENTS}:
            raise damaged(path, f"its inputs must be {IDS}, {MASK} and {SEGMENTS}")
        return network

    def states(self, ids: NDArray[np.int64], mask: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Return a state per token (B, T, D), or a vector per row (B, D)."""
        values = {IDS: ids, MASK: mask.astype(np.int64), SEGMENTS: np.zeros_like(ids)}
        given = {name: values[name] for name in self.inputs}
        try:
            return np.asarray(self.session.run([self.output], given)[0], np.float32)
        except Exception as error:  # onnxruntime raises bare exceptions
            raise ModelError(
                "the encoder's ONNX graph cannot read its tokens; export graph and tokenizer again"
            ) from error
