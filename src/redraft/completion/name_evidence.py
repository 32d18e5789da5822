"""The names of continuations: which of them are known at the cursor, and where from.

Knows no text: a token is an id with a class.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from redraft.completion.context_tables import Ids
from redraft.completion.word_classes import NAME, QUOTE

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class KnownNames:
    """Sets of word ids as boolean tables (V,), and the end of the prefix."""

    typed: NDArray[np.bool_]  # in the header or the prefix
    arguments: NDArray[np.bool_]  # of the header, not in the prefix yet
    described: NDArray[np.bool_]  # in the docstring
    visible: NDArray[np.bool_]  # defined in the file
    buffer: NDArray[np.bool_]  # anywhere in the file
    dot: int  # id of "."
    join: int  # id of the mark of a missing space
    is_attribute: bool  # the prefix ends in a dot
    is_string: bool  # the prefix ends within a string

    def counts(self, tokens: Ids, classes: NDArray[np.int8]) -> tuple[Counts, ...]:
        """Return, up to each token (N, D), how many names are in or outside the sets.

        The names, those not typed yet, those that nothing defines, those that the file does not
        have, arguments that were not used yet, and words of the docstring.
        """
        is_name = classes == NAME
        follows_dot = np.full(tokens.shape, self.is_attribute)
        follows_dot[:, 1:] = tokens[:, :-1] == self.dot
        is_keyword = np.zeros(tokens.shape, np.bool_)
        is_keyword[:, :-1] = tokens[:, 1:] == self.join
        quotes = np.cumsum(classes == QUOTE, 1) + self.is_string
        is_free = is_name & ~follows_dot & ~is_keyword & (quotes % 2 == 0)
        is_new = ~self.typed[tokens]
        flags = (
            is_name,
            is_name & is_new,
            is_free & is_new & ~self.visible[tokens],
            is_name & is_new & ~self.buffer[tokens],
            is_name & self.arguments[tokens],
            is_name & self.described[tokens],
        )
        return tuple(np.cumsum(flag, 1) for flag in flags)
