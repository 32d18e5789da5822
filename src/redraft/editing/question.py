"""An input and its prototypes, in numbers: what a learned editor is asked."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from redraft.data.edit_numbers import EditNumbers
from redraft.retrieval.prototype import Prototype


@dataclass(frozen=True)
class Question:
    """The groups of prototypes that are read side by side, and the edit example of each group.

    The words of the cached prototypes are looked up; the remembered ones are read as if they were
    written, and looked up by the states that their words followed.
    """

    groups: Sequence[Sequence[Prototype]]
    cached: Sequence[Prototype]
    remembered: Sequence[Prototype]
    edits: list[EditNumbers]

    @property
    def unknown(self) -> list[str]:
        """The words that the vocabulary lacks."""
        return self.edits[0].unknown

    @property
    def log_weights(self) -> list[float]:
        """The logarithm of p_ret of each group, up to what all have in common."""
        return [_log_sum([found.log_weight for found in group]) for group in self.groups]


def _log_sum(values: Sequence[float]) -> float:
    """log Σ exp, and 0 of nothing."""
    highest = max(values, default=0.0)
    return highest + math.log(sum(math.exp(each - highest) for each in values) or 1.0)
