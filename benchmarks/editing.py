"""The editor at its default size: training beside the matrix product, answers, memory."""

import random
import resource
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import torch

from benchmarks.measurement import Measurement, best_seconds
from redraft.editing.neural import NeuralEditor
from redraft.models.batch import EditBatch
from redraft.models.config import ENCODER_LAYERS, EditNetworkConfig
from redraft.models.edit_network import SLOT_WIDTHS
from redraft.text.edit_encoder import EditEncoder
from redraft.training.editor_config import default_config
from redraft.types import Example, Prototype

CARDS, BATCH, ASKED = 500, 16, 32
FIELDS = {"name": (3, 6), "properties": (13, 14), "description": (3, 35)}
OUTPUT = (40, 150)
"""Lengths like those of Hearthstone cards."""

Shape = tuple[int, int, int]


def cards() -> list[Example]:
    """Made-up examples of a few hundred words."""
    draw = random.Random(0)
    words = [f"word{at}" for at in range(600)]

    def text(bounds: tuple[int, int]) -> str:
        return " ".join(draw.choices(words, k=draw.randint(*bounds)))

    return [
        Example({name: text(bounds) for name, bounds in FIELDS.items()}, text(OUTPUT))
        for _ in range(CARDS)
    ]


def products(
    config: EditNetworkConfig, read: int, wide: int, rows: int, written: int
) -> list[Shape]:
    """The matrix products of a forward pass: rows, what is summed over, columns.

    `read` and `wide` are the places of the sources and of the output in one row.
    """
    width, inner = config.width, 4 * config.width
    sources, outputs = rows * read, rows * wide
    layer = [(1, width, width)] * 4 + [(1, width, inner), (1, inner, width)]
    shapes = [(sources, k, m) for _, k, m in layer] * ENCODER_LAYERS
    shapes += [(sources, read, width)] * 2 * ENCODER_LAYERS
    shapes += [(outputs, k, m) for _, k, m in layer] * config.decoder_layers
    shapes += [(outputs, wide, width)] * 2 * config.decoder_layers
    across = [(outputs, width, width)] * 2 + [(sources, width, width)] * 2
    shapes += (across + [(outputs, read, width)] * 2) * config.decoder_layers
    embedded = config.word_width + SLOT_WIDTHS[config.copying]
    shapes += [(sources, embedded, width), (outputs, embedded, width), (sources, width, width)]
    return [*shapes, (outputs, width, width), (outputs, width, read), (outputs, width, written)]


def trainer(editor: NeuralEditor, batch: EditBatch) -> Callable[[], None]:
    """A step of training on one batch."""
    optimiser = torch.optim.Adam(editor.network.parameters())
    generator = torch.Generator().manual_seed(0)

    def step() -> None:
        optimiser.zero_grad()
        loss = -editor.network.log_likelihoods(batch, generator=generator).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    return step


def run() -> Iterator[Measurement]:
    """Training and prediction, with one thread and with all."""
    examples = cards()
    config = default_config(len(examples))
    encoding = EditEncoder.learn(examples, config.encoding)
    torch.manual_seed(0)
    # made-up outputs have no syntax, and "auto" is resolved by training alone
    decoding = replace(config.decoding, max_length=100, syntax="any")
    editor = NeuralEditor.build(encoding, config.network, decoding)
    tokens = [encoding.tokenize(example) for example in examples]
    middle = sorted(range(1, CARDS), key=lambda at: len(tokens[at].output))
    chosen = middle[(CARDS - BATCH) // 2 :][:BATCH]
    numbered = [
        encoding.encode(tokens[at].fields, [[tokens[at - 1]]], tokens[at].output)[0]
        for at in chosen
    ]
    batch = editor.batch(numbered)
    read = sum(each.ids.shape[1] for each in batch.sources)
    wide = batch.target.ids.shape[1] - 1
    shapes = products(config.network, read, wide, BATCH, encoding.output_vocab_size)
    operands = [(torch.randn(n, k), torch.randn(k, m)) for n, k, m in shapes]

    def multiply() -> None:
        for left, right in operands:
            for _ in range(3):  # forward once, backward twice
                torch.mm(left, right)

    step = trainer(editor, batch)
    step()
    all_threads = torch.get_num_threads()
    for threads in sorted({1, all_threads}):
        torch.set_num_threads(threads)
        seconds = best_seconds({"step": step, "product": multiply}, rounds=5)
        count = sum(int(each.lengths.sum()) for each in (*batch.sources, batch.target))
        name = f"editor training, default size, {_threads(threads)}"
        share = seconds["product"] / seconds["step"]
        yield Measurement(name, count / seconds["step"], "tokens/s", share, "matrix product")
        yield from predictions(editor, examples, threads)
        yield from single_answers(editor, examples, threads)
    torch.set_num_threads(all_threads)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    yield Measurement("peak memory with the editor's benchmarks", peak, "MB")


def predictions(
    editor: NeuralEditor, examples: Sequence[Example], threads: int
) -> Iterator[Measurement]:
    """Answers a second in a batch: greedy, and with a beam of five."""
    inputs = [example.x for example in examples[:ASKED]]
    prototypes = [[Prototype(example, 0.0)] for example in examples[1 : ASKED + 1]]
    editor.network.eval()
    decoders = {
        name: editor.with_decoding(replace(editor.decoding, beam_size=size))
        for name, size in (("greedy", 1), ("beam 5", 5))
    }
    seconds = best_seconds(
        {n: partial(each.edit, inputs, prototypes) for n, each in decoders.items()},
        rounds=2,
    )
    for name, each in seconds.items():
        label = f"predictions of up to 100 tokens, {name}, {_threads(threads)}"
        yield Measurement(label, ASKED / each, "1/s", seconds["greedy"] / each, "greedy")


def single_answers(
    editor: NeuralEditor, examples: Sequence[Example], threads: int
) -> Iterator[Measurement]:
    """Measure the median time of one answer, with as many prototypes as the editor asks for."""
    editor.network.eval()
    wanted = editor.wants(1)
    milliseconds = []
    for row, example in enumerate(examples[:ASKED]):
        prototypes = [Prototype(each, 0.0) for each in examples[row + 1 : row + 1 + wanted]]
        started = time.perf_counter()
        editor.edit([example.x], [prototypes])
        milliseconds.append(1_000 * (time.perf_counter() - started))
    name = f"one answer of up to 100 tokens, beam 5, {_threads(threads)}"
    yield Measurement(name, statistics.median(milliseconds), "ms")


def _threads(count: int) -> str:
    return f"{count} thread" if count == 1 else f"{count} threads"
