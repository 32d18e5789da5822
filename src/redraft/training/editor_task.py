"""Training of the editor: write y from x and a prototype that was retrieved without y."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import torch

from redraft.editing.constraints import AUTO, find_syntax
from redraft.editing.neural import NeuralEditor
from redraft.models.edit_network import EditNetwork
from redraft.storage.disk import take
from redraft.storage.examples import is_on_disk
from redraft.text.bucketing import bucket, padded_size, split
from redraft.text.edit_encoder import (
    LONGEST_OUTPUT,
    EditEncoder,
    EncodedEdit,
    Tokens,
)
from redraft.training.augmentation import (
    IDENTITIES,
    MASKED_WORDS,
    SWAPPED_EXAMPLES,
    AugmentationConfig,
    rare_words,
    shared_numbers,
    swap_numbers,
    words_to_mask,
)
from redraft.training.checkpoint import Checkpoint, fingerprint
from redraft.training.device import choose_device
from redraft.training.editor_config import PROJECT, EditorConfig
from redraft.training.epoch_sampling import epoch_rows, vocabulary_sample
from redraft.training.prototype_sampling import PrototypeSource
from redraft.training.run_folder import CHECKPOINT
from redraft.training.schedule import RunOptions
from redraft.training.trainer import StepLoss, Task, train
from redraft.types import Example

Validate = Callable[[NeuralEditor], dict[str, float]]
"""Returns metrics on dev; the checkpoint with the highest first metric is kept (or the last)."""


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
        """Draw new prototypes and return batches of one or two groups of similar lengths."""
        rows = epoch_rows(self.examples, seed=seed)
        if len(rows) < len(self.examples):
            self.tokens.clear()
        drawn = self.prototypes.draw(rows, seed=seed)
        rng = random.Random(seed)
        self.rows = [
            self._encode(example, prototypes, rng)
            for example, prototypes in zip(take(self.examples, rows), drawn, strict=True)
        ]
        lengths = [self.lengths(row) for row in self.rows]
        return bucket(lengths, batch_size, seed=seed, parts=2 if self._splits else 1)

    @property
    def _splits(self) -> bool:
        """True if a batch is computed in parts: an LSTM takes as long for half of the rows."""
        return self.network.encoder.packs

    def lengths(self, row: EncodedEdit) -> list[int]:
        """Return the lengths of the sequences that the network pads: the output and the sources.

        Packed sources are two sequences: the fields of x, and the prototypes.
        """
        sources = list(map(len, row.sources))
        if self.network.encoder.packs:
            fields = len(self.editor.encoding.fields)
            sources = [sum(sources[:fields]), sum(sources[fields:])]
        return [len(row.target), *sources]

    def epoch_steps(self, batch_size: int) -> int:
        """Return the number of batches per epoch without retrieving prototypes."""
        return math.ceil(len(epoch_rows(self.examples, seed=0)) / batch_size)

    def _encode(
        self, example: Example, prototypes: Sequence[Example], rng: random.Random
    ) -> EncodedEdit:
        """Augment and encode an example with its prototypes."""
        shared_words = self.augmentation.shared_words
        tokens = self._tokens(example)
        prototype_tokens = [self._tokens(prototype) for prototype in prototypes]
        if prototype_tokens and rng.random() < IDENTITIES:
            prototype_tokens[0] = tokens
        if rng.random() < SWAPPED_EXAMPLES * shared_words:
            tokens = swap_numbers(tokens, self.numbers, rng)
        masked = words_to_mask(tokens, self.rare, MASKED_WORDS * shared_words, rng)
        encoding = self.editor.encoding
        return encoding.encode(tokens.fields, [prototype_tokens], tokens.output, hidden=masked)[0]

    def _tokens(self, example: Example) -> Tokens:
        if example.identity not in self.tokens:  # not yet cached, or a prototype from elsewhere
            self.tokens[example.identity] = self.editor.encoding.tokenize(example)
        return self.tokens[example.identity]

    def step(self, rows: Sequence[int], *, generator: torch.Generator) -> StepLoss:
        """Return the negative log-likelihood per token."""
        encoded = [self.rows[row] for row in rows]
        lengths = [self.lengths(row) for row in encoded]
        parts = split(lengths) if self._splits else [list(range(len(rows)))]
        likelihoods = [
            self.network.log_likelihoods(
                self.editor.batch([encoded[i] for i in part]), generator=generator
            ).sum()
            for part in parts
        ]
        token_count = sum(len(row.target) - 1 for row in encoded)
        loss = -torch.stack(likelihoods).sum() / token_count
        tokens = sum(map(sum, lengths))
        padded = sum(padded_size([lengths[i] for i in part]) for part in parts) - tokens
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
    editor.network.to(choose_device(options.device))
    return EditorTask(editor, examples, prototypes, config.augmentation, validate=validate)


def _fingerprint(examples: Sequence[Example], config: EditorConfig, options: RunOptions) -> str:
    """Return a digest of everything that determines the weights, so without decoding settings."""
    settings = asdict(config)
    del settings["decoding"]
    return fingerprint(examples, [settings, options.seed])
