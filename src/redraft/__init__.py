"""Retrieve the example that is easiest to edit into the answer, edit it, show the source."""

from typing import TYPE_CHECKING, Any

from redraft.data.example import Example
from redraft.data.pairs import read_pairs
from redraft.errors import RedraftError

if TYPE_CHECKING:
    from redraft.editing.candidate import Candidate
    from redraft.retrieval.prototype import Prototype
    from redraft.retrieve_and_edit import RetrieveAndEdit
    from redraft.serving.client import Client as Client

__version__ = "0.5.0"

__all__ = [
    "Candidate",
    "Example",
    "Prototype",
    "RedraftError",
    "RetrieveAndEdit",
    "read_pairs",
]

# Client is not in __all__: it needs an extra, and `from redraft import *` must not
_LAZY = {
    "Candidate": "redraft.editing.candidate",
    "Client": "redraft.serving.client",
    "Prototype": "redraft.retrieval.prototype",
    "RetrieveAndEdit": "redraft.retrieve_and_edit",
}


def __getattr__(name: str) -> Any:
    # what needs NumPy or more is imported when it is first asked for
    if name not in _LAZY:
        raise AttributeError(f"module 'redraft' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_LAZY[name]), name)
