"""Training of the editor: write y from x and a prototype that was retrieved without y."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated

import torch

from redraft.config import presets
from redraft.config.ranges import SHARE, Range, check_ranges
from redraft.config.toml import build
from redraft.editing.constraints import AUTO, find_syntax
from redraft.editing.neural import DecodingConfig, NeuralEditor
from redraft.errors import ConfigError
from redraft.models.edit_network import EditNetwork, EditNetworkConfig
from redraft.storage.disk import take
from redraft.storage.examples import is_on_disk
from redraft.text.batch import bucket
from redraft.text.edit_encoder import (
    LONGEST_OUTPUT,
    EditEncoder,
    EditEncoderConfig,
    EncodedEdit,
    Tokens,
)
from redraft.training.augmentation import (
    MASKED_WORDS,
    SWAPPED_EXAMPLES,
    AugmentationConfig,
    rare_words,
    shared_numbers,
    swap_numbers,
    words_to_mask,
)
from redraft.training.checkpoint import Checkpoint, fingerprint
from redraft.training.epoch_sampling import epoch_rows, vocabulary_sample
from redraft.training.prototype_sampling import PROJECT, PrototypeSource
from redraft.training.run_folder import CHECKPOINT
from redraft.training.trainer import RunOptions, StepLoss, Task, TrainingConfig, train
from redraft.types import Example

Validate = Callable[[NeuralEditor], dict[str, float]]
"""Returns metrics on dev; the checkpoint with the highest first metric is kept (or the last)."""


@dataclass(frozen=True)
class PrototypesConfig:
    """Sampling of training prototypes.

    A learned retriever adds its noise to queries and examples; with others, n prototypes are drawn
    from the n + `sample_from_top` - 1 nearest. For examples of several projects, prototypes come
    from an index of the example's project, and for a share `cross_project` of the examples from
    other projects. A share `prototype_dropout` gets none, which trains the editor to write as well
    as to copy.
    """

    sample_from_top: Annotated[int, Range(1, 1_000)] = 3
    cross_project: Annotated[float, SHARE] = 0.1
    prototype_dropout: Annotated[float, SHARE] = 0.0

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.cross_project + self.prototype_dropout > 1:
            raise ConfigError(
                f"cross_project is {self.cross_project:g} and prototype_dropout "
                f"{self.prototype_dropout:g}; make them shares of the examples, at most 1 together"
            )


@dataclass(frozen=True)
class EditorConfig:
    """All settings of an editor and of its training."""

    network: EditNetworkConfig = field(default_factory=EditNetworkConfig)
    encoding: EditEncoderConfig = field(default_factory=EditEncoderConfig)
    prototypes: PrototypesConfig = field(default_factory=PrototypesConfig)
    augmentation: AugmentationConfig = field(default_factory=AugmentationConfig)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)


def paper_config() -> EditorConfig:
    """Return the sizes and the schedule of the paper's code on Hearthstone."""
    return build(EditorConfig, presets.paper(0)["editor"], where="preset paper")


def default_config(examples: int, *, projects: int = 1) -> EditorConfig:
    """Return the preset for this many training examples of this many projects."""
    name = presets.choose(examples, projects=projects)
    return build(EditorConfig, presets.preset(name, examples)["editor"], where=f"preset {name}")


def count_projects(examples: Sequence[Example]) -> int:
    """Return the number of projects, by the meta of examples; those without a project are one."""
    return len({example.meta.get(PROJECT) for example in examples})


