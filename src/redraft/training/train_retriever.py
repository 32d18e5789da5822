"""Training the retriever's encoder: reconstruct a target from a noisy direction of x."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from redraft.data.example import Example, Input, input_text
from redraft.data.numbering import Numbering
from redraft.data.sequences import Sequences, bucket
from redraft.models import vmf
from redraft.models.noisy_autoencoder import NoisyAutoencoder
from redraft.training.loop import StepLoss, Task

LONGEST_FIELD = 128
LONGEST_TARGET = 150

Vectors = NDArray[np.float32]

Target = Callable[[Example], str]


def task_target(example: Example) -> str:
    """The output: near are inputs whose outputs are alike."""
    return example.y


def input_target(example: Example) -> str:
    """The input itself: near are inputs that are alike."""
    return input_text(example.x)


@dataclass(frozen=True)
class NumberedExamples:
    """Examples as token numbers: their fields, and the target to reconstruct."""

    fields: Sequence[Sequence[Sequence[int]]]  # example, field, token
    targets: Sequence[Sequence[int]]

    @classmethod
    def of(
        cls, examples: Sequence[Example], numbering: Numbering, target: Target
    ) -> "NumberedExamples":
        """The examples' fields in the order of their first, and their targets."""
        names = list(examples[0].x)
        return cls(
            [number_fields(example.x, names, numbering) for example in examples],
            [numbering.target(target(each), longest=LONGEST_TARGET) for each in examples],
        )


def number_fields(x: Input, names: Sequence[str], numbering: Numbering) -> list[list[int]]:
    """The fields of an input as token numbers, in this order."""
    return [numbering.numbers(x.get(name, ""), longest=LONGEST_FIELD) for name in names]


class RetrieverTask(Task):
    """The paper's first step: maximise E[log p(target | v)], v ~ vMF(mu(x), kappa)."""

    def __init__(
        self,
        network: NoisyAutoencoder,
        train: NumberedExamples,
        judge: Callable[[], dict[str, float]],
        *,
        device: torch.device,
    ) -> None:
        self.network = network
        self.train = train
        self.judge = judge
        self.device = device

    def batches(self, batch_size: int, *, seed: int) -> list[Sequence[int]]:
        """Batches of like target lengths, where most of the work is."""
        lengths = [
            2 * len(target) + sum(map(len, fields))
            for target, fields in zip(self.train.targets, self.train.fields, strict=True)
        ]
        return list(bucket(lengths, batch_size, seed=seed))

    def step(self, rows: Sequence[int], *, generator: torch.Generator) -> StepLoss:
        """Minus the log-likelihood a token; the bound is that of the paper, an example."""
        fields = stack_fields([self.train.fields[row] for row in rows])
        target = Sequences.pad([self.train.targets[row] for row in rows])
        network: NoisyAutoencoder = self.network  # type: ignore[assignment]
        log_likelihood = network.log_likelihood(
            [each.to(self.device) for each in fields], target.to(self.device), generator=generator
        )
        predicted = int(target.lengths.sum()) - len(rows)
        loss = -log_likelihood.sum() / predicted
        config = network.config
        bound = vmf.bound(
            log_likelihood.detach().mean(), config.code_width, concentration=config.concentration
        )
        read = [*fields, target]
        tokens = sum(int(each.lengths.sum()) for each in read)
        return StepLoss(
            loss,
            {"loss": loss.item(), "bound": bound.item()},
            tokens=tokens,
            padded=sum(each.ids.numel() for each in read) - tokens,
        )

    def evaluate(self) -> dict[str, float]:
        """The judge's figures on dev."""
        return self.judge()


def stack_fields(rows: Sequence[Sequence[Sequence[int]]]) -> list[Sequences]:
    """Fields of examples (example, field, token) as one padded batch a field."""
    return [Sequences.pad(field) for field in zip(*rows, strict=True)]


@torch.inference_mode()
def embed(
    network: NoisyAutoencoder, fields: Sequence[Sequence[Sequence[int]]], *, batch_size: int = 64
) -> Vectors:
    """The directions of numbered inputs: (N, D), in their order."""
    device = next(network.parameters()).device
    vectors = np.empty((len(fields), network.config.code_width), np.float32)
    by_length = sorted(range(len(fields)), key=lambda row: sum(map(len, fields[row])))
    for start in range(0, len(fields), batch_size):
        rows = by_length[start : start + batch_size]
        batch = [each.to(device) for each in stack_fields([fields[row] for row in rows])]
        vectors[rows] = network.encode(batch).cpu().numpy()
    return vectors
