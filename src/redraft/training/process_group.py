"""The processes that train together: one, or several that `torchrun` started.

Knows no torch: `distributed` has the group of several processes.
"""

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from redraft.errors import DistributedError

if TYPE_CHECKING:
    from torch import nn

    from redraft.training.ema import Weights
    from redraft.training.trainer import StepLoss

Value = TypeVar("Value")

RENDEZVOUS_TIMEOUT = timedelta(minutes=5)
"""Time for all workers to start."""


class ProcessGroup:
    """A single process, in which every collective operation is the identity."""

    rank = 0
    size = 1
    stop_signals: tuple[signal.Signals, ...] = (signal.SIGINT,)

    @property
    def is_main(self) -> bool:
        """True in the worker that evaluates, logs and writes."""
        return self.rank == 0

    def shard(self, rows: Sequence[int]) -> Sequence[int]:
        """Return the rows of a batch that this worker processes."""
        return rows[self.rank :: self.size]

    def all_reduce(self, network: "nn.Module", result: "StepLoss") -> "StepLoss":  # noqa: ARG002
        """Average gradients over the whole batch in place; return the loss of the whole batch."""
        return result

    def any(self, flag: bool) -> bool:
        """Return True if `flag` is set in any worker."""
        return flag

    def broadcast(self, compute: Callable[[], Value]) -> Value:
        """Call `compute` in the main worker and return its result, a JSON value, in all."""
        return compute()

    def broadcast_tensors(self, compute: Callable[[], "Weights"]) -> "Weights":
        """Call `compute` in the main worker and return its named tensors in all."""
        return compute()


SINGLE_PROCESS = ProcessGroup()


@dataclass(frozen=True)
class Ranks:
    """The ranks of a worker, as set by the launcher."""

    rank: int
    size: int
    local_rank: int

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Ranks":
        """Read the variables that `torchrun` sets; the default is a single process."""
        defaults = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}
        values = {name: environment.get(name, default) for name, default in defaults.items()}
        try:
            return cls(*map(int, values.values()))
        except ValueError as error:
            listed = ", ".join(f"{name}={value}" for name, value in values.items())
            raise DistributedError(
                f"{listed}: expected numbers; start workers with torchrun"
            ) from error


@contextmanager
def connected(
    environment: Mapping[str, str], device: str = "auto", *, timeout: timedelta = RENDEZVOUS_TIMEOUT
) -> Iterator[ProcessGroup]:
    """Connect to the other workers that `torchrun` started; without them, a single process."""
    ranks = Ranks.from_environment(environment)
    if ranks.size == 1:
        yield SINGLE_PROCESS
        return
    from redraft.training.distributed import torch_workers

    with torch_workers(ranks, device, timeout=timeout) as workers:
        yield workers


def check_alike(workers: ProcessGroup, fingerprint: str) -> None:
    """Raise in all workers if the fingerprints of examples and settings differ."""
    if workers.any(workers.broadcast(lambda: fingerprint) != fingerprint):
        raise DistributedError(
            "the workers were given different pairs or settings; give every machine the same"
        )
