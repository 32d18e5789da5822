"""Data-parallel training in several processes.

All workers have the same weights and derive the same batches from the seed. Each computes gradients
on its shard, and they are all-reduced once per step, so that the result equals that of a single
process. Knows no model.

DistributedDataParallel does not fit: it hooks into `forward`, while these networks are called by
other methods, and it averages over workers, while the loss is a mean over the tokens of the whole
batch, which are distributed unevenly.
"""

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import torch
from safetensors.torch import load, save
from torch import Tensor, distributed, nn

from redraft.errors import DistributedError
from redraft.training.device import choose_device
from redraft.training.process_group import ProcessGroup, Ranks, Value
from redraft.training.rendezvous import join_session

if TYPE_CHECKING:
    from redraft.training.ema import Weights
    from redraft.training.trainer import StepLoss

COLLECTIVE_TIMEOUT = timedelta(minutes=30)
"""Time to wait for a step, an evaluation or a save of another worker."""


class TorchProcessGroup(ProcessGroup):
    """One of several connected processes: gloo between CPUs, NCCL between GPUs."""

    # torchrun forwards either to stop a run; in a single process SIGTERM ends it at once
    stop_signals = (signal.SIGINT, signal.SIGTERM)

    def __init__(self, ranks: Ranks, device: torch.device) -> None:
        self.rank, self.size = ranks.rank, ranks.size
        self.device = device  # of the tensors that are sent

    def all_reduce(self, network: nn.Module, result: "StepLoss") -> "StepLoss":
        """Reduce gradients, counts and metrics in one sum: each sum waits for the slowest."""
        parameters = list(network.parameters())
        used = [parameter.grad is not None for parameter in parameters]
        gradients = [
            (
                parameter.grad if parameter.grad is not None else torch.zeros_like(parameter)
            ).flatten()
            for parameter in parameters
        ]
        weight = result.token_count
        metrics = [value * weight for value in result.metrics.values()]
        numbers = [*used, weight, result.tokens, result.padded, *metrics]
        tail = torch.tensor(numbers, dtype=torch.float, device=gradients[0].device)
        summed = self._sum(torch.cat([*(gradient * weight for gradient in gradients), tail]))
        sums = summed[-len(numbers) :].tolist()
        total, tokens, padded = map(int, sums[len(used) : len(used) + 3])
        start = 0
        for parameter, users in zip(parameters, sums, strict=False):
            mean = summed[start : start + parameter.numel()].view_as(parameter) / total
            # No gradient for a parameter that no worker used, as in a single process.
            parameter.grad = mean if users else None
            start += parameter.numel()
        means = [value / total for value in sums[len(used) + 3 :]]
        means_by_name = dict(zip(result.metrics, means, strict=True))
        return replace(
            result, metrics=means_by_name, token_count=total, tokens=tokens, padded=padded
        )

    def any(self, flag: bool) -> bool:
        """Sum the flags of all workers."""
        return bool(self._sum(torch.tensor([float(flag)])).item())

    def broadcast(self, compute: Callable[[], Value]) -> Value:
        """Send the value as JSON."""
        text = json.dumps(compute()).encode() if self.is_main else b""
        value: Value = json.loads(self._broadcast_bytes(text))
        return value

    def broadcast_tensors(self, compute: Callable[[], "Weights"]) -> "Weights":
        """Send the tensors as safetensors."""
        return load(self._broadcast_bytes(save(compute()) if self.is_main else b""))

    def _sum(self, tensor: Tensor) -> Tensor:
        sent = tensor.to(self.device)
        with self._reporting_lost_workers():
            distributed.all_reduce(sent)
        return sent.to(tensor.device)

    def _broadcast_bytes(self, content: bytes) -> bytes:
        """Broadcast the length and then the bytes of the main worker."""
        length = torch.tensor([len(content)], device=self.device)
        with self._reporting_lost_workers():
            distributed.broadcast(length, 0)
            sent = torch.zeros(int(length.item()), dtype=torch.uint8, device=self.device)
            if self.is_main:
                sent.copy_(torch.frombuffer(bytearray(content), dtype=torch.uint8))
            distributed.broadcast(sent, 0)
        return sent.cpu().numpy().tobytes()

    @contextmanager
    def _reporting_lost_workers(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            raise DistributedError(
                f"worker {self.rank} of {self.size} has lost another ({_first_line(error)}); "
                "torchrun starts them again, and the same command goes on from the last save"
            ) from error


@contextmanager
def torch_workers(ranks: Ranks, device: str, *, timeout: timedelta) -> Iterator[ProcessGroup]:
    """Connect to the other workers that `torchrun` started.

    On a normal exit it waits for the others, so that all are present if one has to be restarted.
    """
    workers = TorchProcessGroup(ranks, _communication_device(ranks, device))
    _connect(workers, timeout)
    yield workers
    workers.any(False)  # a barrier: blocks until all have reached it
    distributed.destroy_process_group()


def _communication_device(ranks: Ranks, name: str) -> torch.device:
    """Return the GPU of this worker, or the CPU for all other devices."""
    if choose_device(name).type != "cuda":
        return torch.device("cpu")
    if ranks.local_rank >= torch.cuda.device_count():
        raise DistributedError(
            f"worker {ranks.local_rank} of this machine has no GPU of its own; "
            f"start {torch.cuda.device_count()} with --nproc-per-node, or fit with --device cpu"
        )
    torch.cuda.set_device(ranks.local_rank)
    return torch.device("cuda", ranks.local_rank)


def _connect(workers: TorchProcessGroup, timeout: timedelta) -> None:
    backend = "nccl" if workers.device.type == "cuda" else "gloo"
    if not (distributed.is_available() and distributed.is_backend_available(backend)):
        raise DistributedError(
            f"this PyTorch was built without {backend}, which workers need; install one that "
            "has it, or fit without torchrun"
        )
    # Imported here, as builds without torch.distributed lack the module.
    from torch.distributed.rendezvous import rendezvous

    who = f"worker {workers.rank} of {workers.size}"
    try:
        store, rank, size = next(rendezvous("env://", timeout=timeout))
        session = join_session(store, rank=rank, size=size, timeout=timeout)
        session_store = distributed.PrefixStore(session, store)  # type: ignore[attr-defined]
        distributed.init_process_group(
            backend, store=session_store, rank=rank, world_size=size, timeout=COLLECTIVE_TIMEOUT
        )
    except (RuntimeError, ValueError, TimeoutError) as error:
        raise DistributedError(
            f"{who} cannot reach the others ({_first_line(error)}); start all with torchrun, and "
            "if machines have several networks, name one in GLOO_SOCKET_IFNAME or "
            "NCCL_SOCKET_IFNAME"
        ) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
