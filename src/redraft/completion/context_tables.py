"""Hash tables of contexts: the positions of a token stream by the tokens before them.

For each order k, the positions are sorted by a hash of the k tokens before them, so that a lookup
is a binary search. Knows no words.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

START, END = 0, 1
"""Ids before the first and after the last token of an output."""

_MULTIPLIER = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1

Ids = NDArray[np.int32]


@dataclass(frozen=True)
class ContextTables:
    """For each order the sorted hashes of contexts, and their positions."""

    orders: Sequence[int]
    tables: Sequence[tuple[NDArray[np.uint32], Ids]]

    @classmethod
    def build(
        cls, tokens: Ids, starts: NDArray[np.int64], orders: Sequence[int]
    ) -> "ContextTables":
        """Index all positions of a stream; `starts` has for each the start of its output."""
        return cls(orders, list(_tables(tokens, starts, orders)))

    def matches(self, context: Sequence[int]) -> list[Ids]:
        """Return, for each order up to the longest match, the positions after that context.

        The positions of an order ascend, and are a subset of those of the order before.
        """
        total, power, start = 0, 1, len(context)
        positions: list[Ids] = []
        for order, (hashes, sorted_positions) in zip(self.orders, self.tables, strict=True):
            for back in range(self.orders[len(positions) - 1] if positions else 0, order):
                power = power * _MULTIPLIER & _MASK
                token = context[start - back - 1] if back < start else START
                total = (total + (token + 1) * power) & _MASK
            key = np.uint32((total ^ (total >> 29)) >> 32)
            first = np.searchsorted(hashes, key, "left")
            last = np.searchsorted(hashes, key, "right")
            if first == last:
                break
            positions.append(sorted_positions[first:last])
        return positions


def is_among(positions: Ids, ascending: Ids) -> NDArray[np.bool_]:
    """Return which positions are in an ascending array, however long that one is."""
    if not len(ascending):
        return np.zeros(len(positions), np.bool_)
    nearest = np.searchsorted(ascending, positions)
    is_found: NDArray[np.bool_] = ascending.take(nearest, mode="clip") == positions
    return is_found


def _tables(
    tokens: Ids, starts: NDArray[np.int64], orders: Sequence[int]
) -> Iterator[tuple[NDArray[np.uint32], Ids]]:
    """Yield the sorted context hashes of each order, and their positions."""
    at = np.arange(len(tokens))
    inside = np.flatnonzero(tokens != START).astype(np.int32)
    total = np.zeros(len(tokens), np.uint64)
    power = 1
    for back in range(1, orders[-1] + 1):
        power = power * _MULTIPLIER & _MASK
        before = np.where(at - back >= starts, tokens[np.maximum(at - back, 0)], START)
        total += (before.astype(np.uint64) + np.uint64(1)) * np.uint64(power)
        if back in orders:
            hashes = ((total ^ (total >> np.uint64(29))) >> np.uint64(32)).astype(np.uint32)
            order = np.argsort(hashes[inside], kind="stable")
            yield hashes[inside][order], inside[order]
