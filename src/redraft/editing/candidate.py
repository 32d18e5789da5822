"""What an editor returns: an output, how likely it is, and the prototype it was made from."""

from dataclasses import dataclass
from typing import Any

from redraft.editing.diff import Diff
from redraft.retrieval.prototype import Prototype


@dataclass(frozen=True)
class Candidate:
    """An edited output with its score: the higher, the better."""

    output: str
    score: float
    prototype: Prototype | None

    def diff(self) -> Diff:
        """What was kept of the prototype's output, and what was replaced."""
        before = self.prototype.example.y if self.prototype else ""
        return Diff.between(before, self.output)

    def to_json(self) -> dict[str, Any]:
        """The candidate as a JSON object."""
        prototype = self.prototype.to_json() if self.prototype else None
        return {"output": self.output, "score": round(self.score, 6), "prototype": prototype}
