"""Phrases: frequent sequences of tokens as single units, by byte-pair encoding over tokens.

Sennrich et al. 2016, with tokens in the place of characters. `FROM CITY AS CITYalias0 WHERE` is one
phrase where many outputs have it, so that a network makes one decision instead of five. Knows
tokens, no vocabulary and no model.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heappop, heappush
from itertools import pairwise

CACHED = 20_000
"""Encoded sequences that are kept in memory: masked outputs repeat."""

Unit = tuple[str, ...]
"""A phrase, or a single token."""

MAX_MERGES = 600
MAX_SEQUENCES = 1_000
"""Different sequences that phrases are learned from; of more, an even sample."""

MIN_COUNT = 3
"""The number of sequences that must have a pair of units for it to be merged."""


@dataclass(frozen=True)
class Phrases:
    """Merges of two units, in the order in which they were learned."""

    merges: tuple[tuple[Unit, Unit], ...]

    @classmethod
    def learn(
        cls, sequences: Iterable[Sequence[str]], *, is_atomic: Callable[[str], bool]
    ) -> "Phrases":
        """Merge the pair of units that most different `sequences` have, again and again.

        Tokens for which `is_atomic` is True stay alone. Equal sequences count once.
        """
        distinct = list(dict.fromkeys(map(tuple, sequences)))
        distinct = distinct[:: max(1, -(-len(distinct) // MAX_SEQUENCES))]
        rows: list[list[Unit]] = [[(token,) for token in row] for row in distinct]
        rows_with: dict[tuple[Unit, Unit], set[int]] = defaultdict(set)

        def pairs(row: Sequence[Unit]) -> set[tuple[Unit, Unit]]:
            return {pair for pair in pairwise(row) if not any(is_atomic(unit[0]) for unit in pair)}

        for i, row in enumerate(rows):
            for pair in pairs(row):
                rows_with[pair].add(i)
        # ties are broken by the tokens, so that equal sequences give equal phrases
        heap = [(-len(having), pair) for pair, having in rows_with.items()]
        heapify(heap)
        merges: list[tuple[Unit, Unit]] = []
        while heap and len(merges) < MAX_MERGES:
            count, best = heappop(heap)
            if -count != len(rows_with[best]):
                continue  # outdated: the present count was pushed when it changed
            if -count < MIN_COUNT:
                break
            merges.append(best)
            changed: set[tuple[Unit, Unit]] = set()
            for i in sorted(rows_with[best]):
                before = pairs(rows[i])
                rows[i] = _merge(rows[i], best)
                after = pairs(rows[i])
                for pair in before - after:
                    rows_with[pair].discard(i)
                for pair in after - before:
                    rows_with[pair].add(i)
                changed |= before ^ after
            for pair in changed:
                heappush(heap, (-len(rows_with[pair]), pair))
        return cls(tuple(merges))

    def encode(self, tokens: Sequence[str]) -> list[Unit]:
        """Join tokens to phrases, the merges that were learned first before the others."""
        key = tuple(tokens)
        if key not in self._encoded:
            if len(self._encoded) >= CACHED:
                self._encoded.clear()
            self._encoded[key] = self._encode(key)
        return self._encoded[key]

    def _encode(self, tokens: Sequence[str]) -> list[Unit]:
        units: list[Unit] = [(token,) for token in tokens]
        while len(units) > 1:
            ranks = [self._ranks.get(pair, len(self.merges)) for pair in pairwise(units)]
            first = min(ranks)
            if first == len(self.merges):
                break
            units = _merge(units, self.merges[first])
        return units

    @cached_property
    def _encoded(self) -> dict[tuple[str, ...], list[Unit]]:
        return {}

    @cached_property
    def _ranks(self) -> dict[tuple[Unit, Unit], int]:
        return {pair: rank for rank, pair in enumerate(self.merges)}


def _merge(row: Sequence[Unit], pair: tuple[Unit, Unit]) -> list[Unit]:
    return list(_merged(row, pair))


def _merged(row: Sequence[Unit], pair: tuple[Unit, Unit]) -> Iterator[Unit]:
    i = 0
    while i < len(row):
        is_pair = i + 1 < len(row) and row[i] == pair[0] and row[i + 1] == pair[1]
        yield pair[0] + pair[1] if is_pair else row[i]
        i += 1 + is_pair
