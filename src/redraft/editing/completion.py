"""What comes after a prefix: the next token, the rest of its line, and where they come from."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redraft.data.tokenizer import detokenize
from redraft.retrieval.prototype import Prototype


@dataclass(frozen=True)
class Completion:
    """A next token and the text up to the end of the line; both empty where the output ends."""

    token: str
    text: str
    log_prob: float  # of the token; -inf where it is not known
    prototype: Prototype | None

    @property
    def probability(self) -> float | None:
        """That of the token, if it is known."""
        return None if self.log_prob == -math.inf else math.exp(self.log_prob)

    def to_json(self) -> dict[str, Any]:
        """The completion as a JSON object."""
        return {
            "token": self.token,
            "text": self.text,
            "log_prob": round(self.log_prob, 6),
            "prototype": self.prototype.to_json() if self.prototype else None,
        }


def readable_prefix(tokens: Sequence[str]) -> list[str]:
    """The tokens of a prefix as they would stand in a whole output.

    A single space at its end is most often one that the next token brings along.
    """
    return list(tokens[:-1] if tokens and tokens[-1] == " " else tokens)


def continuation(prefix: str, typed: Sequence[str], tokens: Sequence[str]) -> str:
    """The text that the tokens add to what was typed."""
    whole = detokenize([*typed, *tokens])
    if whole.startswith(prefix):
        return whole[len(prefix) :]
    return detokenize(tokens)  # the typed space stays, though none belongs there


def align(prefix: Sequence[str], output: Sequence[str]) -> int:
    """Where an output goes on after a prefix: behind the longest run that ends the prefix.

    Of runs of the same length that one is taken whose place is nearest to the prefix's own end.
    """
    best = (0, 0, 0)
    for end in range(len(output) + 1):
        run = 0
        while run < min(end, len(prefix)) and output[end - 1 - run] == prefix[-1 - run]:
            run += 1
        best = max(best, (run, -abs(end - len(prefix)), end))
    return best[2] if best[0] else min(len(prefix), len(output))


def align_each(tokens: Sequence[str], outputs: Sequence[Sequence[str]]) -> NDArray[np.int64]:
    """`align` of every beginning of the tokens, the empty one first, with each output: (T+1, K)."""
    numbers: dict[str, int] = {}
    lengths = np.array([len(output) for output in outputs], np.int64)
    words = np.full((len(outputs), int(lengths.max(initial=0))), -1)
    for row, output in enumerate(outputs):
        words[row, : len(output)] = [numbers.setdefault(each, len(numbers)) for each in output]
    ends = np.arange(words.shape[1] + 1)
    runs = np.zeros((len(outputs), len(ends)), np.int64)
    aligned = [np.zeros(len(outputs), np.int64)]
    for read, token in enumerate(tokens, start=1):
        # a run that ends here is one longer than the run that ended a word before
        runs[:, 1:] = np.where(words == numbers.get(token, -2), runs[:, :-1] + 1, 0)
        nearness = 2 * -np.abs(ends - read) + (ends > read)
        best = (runs * 4 * (len(tokens) + len(ends)) + nearness).argmax(1)
        has_run = runs[np.arange(len(outputs)), best] > 0
        aligned.append(np.where(has_run, best, np.minimum(read, lengths)))
    return np.stack(aligned)
