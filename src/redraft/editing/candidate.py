"""What an editor returns: an output, how likely it is, and what it was made from."""

from dataclasses import dataclass
from typing import Any

from redraft.editing.diff import Diff
from redraft.editing.provenance import TracedToken
from redraft.retrieval.prototype import Prototype


@dataclass(frozen=True)
class Candidate:
    """An edited output with its score: the higher, the better.

    `log_prob` is log p(y | x); `confidence` is how often an answer like this one is exactly
    right; `provenance` says of each token where it came from. An editor that knows nothing of
    the kind leaves them out.
    """

    output: str
    score: float
    prototype: Prototype | None
    log_prob: float | None = None
    confidence: float | None = None
    provenance: tuple[TracedToken, ...] = ()

    def diff(self) -> Diff:
        """What was kept of the prototype's output, and what was replaced."""
        before = self.prototype.example.y if self.prototype else ""
        return Diff.between(before, self.output)

    def to_json(self) -> dict[str, Any]:
        """The candidate as a JSON object."""
        known = {"score": self.score, "log_prob": self.log_prob, "confidence": self.confidence}
        return {
            "output": self.output,
            **{name: round(value, 6) for name, value in known.items() if value is not None},
            "prototype": self.prototype.to_json() if self.prototype else None,
        }
