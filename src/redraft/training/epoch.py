"""Which examples an epoch is over, and which words are counted in: all, or of many a part."""

from collections.abc import Sequence

from redraft.data import filed
from redraft.data.example import Example
from redraft.data.filed import FiledExamples, draw_rows, pick

COUNTED = 100_000
"""Examples that words are counted in: those that more would bring are rare."""


def epoch_rows(examples: Sequence[Example], *, seed: int) -> Sequence[int]:
    """The rows of all examples; of many as many as may be in memory, others for each seed."""
    if isinstance(examples, FiledExamples):
        return draw_rows(len(examples), filed.CHUNK, seed=seed)
    return range(len(examples))


def counted(examples: Sequence[Example]) -> Sequence[Example]:
    """The examples that words are counted in."""
    if len(examples) <= COUNTED:
        return examples
    return pick(examples, draw_rows(len(examples), COUNTED, seed=0))
