"""Loops of a language model: text that repeats itself without an end.

A small model that does not know the answer often repeats a few words until its limit of tokens,
which takes longer than all its other answers. Knows text only.
"""

import re
from collections.abc import Iterable, Sequence

import numpy as np

from redraft.lm.stream import LmPiece

REPEATS = 4
"""Times that the unit of a loop stands in a row."""

LEAST = 100
"""Characters of a loop, at least. Of 5,074 outputs of nine sets of SQL and shell commands eight
have one; with 60 characters 28."""

LONGEST_UNIT = 100
"""Characters of the unit of a loop, at most."""

INTERVAL = 8
"""Events of a stream between two checks."""

_TAIL = 2 * REPEATS * LONGEST_UNIT

_NUMBER = re.compile(r"\d+")


def has_loop(text: str) -> bool:
    """Return True if a part of a text repeats a unit, in which all numbers count as the same."""
    codes = np.frombuffer(
        _NUMBER.sub("0", text).encode("utf-32-le", errors="surrogatepass"), np.uint32
    )
    for unit in range(1, min(LONGEST_UNIT, len(codes) // REPEATS) + 1):
        changes = np.flatnonzero(codes[unit:] != codes[:-unit])
        longest = np.diff(changes, prepend=-1, append=len(codes) - unit).max() - 1
        if longest + unit >= max(REPEATS * unit, LEAST):
            return True
    return False


class LoopCheck:
    """Ends a generation that loops, unless the `outputs` it should be like do so themselves.

    `found` is True after it ended one.
    """

    def __init__(self, outputs: Iterable[str]) -> None:
        self.found = False
        self._is_needed = not any(map(has_loop, outputs))

    def __call__(self, pieces: Sequence[LmPiece]) -> bool:
        """Return True if the text of the pieces loops."""
        if self._is_needed and len(pieces) % INTERVAL == 0:
            # one piece has a character or more
            self.found = has_loop("".join(piece.text for piece in pieces[-_TAIL:])[-_TAIL:])
        return self.found
