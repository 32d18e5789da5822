"""Training the editor: write y from x and a prototype that was retrieved without y."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import cast

import torch

from redraft.data.edit_numbers import (
    LONGEST_OUTPUT,
    EditNumbering,
    EditNumberingConfig,
    EditNumbers,
    Tokens,
)
from redraft.data.example import Example
from redraft.data.filed import FiledExamples, pick
from redraft.data.sequences import bucket
from redraft.editing.neural_editor import DecodingConfig, NeuralEditor
from redraft.editing.syntax import AUTO, find_syntax
from redraft.errors import ConfigError
from redraft.models.edit_network import EditNetwork, EditNetworkConfig
from redraft.training.augmentation import (
    AugmentationConfig,
    hide,
    rare_words,
    renumber,
    shared_numbers,
)
from redraft.training.checkpoint import Checkpoint, fingerprint
from redraft.training.epoch import counted, epoch_rows
from redraft.training.loop import Observer, StepLoss, Task, TrainingConfig, train
from redraft.training.prototypes import PrototypeSource
from redraft.training.workers import ALONE, Workers

SMALL = 5_000
EPOCHS = 36
"""How often few examples are seen; those of one project LONGER times as often."""

LONGER = 4

FEW_EPOCHS = 3
"""Examples that are seen so seldom are not learned by heart: dropout would only slow learning."""

Judge = Callable[[NeuralEditor], dict[str, float]]
"""Figures on dev; the first one chooses the checkpoint, higher is better; none: the last one."""


@dataclass(frozen=True)
class PrototypesConfig:
    """Which prototypes an editor is trained on.

    Those that a learned retriever finds by its own noise; without noise, or of a retriever that
    has none, some of the nearest, `top` more than are needed less one. For a share of examples they
    are `absent`, which teaches to write as well as to copy. Where the meta of the examples names
    their `project`, the prototypes are those of an index of that project alone, and for a share
    of examples those of other projects.
    """

    has_noise: bool = True
    top: int = 3
    project: str = "package"
    across: float = 0.1
    absent: float = 0.0

    def __post_init__(self) -> None:
        if not (self.across >= 0 <= self.absent and self.across + self.absent <= 1):
            raise ConfigError(
                f"across is {self.across:g} and absent {self.absent:g}; make them shares of the "
                "examples, at most 1 together"
            )


@dataclass(frozen=True)
class EditorConfig:
    """Everything that training the editor can be told.

    `members`: so many networks are trained, each from another seed, and their mean answers; what
    they take is as many times that of one.
    """

    network: EditNetworkConfig = field(default_factory=EditNetworkConfig)
    numbering: EditNumberingConfig = field(default_factory=EditNumberingConfig)
    prototypes: PrototypesConfig = field(default_factory=PrototypesConfig)
    augmentation: AugmentationConfig = field(default_factory=AugmentationConfig)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    members: int = 1

    def __post_init__(self) -> None:
        if self.members < 1:
            raise ConfigError(f"members is {self.members}; make it 1 or more")


def paper_config() -> EditorConfig:
    """The sizes and the schedule of the paper's code on Hearthstone."""
    return EditorConfig(
        EditNetworkConfig(
            architecture="lstm",
            copying="positional",
            slots=300,
            word_width=300,
            slot_width=100,
            width=256,
            encoder_layers=2,
            decoder_layers=4,
            dropout=0.0,
            match_length=0,
        ),
        EditNumberingConfig(splits_inputs=False, reads_prototype_input=True),
        augmentation=AugmentationConfig(identity=0.1, renumbered=0.0, hidden=0.0),
        decoding=DecodingConfig(max_length=150, length_penalty=0.0),
        training=TrainingConfig(steps=3000, evaluate_every=500),
    )


