"""Where each token of an output came from."""

from dataclasses import dataclass
from typing import Any, Literal

Origin = Literal["prototype", "input", "generated"]
"""Copied from the prototype's output, copied from the input, or written from the vocabulary."""


@dataclass(frozen=True)
class TracedToken:
    """A token as it stands in the output, with the space before it, and its origin."""

    text: str
    origin: Origin

    def to_json(self) -> dict[str, Any]:
        """The token as a JSON object."""
        return {"text": self.text, "origin": self.origin}