class EditorTask(Task):
    """The paper's second step: maximise log p_edit(y | x, (x', y')) over retrieved prototypes."""

    network: EditNetwork

    def __init__(
        self,
        editor: NeuralEditor,
        examples: Sequence[Example],
        prototypes: PrototypeSource,
        augmentation: AugmentationConfig,
        *,
        validate: Validate,
    ) -> None:
        self.editor = editor
        self.network = editor.network
        self.examples = examples
        self.prototypes = prototypes
        self.augmentation = augmentation
        self.validate = validate
        self.tokens: dict[str, Tokens] = {}
        sample = vocabulary_sample(examples)
        # For examples on disk, only the tokens of the current epoch stay in memory.
        tokenize = editor.encoding.tokenize if is_on_disk(examples) else self._tokens
        self.numbers = sorted(
            {number for example in sample for number in shared_numbers(tokenize(example))}
        )
        vocabulary = editor.encoding.vocabulary
        counts = dict(zip(vocabulary.tokens, vocabulary.counts, strict=True))
        self.rare = rare_words(counts, len(sample))
        self.rows: list[EncodedEdit] = []

    def batches(self, batch_size: int, *, seed: int) -> list[list[int]]:
        """Draw new prototypes and return batches of similar output, input and prototype lengths."""
        rows = epoch_rows(self.examples, seed=seed)
        if len(rows) < len(self.examples):
            self.tokens.clear()
        drawn = self.prototypes.draw(rows, seed=seed)
        rng = random.Random(seed)
        self.rows = [
            self._encode(example, prototypes, rng)
            for example, prototypes in zip(take(self.examples, rows), drawn, strict=True)
        ]
        fields = len(self.editor.encoding.fields)
        lengths = [
            (
                len(row.target),
                sum(map(len, row.sources[:fields])),
                sum(map(len, row.sources[fields:])),
            )
            for row in self.rows
        ]
        return bucket(lengths, batch_size, seed=seed)

    def epoch_steps(self, batch_size: int) -> int:
        """Return the number of batches per epoch without retrieving prototypes."""
        return math.ceil(len(epoch_rows(self.examples, seed=0)) / batch_size)

    def _encode(
        self, example: Example, prototypes: Sequence[Example], rng: random.Random
    ) -> EncodedEdit:
        """Augment and encode an example with its prototypes."""
        augmentation = self.augmentation
        tokens = self._tokens(example)
        prototype_tokens = [self._tokens(prototype) for prototype in prototypes]
        if prototype_tokens and rng.random() < augmentation.identity:
            prototype_tokens[0] = tokens
        if rng.random() < SWAPPED_EXAMPLES * augmentation.shared_words:
            tokens = swap_numbers(tokens, self.numbers, rng)
        masked = words_to_mask(tokens, self.rare, MASKED_WORDS * augmentation.shared_words, rng)
        encoding = self.editor.encoding
        return encoding.encode(tokens.fields, [prototype_tokens], tokens.output, hidden=masked)[0]

    def _tokens(self, example: Example) -> Tokens:
        if example.identity not in self.tokens:  # not yet cached, or a prototype from elsewhere
            self.tokens[example.identity] = self.editor.encoding.tokenize(example)
        return self.tokens[example.identity]

    def step(self, rows: Sequence[int], *, generator: torch.Generator) -> StepLoss:
        """Return the negative log-likelihood per token."""
        batch = self.editor.batch([self.rows[row] for row in rows])
        token_count = int(batch.target.lengths.sum()) - len(rows)
        loss = -self.network.log_likelihoods(batch, generator=generator).sum() / token_count
        sequences = [*batch.sources, batch.target]
        tokens = sum(int(sequence.lengths.sum()) for sequence in sequences)
        padded = sum(sequence.ids.numel() for sequence in sequences) - tokens
        return StepLoss(loss, {"loss": loss.item()}, token_count, tokens, padded)

    def evaluate(self) -> dict[str, float]:
        """Return the metrics of `validate`."""
        return self.validate(self.editor)


def train_editor(
    examples: Sequence[Example],
    prototypes: PrototypeSource,
    config: EditorConfig,
    *,
    validate: Validate,
    folder: Path,
    options: RunOptions | None = None,
) -> NeuralEditor:
    """Train an editor on `examples` and return it; resumes from a checkpoint in `folder`."""
    options = options or RunOptions()
    task = _task(examples, prototypes, config, validate=validate, options=options)
    checkpoint = Checkpoint(folder / CHECKPOINT, _fingerprint(examples, config, options))
    train(task, config.training, checkpoint=checkpoint, options=options)
    task.network.eval()
    return task.editor


def _task(
    examples: Sequence[Example],
    prototypes: PrototypeSource,
    config: EditorConfig,
    *,
    validate: Validate,
    options: RunOptions,
) -> EditorTask:
    """Build the vocabulary and an untrained editor, and return its task."""
    sample = vocabulary_sample(examples)
    encoding = EditEncoder.learn(sample, config.encoding, project=PROJECT)
    decoding = config.decoding
    if not decoding.max_length:
        longest = max(len(encoding.tokenize_output(example.y)) for example in sample)
        decoding = replace(decoding, max_length=min(longest * 5 // 4 + 10, LONGEST_OUTPUT))
    if decoding.syntax == AUTO:
        decoding = replace(decoding, syntax=find_syntax([example.y for example in sample]))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(options.seed)  # initial weights only; steps have their own seeds
        editor = NeuralEditor.build(encoding, config.network, decoding)
    editor.network.to(options.device)
    return EditorTask(editor, examples, prototypes, config.augmentation, validate=validate)


def _fingerprint(examples: Sequence[Example], config: EditorConfig, options: RunOptions) -> str:
    """Return a digest of everything that determines the weights, so without decoding settings."""
    settings = asdict(config)
    del settings["decoding"]
    return fingerprint(examples, [settings, options.seed, options.budget])
