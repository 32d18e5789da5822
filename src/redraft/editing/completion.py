"""Prefixes of outputs: their tokens, the text to append, and their alignment with prototypes."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from redraft.text.tokenizer import detokenize


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


def align_each(tokens: Sequence[str], outputs: Sequence[Sequence[str]]) -> NDArray[np.int64]:
    """Align every prefix of `tokens`, from the empty one, with each of K outputs: (T + 1, K)."""
    ids: dict[str, int] = {}
    lengths = np.array([len(output) for output in outputs], np.int64)
    words = np.full((len(outputs), int(lengths.max(initial=0))), -1)
    for row, output in enumerate(outputs):
        words[row, : len(output)] = [ids.setdefault(word, len(ids)) for word in output]
    ends = np.arange(words.shape[1] + 1)
    runs = np.zeros((len(outputs), len(ends)), np.int64)
    aligned = [np.zeros(len(outputs), np.int64)]
    for length, token in enumerate(tokens, start=1):
        # a run that ends here extends the run that ended one word before
        runs[:, 1:] = np.where(words == ids.get(token, -2), runs[:, :-1] + 1, 0)
        nearness = 2 * -np.abs(ends - length) + (ends > length)
        best = (runs * 4 * (len(tokens) + len(ends)) + nearness).argmax(1)
        has_run = runs[np.arange(len(outputs)), best] > 0
        aligned.append(np.where(has_run, best, np.minimum(length, lengths)))
    return np.stack(aligned)
