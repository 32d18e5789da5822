"""Typical inputs of a model, to start from: each stands for many others. Knows no protocol."""

from collections.abc import Sequence

import numpy as np

from redraft.text.words import words
from redraft.types import Example, Input, input_text

COMPARED = 200
"""Examples that are compared, evenly spaced among all."""

MAX_LENGTH = 500
"""Characters of a sample at most, unless all inputs are longer."""


def typical_inputs(examples: Sequence[Example], count: int = 3) -> list[Input]:
    """Return at most `count` inputs that together are most similar to all others.

    Greedy facility location: each input adds most to the similarity of the others to the nearest
    one that is chosen, so that the inputs are typical and differ from each other.
    """
    step = max(1, -(-len(examples) // COMPARED))
    drawn = [examples[row].x for row in range(0, len(examples), step)]
    inputs = [x for x in drawn if len(input_text(x)) <= MAX_LENGTH] or drawn
    bags = [frozenset(words(x)) for x in inputs]
    similarity = np.array([[_jaccard(one, other) for other in bags] for one in bags])
    chosen: list[int] = []
    covered = np.zeros(len(bags))
    while len(chosen) < min(count, len(bags)):
        gains = np.maximum(similarity, covered).sum(axis=1)
        best = int(gains.argmax())
        if best in chosen:  # the others are equal to the chosen ones
            break
        chosen.append(best)
        covered = np.maximum(covered, similarity[best])
    return [inputs[row] for row in chosen]


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(1, len(one | other))
