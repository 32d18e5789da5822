"""Completion sessions: repeated completion of one output while it is typed."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

from redraft.editing.completion import align, continuation, readable_prefix
from redraft.text.tokenizer import Tokenizer
from redraft.types import Completion, Prototype


class CompletionSession(ABC):
    """One input and its prototypes; successive prefixes may reuse computation."""

    @abstractmethod
    def complete(self, prefix: str, k: int = 5) -> list[Completion]:
        """Return at most `k` completions of `prefix`, most probable first."""


class VerbatimSession(CompletionSession):
    """Completes with the rest of the line in each prototype, aligned with the prefix."""

    def __init__(self, prototypes: Sequence[Prototype]) -> None:
        self.prototypes = prototypes

    def complete(self, prefix: str, k: int = 5) -> list[Completion]:
        """Return one completion per prototype, nearest prototype first."""
        typed = readable_prefix(Tokenizer().tokenize(prefix))
        return [_complete(prefix, typed, prototype) for prototype in self.prototypes[:k]]


def _complete(prefix: str, typed: Sequence[str], prototype: Prototype) -> Completion:
    output = Tokenizer().tokenize(prototype.example.y)
    rest = output[align(typed, output) :]
    line = rest[: rest.index("\n") + 1] if "\n" in rest else rest
    text = continuation(prefix, typed, line)
    return Completion("".join(line[:1]), text, log_prob=-math.inf, prototype=prototype)
