"""Training the retriever's encoder: reconstruct a target from a noisy direction of x."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch

from redraft.data.example import Example, input_text
from redraft.data.filed import pick
from redraft.data.numbering import Numbering, NumberingConfig
from redraft.data.sequences import Sequences, bucket
from redraft.models import vmf
from redraft.models.noisy_autoencoder import AutoencoderConfig, NoisyAutoencoder
from redraft.retrieval.encoder import DirectionEncoder, stack_fields
from redraft.training.checkpoint import Checkpoint, fingerprint
from redraft.training.epoch import counted, epoch_rows
from redraft.training.loop import Observer, StepLoss, Task, TrainingConfig, train
from redraft.training.workers import ALONE, Workers

LONGEST_TARGET = 150

Target = Callable[[Example], str]
Judge = Callable[[DirectionEncoder], dict[str, float]]
"""Figures on dev; the first one chooses the checkpoint, higher is better."""


def task_target(example: Example) -> str:
    """The output: near are inputs whose outputs are alike."""
    return example.y


def input_target(example: Example) -> str:
    """The input itself: near are inputs that are alike."""
    return input_text(example.x)


@dataclass(frozen=True)
class RetrieverConfig:
    """Everything that training the retriever can be told."""

    network: AutoencoderConfig = field(default_factory=AutoencoderConfig)
    numbering: NumberingConfig = field(default_factory=NumberingConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)


def paper_config() -> RetrieverConfig:
    """The sizes and the schedule of the paper's code on Hearthstone."""
    return RetrieverConfig(
        AutoencoderConfig(has_bag=False), NumberingConfig(min_count=3, pieces=0), TrainingConfig()
    )


def small_config() -> RetrieverConfig:
    """For some hundred to some thousand examples: a wide space that begins as a bag of words.

    Single runs on 533 cards lost 1 to 2 BLEU of what is retrieved by LSTMs and by pieces of
    words, and none gained by them (experiments/retrieval).
    """
    return RetrieverConfig(
        AutoencoderConfig(
            word_width=512,
            width=128,
            code_width=512,
            encoder_layers=0,
            decoder_layers=1,
            concentration=1000.0,
            word_dropout=0.2,
        ),
        NumberingConfig(min_count=2, pieces=0),
        TrainingConfig(steps=400, learning_rate=3e-4, evaluate_every=50),
    )


def large_config() -> RetrieverConfig:
    """For more examples: LSTMs join the bag, and unknown words are read in pieces."""
    return RetrieverConfig(
        AutoencoderConfig(
            word_width=256,
            width=128,
            code_width=512,
            encoder_layers=1,
            decoder_layers=2,
            concentration=1000.0,
            dropout=0.1,
            word_dropout=0.2,
            target_words=4_000,
        ),
        NumberingConfig(min_count=2, max_words=20_000, pieces=1_000),
        TrainingConfig(steps=400, batch_size=32, learning_rate=5e-4, evaluate_every=100),
    )


class RetrieverTask(Task):
    """The paper's first step: maximise E[log p(target | v)], v ~ vMF(mu(x), kappa)."""

    network: NoisyAutoencoder

    def __init__(
        self,
        network: NoisyAutoencoder,
        encoder: DirectionEncoder,
        examples: Sequence[Example],
        *,
        target: Target,
        judge: Judge,
    ) -> None:
        self.network = network
        self.encoder = encoder
        self.examples = examples
        self.target = target
        self.judge = judge
        self._number(epoch_rows(examples, seed=0))

    def batches(self, batch_size: int, *, seed: int) -> list[list[int]]:
        """Batches alike in the length of the target and of the input."""
        rows = epoch_rows(self.examples, seed=seed)
        if rows != self.rows:
            self._number(rows)
        lengths = [
            (len(target), sum(map(len, fields)))
            for target, fields in zip(self.targets, self.fields, strict=True)
        ]
        return bucket(lengths, batch_size, seed=seed)

    def _number(self, rows: Sequence[int]) -> None:
        """Have ready what an epoch over these rows needs."""
        numbering, known = self.encoder.numbering, pick(self.examples, rows)
        self.rows = rows
        self.fields = [self.encoder.numbers(each.x) for each in known]
        self.targets = [
            numbering.target(self.target(each), longest=LONGEST_TARGET) for each in known
        ]

    def step(self, rows: Sequence[int], *, generator: torch.Generator) -> StepLoss:
        """Minus the log-likelihood a token; the bound is that of the paper, an example."""
        device = next(self.network.parameters()).device
        fields = stack_fields([self.fields[row] for row in rows])
        target = Sequences.pad([self.targets[row] for row in rows])
        log_likelihood = self.network.log_likelihood(
            [each.to(device) for each in fields], target.to(device), generator=generator
        )
        written = int(target.lengths.sum()) - len(rows)
        loss = -log_likelihood.sum() / written
        config = self.network.config
        mean = log_likelihood.detach().mean()
        bound = vmf.bound(mean, config.code_width, concentration=config.concentration)
        read = [*fields, target]
        tokens = sum(int(each.lengths.sum()) for each in read)
        padded = sum(each.ids.numel() for each in read) - tokens
        shown = {"loss": loss.item(), "bound": bound.item()}
        return StepLoss(loss, shown, written, tokens, padded)

    def evaluate(self) -> dict[str, float]:
        """The judge's figures on dev."""
        return self.judge(self.encoder)


def train_encoder(
    examples: Sequence[Example],
    config: RetrieverConfig,
    *,
    target: Target,
    judge: Judge,
    folder: Path,
    device: torch.device | None = None,
    observer: Observer | None = None,
    workers: Workers = ALONE,
) -> DirectionEncoder:
    """A direction encoder of these examples; goes on from the folder if it was begun there."""
    device = device or torch.device("cpu")
    texts = (text for each in counted(examples) for text in (input_text(each.x), target(each)))
    numbering = Numbering.learn(texts, config.numbering)
    fields = list(examples[0].x)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.training.seed)  # initial weights; the steps seed themselves
        network = NoisyAutoencoder(len(numbering.vocabulary), len(fields), config.network)
    network.to(device)
    encoder = DirectionEncoder(network.encoder, numbering, fields)
    task = RetrieverTask(network, encoder, examples, target=target, judge=judge)
    checkpoint = Checkpoint(folder / "checkpoint", _fingerprint(examples, config, target))
    train(task, config.training, checkpoint=checkpoint, observer=observer, workers=workers)
    network.eval()
    return encoder


def _fingerprint(examples: Sequence[Example], config: RetrieverConfig, target: Target) -> str:
    """A digest of all that decides the outcome, the time between two saves not among it."""
    settings = asdict(config)
    del settings["training"]["save_seconds"]
    return fingerprint(examples, [settings, target.__name__])
