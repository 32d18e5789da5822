"""Completion sessions: repeated completion of one output while it is typed.

Also the tokens of its prefixes, the text to append, and the alignment with prototypes.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

from redraft.text.tokenizer import Tokenizer, detokenize
from redraft.types import Completion, Prototype


class CompletionSession(ABC):
    """One input and its prototypes; successive prefixes may reuse computation."""

    @abstractmethod
    def complete(self, prefix: str, k: int = 5) -> list[Completion]:
        """Return at most `k` completions of `prefix`, most probable first."""

    def read_after(self, following: str) -> None:  # noqa: B027
        """Take the code after the line of the cursor as evidence; ignored unless overridden."""


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


def readable_prefix(tokens: Sequence[str]) -> list[str]:
    """Return the tokens of a prefix without a single space at the end.

    The tokenizer makes that space part of the next token in most outputs.
    """
    return list(tokens[:-1] if tokens and tokens[-1] == " " else tokens)


def continuation(prefix: str, typed: Sequence[str], tokens: Sequence[str]) -> str:
    """Return the text that `tokens` append to `prefix`, whose own tokens are `typed`."""
    whole = detokenize([*typed, *tokens])
    if whole.startswith(prefix):
        return whole[len(prefix) :]
    return detokenize(tokens)  # the prefix ends in a space that the tokens do not have


def align(prefix: Sequence[str], output: Sequence[str]) -> int:
    """Return the index in `output` after the longest run of tokens that ends `prefix`.

    Among runs of equal length, the one that ends closest to the length of the prefix wins.
    """
    best = (0, 0, 0)
    for end in range(len(output) + 1):
        run = 0
        while run < min(end, len(prefix)) and output[end - 1 - run] == prefix[-1 - run]:
            run += 1
        best = max(best, (run, -abs(end - len(prefix)), end))
    return best[2] if best[0] else min(len(prefix), len(output))
