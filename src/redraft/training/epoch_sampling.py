"""Samples of large datasets: the rows of an epoch, and the examples that define the vocabulary."""

from collections.abc import Sequence

from redraft.storage import disk
from redraft.storage.disk import draw_rows, take
from redraft.storage.examples import is_on_disk
from redraft.types import Example

VOCABULARY_SAMPLE = 100_000
"""Most examples that words are counted in; more would only add rare words."""


def epoch_rows(examples: Sequence[Example], *, seed: int) -> Sequence[int]:
    """Return all rows; for examples on disk, a sample per seed that fits in memory."""
    if is_on_disk(examples):
        return draw_rows(len(examples), disk.CHUNK, seed=seed)
    return range(len(examples))


def vocabulary_sample(examples: Sequence[Example]) -> Sequence[Example]:
    """Return the examples to count words in: all, or a fixed sample of many."""
    if len(examples) <= VOCABULARY_SAMPLE:
        return examples
    return take(examples, draw_rows(len(examples), VOCABULARY_SAMPLE, seed=0))
