"""Training: the retriever beside the matrix product, the editor beside random batches."""

import random
import time
from collections.abc import Iterator, Sequence
from itertools import islice

import torch

from benchmarks.measurement import Measurement, best_seconds
from redraft.editing.neural import NeuralEditor
from redraft.mining.python_functions import mine, standard_library
from redraft.models.autoencoder import NoisyAutoencoder
from redraft.models.batch import Sequences
from redraft.models.config import AutoencoderConfig
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.text.bucketing import bucket, padded_size
from redraft.text.edit_encoder import EditEncoder
from redraft.training.editor_config import PROJECT, count_projects, default_config
from redraft.training.editor_task import EditorTask
from redraft.training.fit_neural import prototype_source
from redraft.training.trainer import StepLoss
from redraft.types import Example

FUNCTIONS, TIMED = 1_000, 24
"""Functions of the standard library, and timed batches of each kind."""

BATCH, STEPS = 16, 1_000
VOCABULARY = 1_000
FIELDS = {"name": (3, 6), "properties": (13, 14), "description": (3, 35)}
TARGET = (40, 150)
"""Lengths like those of Hearthstone cards."""

Shape = tuple[int, int, int]


def rows(count: int) -> list[tuple[list[int], list[list[int]]]]:
    """Made-up examples: a target and three fields of token numbers."""
    draw = random.Random(0)
    numbers = range(4, VOCABULARY)

    def sequence(bounds: tuple[int, int]) -> list[int]:
        return draw.choices(numbers, k=draw.randint(*bounds))

    return [(sequence(TARGET), [sequence(each) for each in FIELDS.values()]) for _ in range(count)]


def products(config: AutoencoderConfig, tokens: int, field_tokens: Sequence[int]) -> list[Shape]:
    """The matrix products of a forward pass: rows, what is summed over, columns."""
    width = config.width
    shapes = [(tokens, 2 * width, 4 * width)] * config.decoder_layers
    for count in field_tokens:
        widths = [config.word_width] + [2 * width] * (config.encoder_layers - 1)
        shapes += [(count, each + width, 4 * width) for each in widths for _ in range(2)]
    return [*shapes, (tokens, config.word_width, width), (tokens, width, VOCABULARY)]


def run() -> Iterator[Measurement]:
    """Measure the training of the retriever, then the batches of the editor."""
    yield from retriever()
    yield from editor()


def retriever() -> Iterator[Measurement]:
    """One step, and the same multiply-adds as bare products: forward once, backward twice."""
    config = AutoencoderConfig(bag_of_words=False)
    torch.manual_seed(0)
    network = NoisyAutoencoder(VOCABULARY, len(FIELDS), config)
    optimiser = torch.optim.Adam(network.parameters())
    examples = rows(33 * BATCH)
    lengths = [(len(target), *map(len, fields)) for target, fields in examples]
    batches = bucket(lengths, BATCH, seed=0)
    padded = sum(padded_size([lengths[row] for row in batch]) for batch in batches)
    real = sum(map(sum, lengths))
    batch = sorted(batches, key=lambda each: len(examples[each[0]][0]))[len(batches) // 2]
    fields = [Sequences.pad([examples[row][1][at] for row in batch]) for at in range(len(FIELDS))]
    target = Sequences.pad([examples[row][0] for row in batch])
    generator = torch.Generator().manual_seed(0)

    def step() -> None:
        optimiser.zero_grad()
        loss = -network.log_likelihood(fields, target, generator=generator).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    shapes = products(config, target.ids.numel() - BATCH, [each.ids.numel() for each in fields])
    operands = [(torch.randn(n, k), torch.randn(k, m)) for n, k, m in shapes]

    def multiply() -> None:
        for left, right in operands:
            for _ in range(3):
                torch.mm(left, right)

    step()
    seconds = best_seconds({"step": step, "product": multiply}, rounds=7)
    tokens = int(target.lengths.sum()) + sum(int(each.lengths.sum()) for each in fields)
    share = seconds["product"] / seconds["step"]
    name = f"retriever training, the paper's size, {torch.get_num_threads()} threads"
    yield Measurement(name, tokens / seconds["step"], "tokens/s", share, "matrix product")
    minutes = STEPS * seconds["step"] / 60
    yield Measurement(f"{STEPS:,} such steps of {BATCH}", minutes, "minutes")
    yield Measurement("padding in buckets", 100 * (1 - real / padded), "%")


def functions() -> list[Example]:
    """Return the first documented functions of the standard library."""
    mined = (mine(source) for source in standard_library())
    found = (example for examples in mined if isinstance(examples, list) for example in examples)
    return list(islice(found, FUNCTIONS))


def editor_task(examples: Sequence[Example]) -> EditorTask:
    """Return the training of an editor of default size on prototypes from BM25."""
    config = default_config(len(examples), projects=count_projects(examples))
    encoding = EditEncoder.learn(examples, config.encoding, project=PROJECT)
    torch.manual_seed(0)
    editor = NeuralEditor.build(encoding, config.network, config.decoding)
    prototypes = prototype_source(Bm25Retriever.build(examples), examples, config)
    return EditorTask(editor, examples, prototypes, config.augmentation, validate=lambda _: {})


def padded_together(task: EditorTask, rows: Sequence[int], generator: torch.Generator) -> StepLoss:
    """Return the loss of a batch that is padded as a whole."""
    encoded = [task.rows[row] for row in rows]
    lengths = [task.lengths(row) for row in encoded]
    batch, count = task.editor.batch(encoded), sum(len(row.target) - 1 for row in encoded)
    loss = -task.network.log_likelihoods(batch, generator=generator).sum() / count
    tokens = sum(map(sum, lengths))
    return StepLoss(loss, {}, count, tokens, padded_size(lengths) - tokens)


def editor() -> Iterator[Measurement]:
    """Measure speed and padding of an epoch in buckets, beside the same epoch in random batches."""
    task = editor_task(functions())
    optimiser = torch.optim.Adam(task.network.parameters())
    generator = torch.Generator().manual_seed(0)
    buckets = task.batches(BATCH, seed=0)
    rows = random.Random(0).sample(range(len(task.rows)), len(task.rows))
    shuffled = [rows[start : start + BATCH] for start in range(0, len(rows), BATCH)]
    kinds = ("buckets", "random batches")
    seconds, tokens, padded = (dict.fromkeys(kinds, 0.0) for _ in range(3))
    # taking turns: other load on the machine slows both kinds alike
    for pair in islice(zip(buckets, shuffled, strict=True), TIMED):
        for kind, batch in zip(kinds, pair, strict=True):
            started = time.perf_counter()
            optimiser.zero_grad()
            if kind == "buckets":
                result = task.step(batch, generator=generator)
            else:
                result = padded_together(task, batch, generator)
            result.loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            seconds[kind] += time.perf_counter() - started
            tokens[kind] += result.tokens
            padded[kind] += result.padded
    speeds = {kind: tokens[kind] / seconds[kind] for kind in kinds}
    shares = {kind: padded[kind] / (tokens[kind] + padded[kind]) for kind in kinds}
    threads, to = torch.get_num_threads(), "random batches"
    for kind in kinds:
        name = f"editor training, Python functions, {kind}, {threads} threads"
        yield Measurement(name, speeds[kind], "tokens/s", speeds[kind] / speeds[to], to)
    for kind in kinds:
        name = f"padding, Python functions, {kind}"
        yield Measurement(name, 100 * shares[kind], "%", shares[kind] / shares[to], to)
