"""Checkpoints of a training run: weights, optimiser state and progress, replaced atomically."""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from redraft.errors import ModelError
from redraft.storage.artifact import Artifact, open_artifact
from redraft.storage.artifact_writer import write_artifact
from redraft.storage.examples import examples_of
from redraft.training.ema import Weights
from redraft.training.process_group import ProcessGroup
from redraft.types import Example


def fingerprint(examples: Sequence[Example], settings: Sequence[Any]) -> str:
    """Return a digest of everything that determines the weights: examples and settings."""
    digest = hashlib.sha256(json.dumps(settings).encode())
    for identity in examples_of(examples).identities:
        digest.update(identity.encode())
    return digest.hexdigest()


@dataclass(frozen=True)
class Progress:
    """Progress of a run: with the weights, enough to resume to an identical result."""

    step: int = 0
    best_step: int = 0
    best_score: float = -math.inf
    seconds: float = 0.0
    core_seconds: float = 0.0


@dataclass(frozen=True)
class Checkpoint:
    """A folder with the latest state of a run, if one was saved."""

    folder: Path
    fingerprint: str

    def exists(self) -> bool:
        """Return True if a state was saved."""
        return (self.folder / "manifest.json").exists()

    def save(
        self,
        network: nn.Module,
        optimiser: torch.optim.Optimizer,
        progress: Progress,
        *,
        best: Weights,
        ema: Weights,
    ) -> None:
        """Write the state atomically: a kill leaves either the previous state or this one.

        `best` are the weights that scored best so far, `ema` the averaged ones.
        """
        with write_artifact(self.folder) as staging:
            save_file(dict(network.state_dict()), staging / "weights.safetensors")
            save_file(best, staging / "best.safetensors")
            save_file(ema, staging / "ema.safetensors")
            save_file(_optimiser_tensors(optimiser), staging / "optimiser.safetensors")
            text = json.dumps({"fingerprint": self.fingerprint, **asdict(progress)}, indent=2)
            (staging / "progress.json").write_text(text + "\n", encoding="utf-8")

    def load(
        self,
        network: nn.Module,
        optimiser: torch.optim.Optimizer,
        *,
        workers: ProcessGroup,
    ) -> tuple[Progress, Weights, Weights]:
        """Restore network and optimiser; return the progress, the best and the averaged weights.

        Only the main worker reads the files: the others need no access to its disk.
        """

        @cache
        def artifact() -> Artifact:
            return open_artifact(self.folder)

        def tensors(name: str) -> Weights:
            return workers.broadcast_tensors(
                lambda: load_file(artifact().path(f"{name}.safetensors"))
            )

        values = workers.broadcast(lambda: self._progress(artifact()))
        network.load_state_dict(tensors("weights"))
        _restore_optimiser(optimiser, tensors("optimiser"))
        device = next(network.parameters()).device
        best, ema = (
            {name: tensor.to(device) for name, tensor in tensors(file).items()}
            for file in ("best", "ema")
        )
        return Progress(**values), best, ema

    def _progress(self, artifact: Artifact) -> dict[str, Any]:
        values: dict[str, Any] = artifact.json("progress.json")
        if values.pop("fingerprint") != self.fingerprint:
            raise ModelError(
                f"{self.folder}: belongs to a training run on other pairs or settings; "
                "delete the folder to start over"
            )
        return values


def _optimiser_tensors(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return Adam's moments and step counts by parameter index."""
    state = optimiser.state_dict()["state"]
    return {
        f"{index}.{name}": tensor.contiguous()
        for index, entries in state.items()
        for name, tensor in entries.items()
    }


def _restore_optimiser(optimiser: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        index, name = key.split(".", 1)
        state.setdefault(int(index), {})[name] = tensor
    optimiser.load_state_dict({**optimiser.state_dict(), "state": state})
