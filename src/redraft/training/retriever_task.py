"""Training of the retriever's encoder: reconstruct a target from a noisy direction of x."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import torch

from redraft.models import vmf
from redraft.models.autoencoder import NoisyAutoencoder
from redraft.models.batch import Sequences
from redraft.retrieval.encoder import DenseEncoder, stack_fields
from redraft.storage.disk import take
from redraft.text.bucketing import bucket, padded_size
from redraft.text.token_encoder import TokenEncoder
from redraft.training.checkpoint import Checkpoint, fingerprint
from redraft.training.device import choose_device
from redraft.training.epoch_sampling import epoch_rows, vocabulary_sample
from redraft.training.retriever_config import RetrieverConfig
from redraft.training.run_folder import CHECKPOINT
from redraft.training.schedule import RunOptions, TrainingConfig
from redraft.training.trainer import StepLoss, Task, train
from redraft.types import Example, input_text

LONGEST_TARGET = 150

Target = Callable[[Example], str]
Validate = Callable[[DenseEncoder], dict[str, float]]
"""Returns metrics on dev; the checkpoint with the highest first metric is kept."""


def task_target(example: Example) -> str:
    """Return the output: inputs with similar outputs become neighbours."""
    return example.y


def input_target(example: Example) -> str:
    """Return the input: similar inputs become neighbours."""
    return input_text(example.x)


class RetrieverTask(Task):
    """The paper's first step: maximise E[log p(target | v)], v ~ vMF(mu(x), kappa)."""

    network: NoisyAutoencoder

    def __init__(
        self,
        network: NoisyAutoencoder,
        encoder: DenseEncoder,
        examples: Sequence[Example],
        *,
        target: Target,
        validate: Validate,
    ) -> None:
        self.network = network
        self.encoder = encoder
        self.examples = examples
        self.target = target
        self.validate = validate
        self._encode(epoch_rows(examples, seed=0))

    def batches(self, batch_size: int, *, seed: int) -> list[list[int]]:
        """Return batches of similar target and input lengths."""
        rows = epoch_rows(self.examples, seed=seed)
        if rows != self.rows:
            self._encode(rows)
        lengths = [self._lengths(row) for row in range(len(self.targets))]
        return bucket(lengths, batch_size, seed=seed)

    def _lengths(self, row: int) -> list[int]:
        """Return the lengths of the sequences that are padded: the target and each field."""
        return [len(self.targets[row]), *map(len, self.fields[row])]

    def _encode(self, rows: Sequence[int]) -> None:
        """Encode the inputs and targets of `rows` for an epoch."""
        encoding, examples = self.encoder.encoding, take(self.examples, rows)
        self.rows = rows
        self.fields = [self.encoder.token_ids(example.x) for example in examples]
        self.targets = [
            encoding.target(self.target(example), longest=LONGEST_TARGET) for example in examples
        ]

    def step(self, rows: Sequence[int], *, generator: torch.Generator) -> StepLoss:
        """Return the negative log-likelihood per token, and the paper's bound per example."""
        device = next(self.network.parameters()).device
        fields = stack_fields([self.fields[row] for row in rows])
        target = Sequences.pad([self.targets[row] for row in rows])
        log_likelihood = self.network.log_likelihood(
            [field.to(device) for field in fields], target.to(device), generator=generator
        )
        token_count = int(target.lengths.sum()) - len(rows)
        loss = -log_likelihood.sum() / token_count
        config = self.network.config
        mean = log_likelihood.detach().mean()
        bound = vmf.bound(mean, config.embedding_dim, concentration=config.concentration)
        lengths = [self._lengths(row) for row in rows]
        tokens = sum(map(sum, lengths))
        padded = padded_size(lengths) - tokens
        metrics = {"loss": loss.item(), "bound": bound.item()}
        return StepLoss(loss, metrics, token_count, tokens, padded)

    def evaluate(self) -> dict[str, float]:
        """Return the metrics of `validate`."""
        return self.validate(self.encoder)


def train_encoder(
    examples: Sequence[Example],
    config: RetrieverConfig,
    *,
    target: Target,
    validate: Validate,
    folder: Path,
    options: RunOptions | None = None,
) -> DenseEncoder:
    """Train an encoder on `examples` and return it; resumes from a checkpoint in `folder`."""
    options = options or RunOptions()
    texts = (
        text
        for example in vocabulary_sample(examples)
        for text in (input_text(example.x), target(example))
    )
    encoding = TokenEncoder.learn(texts, config.encoding)
    fields = list(examples[0].x)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(options.seed)  # initial weights only; steps have their own seeds
        network = NoisyAutoencoder(len(encoding.vocabulary), len(fields), config.network)
    network.to(choose_device(options.device))
    encoder = DenseEncoder(network.encoder, encoding, fields)
    task = RetrieverTask(network, encoder, examples, target=target, validate=validate)
    settings = [asdict(config), target.__name__, options.seed]
    checkpoint = Checkpoint(folder / CHECKPOINT, fingerprint(examples, settings))
    training = TrainingConfig(**asdict(config.training))
    train(task, training, checkpoint=checkpoint, options=options)
    network.eval()
    return encoder
