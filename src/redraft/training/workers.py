"""The processes that train one network together; one process alone is the usual case.

Every worker has the same weights and draws the same batches, steps on its share of each, and adds
its gradients to those of the others before the update: a run of several workers is a run of one.
Knows no model, nor what a figure means.

The gradients are added here, after `backward`, and not by DistributedDataParallel. It hooks into
`forward`, and these networks are called by other names; and it takes the plain mean over workers,
while the loss is one over the tokens of the whole batch, of which no two workers have as many.
"""

import json
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

import torch
from safetensors.torch import load, save
from torch import Tensor, distributed, nn

from redraft.errors import WorkersError
from redraft.training.device import choose_device
from redraft.training.meeting import meet

if TYPE_CHECKING:
    from redraft.training.averaging import Weights
    from redraft.training.loop import StepLoss

Value = TypeVar("Value")

MEETING = timedelta(minutes=5)
"""How long workers wait for one another to be started."""

PATIENCE = timedelta(minutes=30)
"""How long one waits for another's step, evaluation or save before it gives it up for lost."""


class Workers:
    """One process alone: it has every row, and there is nobody to agree with."""

    rank = 0
    size = 1
    stop_signals: tuple[signal.Signals, ...] = (signal.SIGINT,)

    @property
    def is_first(self) -> bool:
        """Whether it is the one that evaluates, tells and writes."""
        return self.rank == 0

    def share(self, rows: Sequence[int]) -> Sequence[int]:
        """What of a batch this worker steps on."""
        return rows[self.rank :: self.size]

    def add_up(self, network: nn.Module, cost: "StepLoss") -> "StepLoss":  # noqa: ARG002
        """Make the gradients those of the whole batch; returns what the whole batch costs."""
        return cost

    def is_any(self, flag: bool) -> bool:
        """Whether it is so at any worker."""
        return flag

    def first(self, find: Callable[[], Value]) -> Value:
        """What the first worker finds, a value that JSON has; the others do not look."""
        return find()

    def first_tensors(self, find: Callable[[], "Weights"]) -> "Weights":
        """The tensors that the first worker finds, by their names."""
        return find()

    def wait(self) -> None:
        """Go on when all have come here."""


ALONE = Workers()


@dataclass(frozen=True)
class Places:
    """Where a worker stands among the others, as the launcher says."""

    rank: int
    size: int
    local_rank: int

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Places":
        """By the variables that `torchrun` sets; without them, one alone."""
        names = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}
        found = {name: environment.get(name, default) for name, default in names.items()}
        try:
            return cls(*map(int, found.values()))
        except ValueError as error:
            told = ", ".join(f"{name}={value}" for name, value in found.items())
            raise WorkersError(f"{told}: expected numbers; start workers with torchrun") from error


