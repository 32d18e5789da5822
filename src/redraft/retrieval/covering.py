"""Sets of prototypes that cover an input together, for few-shot prompts.

The nearest examples are often near-copies of each other. Greedy coverage, as in Set-BM25 (Gupta et
al. 2023), takes next the example with most of the words that no taken one has.
"""

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from redraft.retrieval.base import Retriever
from redraft.retrieval.words import words
from redraft.types import Input, Prototype

POOL = 50
"""Nearest examples that a set is taken from."""


def covering_set(
    retriever: Retriever, x: Input, k: int, *, where: Mapping[str, Any] | None = None
) -> list[Prototype]:
    """Return at most k of the nearest prototypes that cover the words of `x` together.

    The first is the nearest. Rare words weigh more; where nothing new is covered, the nearest comes
    next, and coverage starts again. `where` selects examples by their meta.
    """
    left = retriever.retrieve([x], max(POOL, k), where=where)[0]
    bags = {id(prototype): set(words(prototype.example.x)) for prototype in left}
    frequencies = Counter(word for bag in bags.values() for word in bag)
    asked = set(words(x))
    weights = {
        word: math.log((1 + len(left)) / frequencies[word]) for word in asked & {*frequencies}
    }
    taken: list[Prototype] = []
    uncovered = set(weights)

    def gain(prototype: Prototype) -> float:
        return sum(weights[word] for word in uncovered & bags[id(prototype)])

    while left and len(taken) < k:
        best = max(left, key=gain) if taken else left[0]  # of equal gains the nearest
        if not gain(best):
            uncovered = set(weights)
            best = max(left, key=gain) if taken else left[0]
        left = [prototype for prototype in left if prototype is not best]
        taken.append(best)
        uncovered -= bags[id(best)]
    return taken
