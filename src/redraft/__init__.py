"""Retrieve and edit: answer an input by editing the output of a similar example."""

from typing import TYPE_CHECKING, Any

from redraft.errors import RedraftError

if TYPE_CHECKING:
    from redraft.data.pairs import read_pairs
    from redraft.data.tables import Columns
    from redraft.lm.selection import FewShotSelector as FewShotSelector
    from redraft.lm.selection import select
    from redraft.model import RetrieveAndEdit
    from redraft.predictor import Prediction, PredictOptions, Predictor
    from redraft.server.client import Client as Client
    from redraft.types import Candidate, Example, Prototype

__version__ = "0.6.0"

__all__ = [
    "Candidate",
    "Columns",
    "Example",
    "PredictOptions",
    "Prediction",
    "Predictor",
    "Prototype",
    "RedraftError",
    "RetrieveAndEdit",
    "read_pairs",
    "select",
]

# Client is not in __all__: it needs an extra, which `from redraft import *` must not require;
# FewShotSelector is `select` for several inputs
_LAZY = {
    "Candidate": "redraft.types",
    "Client": "redraft.server.client",
    "Columns": "redraft.data.tables",
    "Example": "redraft.types",
    "FewShotSelector": "redraft.lm.selection",
    "PredictOptions": "redraft.predictor",
    "Prediction": "redraft.predictor",
    "Predictor": "redraft.predictor",
    "Prototype": "redraft.types",
    "RetrieveAndEdit": "redraft.model",
    "read_pairs": "redraft.data.pairs",
    "select": "redraft.lm.selection",
}


def __getattr__(name: str) -> Any:
    # imported lazily: NumPy takes a while, and Ctrl-C must work from the start of a command
    if name not in _LAZY:
        raise AttributeError(f"module 'redraft' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_LAZY[name]), name)
