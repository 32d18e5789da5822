"""Training of the editor: encoded examples, checkpoint selection and resumption."""

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import pytest
import torch

from redraft import Example
from redraft.config.toml import override
from redraft.editing.decoding import DecodingConfig
from redraft.editing.neural import NeuralEditor
from redraft.errors import ModelError, TrainingInterrupted
from redraft.models.batch import EditBatch
from redraft.models.config import EditNetworkConfig
from redraft.models.edit_network import EditState
from redraft.retrieval.bow import BowRetriever
from redraft.text.bucketing import split
from redraft.text.edit_encoder import EditEncoder, EditEncoderConfig
from redraft.training import editor_task
from redraft.training.augmentation import AugmentationConfig
from redraft.training.editor_config import EditorConfig
from redraft.training.editor_task import EditorTask, Validate, train_editor
from redraft.training.progress import Report
from redraft.training.prototype_sampling import Draws, PrototypeSource, TopPrototypes, everywhere
from redraft.training.schedule import RunOptions
from tests.greetings import NAMES, greeting, settings

GREETINGS = [greeting(name) for name in NAMES]
CONFIG = override(EditorConfig(), settings(12)["editor"], where="test")

NO_NOISE = cast(torch.Generator, None)
"""Without a generator there is no dropout."""


class NextOne(PrototypeSource):
    """The prototype of every example is the one after it; or there is none."""

    def __init__(self, examples: Sequence[Example], *, has_any: bool = True) -> None:
        self.examples, self.has_any = examples, has_any

    def draw(self, rows: Sequence[int], *, seed: int) -> Draws:  # noqa: ARG002
        after = [self.examples[(row + 1) % len(self.examples)] for row in rows]
        return [[each] * self.has_any for each in after]


