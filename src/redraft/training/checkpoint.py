"""A training run on disk: weights, optimiser and progress, replaced as one; a log beside them."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from redraft.artifact import Artifact, open_artifact, write_artifact
from redraft.data.example import Example
from redraft.data.filed import identities
from redraft.errors import ModelError
from redraft.training.averaging import Weights
from redraft.training.workers import ALONE, Workers


def fingerprint(examples: Iterable[Example], settings: Sequence[Any]) -> str:
    """A digest of all that decides the weights: what is trained on, and how."""
    digest = hashlib.sha256(json.dumps(settings).encode())
    for identity in identities(examples):
        digest.update(identity.encode())
    return digest.hexdigest()


@dataclass(frozen=True)
class Progress:
    """How far a run has come: enough, with the weights, to go on to the same end."""

    step: int
    best_step: int
    best_score: float
    seconds: float
    core_seconds: float = 0.0


@dataclass(frozen=True)
class Kept:
    """Weights beside those that are trained: the best so far, and the mean of the last steps."""

    best: Weights
    average: Weights


@dataclass(frozen=True)
class Checkpoint:
    """A folder that holds the last state of a run, if there is one."""

    folder: Path
    fingerprint: str

    def exists(self) -> bool:
        """Whether a run was begun here."""
        return (self.folder / "manifest.json").exists()

    def save(
        self,
        network: nn.Module,
        optimiser: torch.optim.Optimizer,
        kept: Kept,
        progress: Progress,
    ) -> None:
        """Write the state in one step: a kill leaves the state before or this one."""
        with write_artifact(self.folder) as staging:
            save_file(dict(network.state_dict()), staging / "weights.safetensors")
            save_file(kept.best, staging / "best.safetensors")
            save_file(kept.average, staging / "average.safetensors")
            save_file(_optimiser_tensors(optimiser), staging / "optimiser.safetensors")
            text = json.dumps({"fingerprint": self.fingerprint, **asdict(progress)}, indent=2)
            (staging / "progress.json").write_text(text + "\n", encoding="utf-8")

    def load(
        self, network: nn.Module, optimiser: torch.optim.Optimizer, *, workers: Workers = ALONE
    ) -> tuple[Kept, Progress]:
        """Put the state back; returns what is kept beside it and the progress.

        Of several workers the first reads: the others need not see its disk.
        """

        @cache
        def artifact() -> Artifact:
            return open_artifact(self.folder)

        def tensors(name: str) -> Weights:
            return workers.first_tensors(lambda: load_file(artifact().path(f"{name}.safetensors")))

        values = workers.first(lambda: self._progress(artifact()))
        network.load_state_dict(tensors("weights"))
        _restore_optimiser(optimiser, tensors("optimiser"))
        device = next(network.parameters()).device
        kept = (
            {name: tensor.to(device) for name, tensor in tensors(file).items()}
            for file in ("best", "average")
        )
        return Kept(*kept), Progress(**values)

    def _progress(self, artifact: Artifact) -> dict[str, Any]:
        values: dict[str, Any] = artifact.json("progress.json")
        if values.pop("fingerprint") != self.fingerprint:
            raise ModelError(
                f"{self.folder}: holds a training of other pairs or settings; "
                "remove the folder to begin anew"
            )
        return values


def _optimiser_tensors(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Adam's moments and counts, by the number of their parameter."""
    state = optimiser.state_dict()["state"]
    return {
        f"{number}.{name}": tensor.contiguous()
        for number, entries in state.items()
        for name, tensor in entries.items()
    }


def _restore_optimiser(optimiser: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        number, name = key.split(".", 1)
        state.setdefault(int(number), {})[name] = tensor
    optimiser.load_state_dict({**optimiser.state_dict(), "state": state})