class ProcessGroup(Workers):
    """One of several processes, which are connected: gloo between CPUs, NCCL between GPUs."""

    # to stop a run torchrun passes on either; alone, SIGTERM ends a process at once
    stop_signals = (signal.SIGINT, signal.SIGTERM)

    def __init__(self, places: Places, device: torch.device) -> None:
        self.rank, self.size = places.rank, places.size
        self.device = device  # that tensors must be on to be sent

    def add_up(self, network: nn.Module, cost: "StepLoss") -> "StepLoss":
        """One sum of everything: each costs a wait for the slowest worker."""
        parameters = list(network.parameters())
        used = [parameter.grad is not None for parameter in parameters]
        gradients = [
            (
                parameter.grad if parameter.grad is not None else torch.zeros_like(parameter)
            ).flatten()
            for parameter in parameters
        ]
        shown = [value * cost.counted for value in cost.shown.values()]
        numbers = [*used, cost.counted, cost.tokens, cost.padded, *shown]
        tail = torch.tensor(numbers, dtype=torch.float, device=gradients[0].device)
        summed = self._sum(torch.cat([*(each * cost.counted for each in gradients), tail]))
        figures = summed[-len(numbers) :].tolist()
        counted, tokens, padded = map(int, figures[len(used) : len(used) + 3])
        at = 0
        for parameter, users in zip(parameters, figures, strict=False):
            mean = summed[at : at + parameter.numel()].view_as(parameter) / counted
            # what no worker used has no gradient, as it has none in one process
            parameter.grad = mean if users else None
            at += parameter.numel()
        means = [value / counted for value in figures[len(used) + 3 :]]
        figures_of_all = dict(zip(cost.shown, means, strict=True))
        return replace(cost, shown=figures_of_all, counted=counted, tokens=tokens, padded=padded)

    def is_any(self, flag: bool) -> bool:
        """Asked of all."""
        return bool(self._sum(torch.tensor([float(flag)])).item())

    def first(self, find: Callable[[], Value]) -> Value:
        """Sent as JSON."""
        text = json.dumps(find()).encode() if self.is_first else b""
        value: Value = json.loads(self._send(text))
        return value

    def first_tensors(self, find: Callable[[], "Weights"]) -> "Weights":
        """Sent as safetensors."""
        return load(self._send(save(find()) if self.is_first else b""))

    def wait(self) -> None:
        """Told by a sum of nothing."""
        self.is_any(False)

    def _sum(self, tensor: Tensor) -> Tensor:
        sent = tensor.to(self.device)
        with self._noticing_a_loss():
            distributed.all_reduce(sent)
        return sent.to(tensor.device)

    def _send(self, content: bytes) -> bytes:
        """The first worker's bytes: first how many, then the bytes."""
        length = torch.tensor([len(content)], device=self.device)
        with self._noticing_a_loss():
            distributed.broadcast(length, 0)
            sent = torch.zeros(int(length.item()), dtype=torch.uint8, device=self.device)
            if self.is_first:
                sent.copy_(torch.frombuffer(bytearray(content), dtype=torch.uint8))
            distributed.broadcast(sent, 0)
        return sent.cpu().numpy().tobytes()

    @contextmanager
    def _noticing_a_loss(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            raise WorkersError(
                f"worker {self.rank} of {self.size} has lost another ({_first_line(error)}); "
                "torchrun starts them again, and the same command goes on from the last save"
            ) from error


@contextmanager
def connected(
    environment: Mapping[str, str], device: str = "auto", *, meeting: timedelta = MEETING
) -> Iterator[Workers]:
    """This process among the workers that `torchrun` started; alone if it started none.

    Left without an error, it waits for the others, so that none is away if one must begin again.
    """
    places = Places.of(environment)
    if places.size == 1:
        yield ALONE
        return
    workers = ProcessGroup(places, _sending_device(places, device))
    _connect(workers, meeting)
    yield workers
    workers.wait()
    distributed.destroy_process_group()


def check_alike(workers: Workers, fingerprint: str) -> None:
    """An error at all workers if one was given other examples or settings than the first."""
    if workers.is_any(workers.first(lambda: fingerprint) != fingerprint):
        raise WorkersError(
            "the workers were given different pairs or settings; give every machine the same"
        )


def _sending_device(places: Places, name: str) -> torch.device:
    """The GPU of this worker, or the CPU, by way of which other devices send too."""
    if choose_device(name).type != "cuda":
        return torch.device("cpu")
    if places.local_rank >= torch.cuda.device_count():
        raise WorkersError(
            f"worker {places.local_rank} of this machine has no GPU of its own; "
            f"start {torch.cuda.device_count()} with --nproc-per-node, or fit with --device cpu"
        )
    torch.cuda.set_device(places.local_rank)
    return torch.device("cuda", places.local_rank)


def _connect(workers: ProcessGroup, meeting: timedelta) -> None:
    backend = "nccl" if workers.device.type == "cuda" else "gloo"
    if not (distributed.is_available() and distributed.is_backend_available(backend)):
        raise WorkersError(
            f"this PyTorch was built without {backend}, by which workers talk; install one that "
            "has it, or fit without torchrun"
        )
    from torch.distributed.rendezvous import rendezvous  # a build without any has no such module

    who = f"worker {workers.rank} of {workers.size}"
    try:
        store, rank, size = next(rendezvous("env://", timeout=meeting))
        name = meet(store, rank=rank, size=size, timeout=meeting)
        own = distributed.PrefixStore(name, store)  # type: ignore[attr-defined]
        distributed.init_process_group(
            backend, store=own, rank=rank, world_size=size, timeout=PATIENCE
        )
    except (RuntimeError, ValueError, TimeoutError) as error:
        raise WorkersError(
            f"{who} cannot reach the others ({_first_line(error)}); start all with torchrun, and "
            "if machines have several networks, name one in GLOO_SOCKET_IFNAME or "
            "NCCL_SOCKET_IFNAME"
        ) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
