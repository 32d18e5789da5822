"""What a retriever returns: a training example, and how far from the input it stands."""

from dataclasses import dataclass
from typing import Any

from redraft.data.example import Example


@dataclass(frozen=True)
class Prototype:
    """A retrieved example; the smaller its distance, the easier it should be to edit."""

    example: Example
    distance: float

    def to_json(self) -> dict[str, Any]:
        """The prototype as a JSON object."""
        return {"distance": round(self.distance, 6), **self.example.to_json()}
