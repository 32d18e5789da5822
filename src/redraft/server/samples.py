"""Typical inputs of a model, to start from: each stands for many others. Knows no protocol."""

from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath

import numpy as np

from redraft.completion.languages.base import kind_of
from redraft.completion.languages.python.language import PYTHON
from redraft.text.words import words
from redraft.types import Example, Input, input_text

COMPARED = 200
"""Examples that are compared, evenly spaced among all."""

COUNTED = 5_000
"""Functions whose first lines are counted, evenly spaced among all."""

FIRST_LINE = 20
"""Least characters of a first line that tells where it is from: `return self` is anywhere."""

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


def typical_functions(functions: Sequence[Example], count: int = 3) -> list[Input]:
    """Return typical inputs of Python functions, if possible of some that begin as another does.

    The page opens with one: where another function begins alike, there is a line to suggest.
    """
    step = max(1, -(-len(functions) // COUNTED))
    drawn = [functions[row] for row in range(0, len(functions), step)]
    drawn = [function for function in drawn if _is_python(function)]
    first_lines = [function.y.split("\n", 1)[0] for function in drawn]
    counts = Counter(line for line in first_lines if len(line) >= FIRST_LINE)
    alike = [
        function for function, line in zip(drawn, first_lines, strict=True) if counts[line] > 1
    ]
    return typical_inputs(alike or drawn or functions, count)


def _is_python(example: Example) -> bool:
    """Return True for a function, not a block, that is not of a file in another language."""
    suffix = PurePath(str(example.meta.get("file", ""))).suffix
    return kind_of(example.x) == "function" and suffix in ("", *PYTHON.suffixes)


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(1, len(one | other))
