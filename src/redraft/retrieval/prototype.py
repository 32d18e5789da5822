"""What a retriever returns: a training example, and how far from the input it stands."""

from dataclasses import dataclass
from typing import Any

from redraft.data.example import Example


@dataclass(frozen=True)
class Prototype:
    """A retrieved example; the smaller its distance, the easier it should be to edit.

    `log_weight` is the logarithm of p_ret((x', y') | x), up to a constant of the input.
    """

    example: Example
    distance: float
    log_weight: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """The prototype as a JSON object."""
        return {"distance": round(self.distance, 6), **self.example.to_json()}
