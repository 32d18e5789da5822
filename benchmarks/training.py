"""Training at the paper's size: tokens a second, beside this machine's matrix product."""

import random
from collections.abc import Iterator, Sequence

import torch

from benchmarks.measurement import Measurement, best_seconds
from redraft.models.autoencoder import NoisyAutoencoder
from redraft.models.batch import Sequences
from redraft.models.config import AutoencoderConfig
from redraft.training.bucketing import bucket

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
    """One step, and the same multiply-adds as bare products: forward once, backward twice."""
    config = AutoencoderConfig(bag_of_words=False)
    torch.manual_seed(0)
    network = NoisyAutoencoder(VOCABULARY, len(FIELDS), config)
    optimiser = torch.optim.Adam(network.parameters())
    examples = rows(33 * BATCH)
    lengths = [(len(target), sum(map(len, fields))) for target, fields in examples]
    batches = bucket(lengths, BATCH, seed=0)
    widest = [
        [max(len(examples[row][1][at]) for row in batch) for at in range(len(FIELDS))]
        for batch in batches
    ]
    padded = sum(
        BATCH * (max(len(examples[row][0]) for row in batch) + sum(wide))
        for batch, wide in zip(batches, widest, strict=True)
    )
    real = sum(sum(pair) for pair in lengths)
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