def default_config(examples: int, *, projects: int = 1) -> EditorConfig:
    """For this many examples: a small Transformer, and as many steps as they are worth.

    Words that few of many examples have are not written, only copied: to score them takes as
    long as all else, and what is so rare is hardly learned. Examples of several projects teach an
    editor to be given a project of its own: it reads several prototypes and looks words up.
    """
    training = TrainingConfig(learning_rate=2e-3, warmup_steps=50, decay=True)
    steps = 6_000
    if examples < SMALL:
        epoch = math.ceil(examples / training.batch_size)
        steps = min(max(EPOCHS * epoch, 300), 1_200)
    written = min(max(examples // 4, 2_000), EditNumberingConfig.max_written)
    epochs = steps * training.batch_size / examples
    network = EditNetworkConfig() if epochs > FEW_EPOCHS else EditNetworkConfig(dropout=0.0)
    config = EditorConfig(
        network=network,
        numbering=EditNumberingConfig(max_written=written),
        training=replace(training, steps=steps, evaluate_every=steps // 8),
    )
    if projects < 2:
        return config if examples >= SMALL else _for_few(config)
    return replace(
        config,
        network=replace(config.network, match_length=8, agreement=2.0, expects_words=True),
        numbering=replace(config.numbering, prototypes=3),
        # with a fifth absent the next token of dev was among the first ten 0.2 points less often
        # in a project and 1.1 across packages, and training took 1.3 times as long
        prototypes=replace(config.prototypes, absent=0.5),
        # looked-up words repeat themselves: the more a length counts, the longer they go on
        decoding=replace(config.decoding, cached=100, length_penalty=0.4),
    )


def _for_few(config: EditorConfig) -> EditorConfig:
    """The settings for few examples of one project, which are learned by heart in any case.

    That does least harm, and good the longer they are seen, with words dropped while they are read,
    no prototype in half of the steps, so that what is read in the others is known as well, the mean
    of many steps' weights, and what followed in a like state of the nearest examples heard beside
    them. Answers are short enough to be held to a syntax, if all the examples have one.
    """
    steps = LONGER * config.training.steps
    return replace(
        config,
        network=replace(config.network, word_dropout=0.15),
        prototypes=replace(config.prototypes, absent=0.5),
        training=replace(config.training, steps=steps, evaluate_every=steps // 8, average=0.998),
        decoding=replace(config.decoding, remembered=16, syntax=AUTO),
    )


def count_projects(examples: Sequence[Example], key: str = PrototypesConfig.project) -> int:
    """Of how many projects the examples are, by their meta; those that name none are of one."""
    return len({example.meta.get(key) for example in examples})


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
        judge: Judge,
    ) -> None:
        self.editor = editor
        self.network = cast(EditNetwork, editor.network)
        self.examples = examples
        self.prototypes = prototypes
        self.augmentation = augmentation
        self.judge = judge
        self.tokens: dict[str, Tokens] = {}
        known = counted(examples)
        # of many examples those of an epoch alone are kept
        is_many = isinstance(examples, FiledExamples)
        tokenize = editor.numbering.tokenize if is_many else self._tokens
        self.numbers = sorted({each for one in known for each in shared_numbers(tokenize(one))})
        words = editor.numbering.vocabulary
        counts = dict(zip(words.tokens, words.counts, strict=True))
        self.rare = rare_words(counts, len(known))
        self.rows: list[EditNumbers] = []

    def batches(self, batch_size: int, *, seed: int) -> list[list[int]]:
        """New prototypes, and batches alike in the lengths of outputs, inputs and prototypes."""
        rows = epoch_rows(self.examples, seed=seed)
        if len(rows) < len(self.examples):
            self.tokens.clear()
        drawn = self.prototypes.draw(rows, seed=seed)
        chance = random.Random(seed)
        self.rows = [
            self._edit_example(example, found, chance)
            for example, found in zip(pick(self.examples, rows), drawn, strict=True)
        ]
        fields = len(self.editor.numbering.fields)
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
        """How many batches an epoch has; no prototype is searched for it."""
        return math.ceil(len(epoch_rows(self.examples, seed=0)) / batch_size)

    def _edit_example(
        self, example: Example, prototypes: Sequence[Example], chance: random.Random
    ) -> EditNumbers:
        augmentation = self.augmentation
        tokens = self._tokens(example)
        found = [self._tokens(each) for each in prototypes]
        if found and chance.random() < augmentation.identity:
            found[0] = tokens
        if chance.random() < augmentation.renumbered:
            tokens = renumber(tokens, self.numbers, chance)
        hidden = hide(tokens, self.rare, augmentation.hidden, chance)
        numbering = self.editor.numbering
        return numbering.number(tokens.fields, [found], tokens.output, hidden=hidden)[0]

    def _tokens(self, example: Example) -> Tokens:
        if example.identity not in self.tokens:  # a prototype from outside the training examples
            self.tokens[example.identity] = self.editor.numbering.tokenize(example)
        return self.tokens[example.identity]

    def step(self, rows: Sequence[int], *, generator: torch.Generator) -> StepLoss:
        """Minus the log-likelihood a token."""
        batch = self.editor.batch([self.rows[row] for row in rows])
        written = int(batch.target.lengths.sum()) - len(rows)
        loss = -self.network.log_likelihoods(batch, generator=generator).sum() / written
        read = [*batch.sources, batch.target]
        tokens = sum(int(each.lengths.sum()) for each in read)
        padded = sum(each.ids.numel() for each in read) - tokens
        return StepLoss(loss, {"loss": loss.item()}, written, tokens, padded)

    def evaluate(self) -> dict[str, float]:
        """The judge's figures on dev."""
        return self.judge(self.editor)


def train_editor(
    examples: Sequence[Example],
    prototypes: PrototypeSource,
    config: EditorConfig,
    *,
    judge: Judge,
    folder: Path,
    device: torch.device | None = None,
    observer: Observer | None = None,
    workers: Workers = ALONE,
) -> NeuralEditor:
    """An editor of these examples; goes on from the folder if it was begun there."""
    device = device or torch.device("cpu")
    trained = []
    for number in range(config.members):
        apart = folder / f"member-{number}" if number else folder
        member = _of_member(config, number)
        task = _task(examples, prototypes, member, judge=judge, device=device)
        checkpoint = Checkpoint(apart / "checkpoint", _fingerprint(examples, member))
        train(task, member.training, checkpoint=checkpoint, observer=observer, workers=workers)
        task.network.eval()
        trained.append(task.editor)
    return NeuralEditor.together(trained)


def _of_member(config: EditorConfig, number: int) -> EditorConfig:
    """The settings of one of several networks: a seed of its own, and its share of the budget."""
    training = config.training
    seed, budget = training.seed + _APART * number, training.budget / config.members
    return replace(config, training=replace(training, seed=seed, budget=budget), members=1)


_APART = 1_000
"""Between the seeds of two networks of an ensemble: further than those of two runs."""


def _task(
    examples: Sequence[Example],
    prototypes: PrototypeSource,
    config: EditorConfig,
    *,
    judge: Judge,
    device: torch.device,
) -> EditorTask:
    """An editor that has learned nothing yet, and what it is to learn."""
    project = config.prototypes.project
    known = counted(examples)
    numbering = EditNumbering.learn(known, config.numbering, project=project)
    decoding = config.decoding
    if not decoding.max_length:
        longest = max(len(numbering.tokenize_output(example.y)) for example in known)
        decoding = replace(decoding, max_length=min(longest * 5 // 4 + 10, LONGEST_OUTPUT))
    if decoding.syntax == AUTO:
        decoding = replace(decoding, syntax=find_syntax([example.y for example in known]))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.training.seed)  # initial weights; the steps seed themselves
        editor = NeuralEditor.build(numbering, config.network, decoding)
    editor.network.to(device)
    return EditorTask(editor, examples, prototypes, config.augmentation, judge=judge)


def _fingerprint(examples: Sequence[Example], config: EditorConfig) -> str:
    """A digest of all that decides the weights: not the search, nor the time between two saves."""
    settings = asdict(config)
    del settings["decoding"], settings["training"]["save_seconds"]
    return fingerprint(examples, [settings])
