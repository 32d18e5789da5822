"""What can be done to a shard: its rows in, the bytes of an output file out.

Work is described by plain values, so that it can be told to another machine and told from other
work. What it needs, such as a model, it loads once in each process.
"""

import hashlib
import importlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Protocol

from redraft.artifact import MANIFEST
from redraft.bulk.shards import Row
from redraft.errors import BulkError, ModelError

WORKS = {
    "mine": "redraft.bulk.mining:Mining",
    "embed": "redraft.bulk.embedding:Embedding",
    "predict": "redraft.bulk.predicting:Predicting",
}
"""Every kind of work; a worker imports what it does and nothing else."""


@dataclass(frozen=True)
class Result:
    """The bytes of an output shard, its rows, and what of the input had to be passed over."""

    content: bytes
    rows: int
    skipped: tuple[str, ...] = ()


Worker = Callable[[Sequence[Row]], Result]
"""Works through the rows of one shard after another."""


class Work(Protocol):
    """One kind of work; a dataclass of values that JSON has."""

    name: ClassVar[str]
    ending: ClassVar[str]

    def identity(self) -> dict[str, Any]:
        """What the output depends on besides the inputs."""
        ...

    def prepare(self) -> Worker:
        """Load what is needed."""
        ...


def model_digest(folder: str) -> str:
    """A digest of a model: its manifest has those of all its files."""
    path = Path(folder, MANIFEST)
    if not path.is_file():
        raise ModelError(
            f"{folder}: not a model (no {MANIFEST}); name a folder `redraft fit` wrote"
        )
    return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()


def one_thread() -> None:
    """Compute as every worker does: sums over threads are others in their last bits."""
    import torch

    torch.set_num_threads(1)


def to_text(work: Work) -> str:
    """The work for a worker of another process, and by what it tells that it has the same."""
    return json.dumps([work.name, asdict(work), work.identity()])  # type: ignore[call-overload]


@lru_cache(maxsize=1)
def worker_of(text: str) -> Worker:
    """The work that `to_text` told, prepared once in a process."""
    name, values, identity = json.loads(text)
    module, _, kind = WORKS[name].partition(":")
    work: Work = getattr(importlib.import_module(module), kind)(**values)
    worker = work.prepare()
    found = json.loads(json.dumps(work.identity()))
    differs = [each for each in found if found[each] != identity[each]]
    if differs:
        raise BulkError(
            f"{values.get(differs[0], differs[0])}: is not what it was when the job began; "
            "begin it anew in another folder"
        )
    return worker
