"""Job specifications: functions from the rows of a shard to the bytes of an output file.

A job spec is a dataclass of JSON values, so it can be sent to other machines and compared. Its
resources, such as a model, are loaded once per process.
"""

import hashlib
import importlib
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Protocol

from redraft.bulk.shards import Row
from redraft.data.inputs import input_of
from redraft.errors import BulkError, ModelError, PairsError
from redraft.storage.manifest import MANIFEST
from redraft.types import Input

JOB_SPECS = {
    "mine": "redraft.bulk.mine:MineJob",
    "embed": "redraft.bulk.embed:EmbedJob",
    "predict": "redraft.bulk.predict:PredictJob",
}
"""All job types by name, as MODULE:CLASS: a worker imports only the one it needs."""


@dataclass(frozen=True)
class Result:
    """The content of an output shard, its number of rows, and the skipped inputs."""

    content: bytes
    rows: int
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True)
class ShardWorker:
    """A job with its resources loaded: `work` turns the rows of a shard into its output.

    `check` is a cheap test that raises `PairsError` for a row that `work` would reject.
    """

    work: Callable[[Sequence[Row]], Result]
    check: Callable[[Row], object]


class JobSpec(Protocol):
    """A job type; implemented by dataclasses of JSON values."""

    name: ClassVar[str]
    ending: ClassVar[str]

    def identity(self) -> dict[str, Any]:
        """Return everything besides the inputs that the output depends on."""
        ...

    def prepare(self) -> ShardWorker:
        """Load the resources and return a worker."""
        ...


def input_of_row(row: Row, fields: Sequence[str]) -> Input:
    """Return the input in `row` with all `fields` of a model; errors name the row."""
    try:
        return input_of(row.value, fields)
    except PairsError as error:
        raise row.error(error) from error
    except RecursionError as error:
        raise row.error("JSON nested too deeply") from error


def model_digest(folder: str) -> str:
    """Return a digest of the model's manifest, which holds the digests of all its files."""
    path = Path(folder, MANIFEST)
    if not path.is_file():
        raise ModelError(
            f"{folder}: not a model (no {MANIFEST}); name a folder `redraft fit` wrote"
        )
    return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()


def one_thread() -> None:
    """Let torch, if a model has loaded it, use one thread: the last bits of sums depend on it."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)


def to_text(work: JobSpec) -> str:
    """Serialise a job spec with its identity, for a worker in another process."""
    return json.dumps([work.name, asdict(work), work.identity()])  # type: ignore[call-overload]


@lru_cache(maxsize=1)
def worker_of(text: str) -> ShardWorker:
    """Return the worker of a job spec serialised by `to_text`; cached per process."""
    name, values, identity = json.loads(text)
    module, _, kind = JOB_SPECS[name].partition(":")
    work: JobSpec = getattr(importlib.import_module(module), kind)(**values)
    worker = work.prepare()
    current = json.loads(json.dumps(work.identity()))
    differs = [name for name in current if current[name] != identity[name]]
    if differs:
        raise BulkError(
            f"{values.get(differs[0], differs[0])}: changed since the job started; "
            "start it again in another folder"
        )
    return worker
