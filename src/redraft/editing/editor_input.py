"""The encoded input of the neural editor: an input and its prototypes as token ids."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from redraft.text.edit_encoder import EncodedEdit
from redraft.types import Prototype


@dataclass(frozen=True)
class EditorInput:
    """Groups of prototypes that are read together, and one encoded edit example per group.

    The n-gram cache searches the outputs of the `cached` prototypes.
    """

    groups: Sequence[Sequence[Prototype]]
    cached: Sequence[Prototype]
    edits: list[EncodedEdit]

    @property
    def oovs(self) -> list[str]:
        """The OOV words, in the order of their ids."""
        return self.edits[0].unknown

    @property
    def log_weights(self) -> list[float]:
        """log p_ret of each group, up to a common constant."""
        return [
            _log_sum_exp([prototype.log_weight for prototype in group]) for group in self.groups
        ]


def _log_sum_exp(values: Sequence[float]) -> float:
    """Return log Σ exp(value), or 0 for no values."""
    highest = max(values, default=0.0)
    return highest + math.log(sum(math.exp(value - highest) for value in values) or 1.0)