@pytest.fixture(autouse=True)
def identities(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Set the share of examples that are their own prototype: none unless a test sets another."""

    def set_share(share: float) -> None:
        monkeypatch.setattr("redraft.training.editor_task.IDENTITIES", share)

    set_share(0.0)
    return set_share


def task(
    source: PrototypeSource,
    examples: Sequence[Example],
    *,
    prototypes: int = 1,
    architecture: str = "transformer",
    shared_words: bool = False,
) -> EditorTask:
    encoding = EditEncoder.learn(examples, EditEncoderConfig(prototypes=prototypes))
    network = EditNetworkConfig(architecture=architecture, word_width=8, width=8)
    editor = NeuralEditor.build(encoding, network, DecodingConfig())
    augmentation = AugmentationConfig(shared_words=shared_words)
    return EditorTask(editor, examples, source, augmentation, validate=lambda _: {})


def share_of_identities(editing: EditorTask) -> float:
    """How many edit examples have their own output as y', of all epochs."""
    found = []
    for seed in range(20):
        editing.batches(8, seed=seed)
        found += [row.sources[-1] == row.target[1:] for row in editing.rows]
    return sum(found) / len(found)


@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def test_the_share_of_identities_is_as_set(
    share: float, identities: Callable[[float], None]
) -> None:
    identities(share)
    editing = task(NextOne(GREETINGS), GREETINGS)
    # four deviations of a mean of 600
    assert share_of_identities(editing) == pytest.approx(
        share, abs=4 * (share * (1 - share) / 600) ** 0.5
    )


def test_without_prototypes_there_is_no_identity(identities: Callable[[float], None]) -> None:
    identities(1.0)
    editing = task(NextOne(GREETINGS, has_any=False), GREETINGS)
    assert share_of_identities(editing) == 0


class NextTwo(NextOne):
    """The prototypes of every example are the two after it."""

    def draw(self, rows: Sequence[int], *, seed: int) -> Draws:  # noqa: ARG002
        count = len(self.examples)
        return [[self.examples[(row + by) % count] for by in (1, 2)] for row in rows]


def test_of_several_prototypes_all_are_read_and_the_first_gives_way_to_an_identity(
    identities: Callable[[float], None],
) -> None:
    for identity in (0.0, 1.0):
        identities(identity)
        editing = task(NextTwo(GREETINGS), GREETINGS, prototypes=2)
        editing.batches(8, seed=0)
        for at, row in enumerate(editing.rows):
            encoding = editing.editor.encoding
            first, second = (encoding.words(each[:-1], row.unknown) for each in row.sources[-2:])
            after = [GREETINGS[(at + by) % len(GREETINGS)].y for by in (1, 2)]
            assert second == encoding.tokenize_output(after[1])
            expected = GREETINGS[at].y if identity else after[0]
            assert first == encoding.tokenize_output(expected)


def test_an_epoch_has_every_example_once_and_is_the_same_for_the_same_seed(
    identities: Callable[[float], None],
) -> None:
    identities(0.5)
    editing = task(NextOne(GREETINGS), GREETINGS, shared_words=True)
    batches = editing.batches(8, seed=3)
    rows = list(editing.rows)
    assert sorted(row for batch in batches for row in batch) == list(range(len(GREETINGS)))
    editing.batches(8, seed=4)
    assert editing.rows != rows
    assert editing.batches(8, seed=3) == batches
    assert editing.rows == rows


def test_tasks_of_several_ranks_derive_the_same_batches_whatever_came_before(
    identities: Callable[[float], None],
) -> None:
    identities(0.5)
    first, second = (task(NextOne(GREETINGS), GREETINGS) for _ in range(2))
    second.batches(8, seed=1)
    assert first.batches(8, seed=2) == second.batches(8, seed=2)
    assert first.rows == second.rows
    assert len(first.batches(8, seed=2)) == first.epoch_steps(8)


@pytest.mark.parametrize("architecture", ["transformer", "lstm"])
def test_padding_is_counted_where_the_network_computes(
    architecture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    examples = [
        Example({"text": "go " * (1 + at % 3), "name": "it " * (1 + at % 5)}, "x, " * (3 * at + 1))
        for at in range(12)
    ]
    editing = task(NextOne(examples), examples, architecture=architecture)
    masks: list[torch.Tensor] = []
    encode = editing.network.encode

    def record(batch: EditBatch, *, generator: torch.Generator | None) -> EditState:
        state = encode(batch, generator=generator)
        masks.extend([state.sources.mask, batch.target.mask])
        return state

    monkeypatch.setattr(editing.network, "encode", record)
    batch = editing.batches(12, seed=0)[0]
    result = editing.step(batch, generator=torch.Generator().manual_seed(0))
    assert result.tokens == sum(int(mask.sum()) for mask in masks)
    assert result.padded == sum(int((~mask).sum()) for mask in masks) > 0
    assert (len(masks) > 2) == (architecture == "transformer")


def test_the_loss_of_a_batch_in_parts_is_that_of_the_whole() -> None:
    examples = [Example({"text": "go " * (1 + at % 9)}, "x, " * (at + 1)) for at in range(24)]
    editing = task(NextOne(examples), examples)
    editing.network.eval()
    for batch in editing.batches(12, seed=0):
        assert len(split([editing.lengths(editing.rows[row]) for row in batch])) > 1
        result = editing.step(batch, generator=NO_NOISE)
        whole = editing.editor.batch([editing.rows[row] for row in batch])
        total = editing.network.log_likelihoods(whole).sum()
        count = int(whole.target.lengths.sum()) - len(batch)
        assert result.token_count == count
        assert result.loss.item() == pytest.approx(-total.item() / count, rel=1e-5)


def test_a_masked_word_is_an_oov_wherever_it_occurs(monkeypatch: pytest.MonkeyPatch) -> None:
    examples = [
        Example({"text": f"{verb} the item {name}"}, f"{verb}(item, {name})")
        for verb in ("pick", "drop")
        for name in ("apple", "pear")
    ]
    monkeypatch.setattr(editor_task, "MASKED_WORDS", 1.0)
    shown, hidden = (
        task(NextOne(examples), examples, shared_words=masks) for masks in (False, True)
    )
    known = len(shown.editor.encoding.vocabulary)
    for editing, has_unknown in ((shown, False), (hidden, True)):
        editing.batches(4, seed=0)
        for example, row in zip(examples, editing.rows, strict=True):
            assert (max(row.target) >= known) is has_unknown
            words = editing.editor.encoding.words(row.target[1:-1], row.unknown)
            assert words == editing.editor.encoding.tokenize_output(example.y)


def train_it(
    folder: Path, validate: Validate = lambda _: {}, *, stop: int = 0, seed: int = 0
) -> NeuralEditor:
    def interrupt(report: Report) -> None:
        if report.step == stop:
            os.kill(os.getpid(), signal.SIGINT)

    source = TopPrototypes(everywhere(BowRetriever.build(GREETINGS), GREETINGS), top=3)
    return train_editor(
        GREETINGS,
        source,
        CONFIG,
        validate=validate,
        folder=folder,
        options=RunOptions(seed=seed, on_step=interrupt),
    )


def same_weights(one: NeuralEditor, other: NeuralEditor) -> bool:
    pair = (one.network.state_dict(), other.network.state_dict())
    return all(torch.equal(tensor, pair[1][name]) for name, tensor in pair[0].items())


def test_a_training_stopped_anywhere_and_resumed_ends_with_the_same_weights(tmp_path: Path) -> None:
    whole = train_it(tmp_path / "whole")
    for stop in (1, 4, 11):
        folder = tmp_path / str(stop)
        with pytest.raises(TrainingInterrupted, match=f"stopped at step {stop} of 12"):
            train_it(folder, stop=stop)
        assert same_weights(train_it(folder), whole)
    assert not same_weights(whole, train_it(tmp_path / "other", seed=1))


def test_a_run_with_other_settings_is_not_resumed(tmp_path: Path) -> None:
    train_it(tmp_path)
    with pytest.raises(ModelError, match="other pairs or settings"):
        train_it(tmp_path, seed=1)


def test_without_metrics_the_last_weights_are_taken(tmp_path: Path) -> None:
    steps = iter(range(100))
    rising = train_it(tmp_path / "a", lambda _: {"figure": float(next(steps))})
    falling = train_it(tmp_path / "b", lambda _: {"figure": -float(next(steps))})
    none = train_it(tmp_path / "c")
    assert same_weights(none, rising)
    assert not same_weights(none, falling)
    assert not none.network.training


@pytest.mark.parametrize(
    ("output", "syntax"), [('print("hello {}")', "python"), ("hello, {}!", "any")]
)
def test_a_syntax_that_is_to_be_found_is_that_of_the_outputs(
    tmp_path: Path, output: str, syntax: str
) -> None:
    examples = [Example({"text": name}, output.format(name)) for name in NAMES[:5]]
    config = override(CONFIG, {"decoding": {"syntax": "auto"}}, where="test")
    config = override(config, {"training": {"steps": 1}}, where="test")
    editor = train_editor(
        examples, NextOne(examples), config, validate=lambda _: {}, folder=tmp_path
    )
    assert editor.decoding.syntax == syntax
