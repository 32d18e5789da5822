"""An output while it is written, and the draft that goes on as its prototypes do."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

from redraft.data.tokenizer import Tokenizer
from redraft.editing.completion import Completion, align, continuation, readable_prefix
from redraft.retrieval.prototype import Prototype


class Draft(ABC):
    """One input and its prototypes; what one prefix cost to read helps with the next."""

    @abstractmethod
    def complete(self, prefix: str, k: int = 5) -> list[Completion]:
        """At most k ways to go on after the prefix, best first."""


class VerbatimDraft(Draft):
    """What stands in each prototype where its output meets the prefix."""

    def __init__(self, prototypes: Sequence[Prototype]) -> None:
        self.prototypes = prototypes

    def complete(self, prefix: str, k: int = 5) -> list[Completion]:
        """The rest of the line of each prototype, in their order."""
        typed = readable_prefix(Tokenizer().tokenize(prefix))
        return [_go_on(prefix, typed, found) for found in self.prototypes[:k]]


def _go_on(prefix: str, typed: Sequence[str], prototype: Prototype) -> Completion:
    output = Tokenizer().tokenize(prototype.example.y)
    rest = output[align(typed, output) :]
    line = rest[: rest.index("\n") + 1] if "\n" in rest else rest
    text = continuation(prefix, typed, line)
    return Completion("".join(line[:1]), text, log_prob=-math.inf, prototype=prototype)
