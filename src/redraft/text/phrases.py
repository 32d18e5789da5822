"""Phrases: frequent sequences of tokens as single units, by byte-pair encoding over tokens.

Sennrich et al. 2016, with tokens in the place of characters. `FROM CITY AS CITYalias0 WHERE` is one
phrase where many outputs have it, so that a network makes one decision instead of five. Knows
tokens, no vocabulary and no model.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

Unit = tuple[str, ...]
"""A phrase, or a single token."""

MAX_MERGES = 600
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
        distinct = dict.fromkeys(map(tuple, sequences))
        rows: list[list[Unit]] = [[(token,) for token in row] for row in distinct]
        counts: Counter[tuple[Unit, Unit]] = Counter()
        rows_with: dict[tuple[Unit, Unit], set[int]] = defaultdict(set)

        def pairs(row: Sequence[Unit]) -> set[tuple[Unit, Unit]]:
            return {pair for pair in pairwise(row) if not any(is_atomic(unit[0]) for unit in pair)}

        def recount(i: int, pairs: Iterable[tuple[Unit, Unit]], change: int) -> None:
            for pair in pairs:
                counts[pair] += change
                if change > 0:
                    rows_with[pair].add(i)
                else:
                    rows_with[pair].discard(i)

        for i, row in enumerate(rows):
            recount(i, pairs(row), 1)
        merges: list[tuple[Unit, Unit]] = []
        while counts and len(merges) < MAX_MERGES:
            # ties are broken by the tokens, so that equal sequences give equal phrases
            best, count = min(counts.items(), key=lambda item: (-item[1], item[0]))
            if count < MIN_COUNT:
                break
            merges.append(best)
            for i in sorted(rows_with[best]):
                before = pairs(rows[i])
                rows[i] = _merge(rows[i], best)
                after = pairs(rows[i])
                recount(i, before - after, -1)
                recount(i, after - before, 1)
        return cls(tuple(merges))

    def encode(self, tokens: Sequence[str]) -> list[Unit]:
        """Join tokens to phrases, the merges that were learned first before the others."""
        units: list[Unit] = [(token,) for token in tokens]
        while len(units) > 1:
            rank, pair = min(
                (self._ranks.get(pair, len(self.merges)), pair) for pair in pairwise(units)
            )
            if rank == len(self.merges):
                break
            units = _merge(units, pair)
        return units

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
