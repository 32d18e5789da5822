"""The features of continuations: how often, where and after how long a match each occurs.

Occurrences are sorted by their tokens, so that equal beginnings are neighbours, and counted for
every length at once. Knows no text: a token is an id with a class.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redraft.completion.continuations import (
    FILE,
    MAX_LINES,
    MAX_TOKENS,
    MIN_WIDTH,
    OWN,
    PROJECT,
    SIMILAR,
    Floats,
    Occurrences,
)
from redraft.completion.word_classes import JOINED, NAME, NEWLINE, NONE, SPACE, SPLIT

SHORT_WIDTH = 4
"""Characters of the shortest continuation."""

_PROJECT_LEVELS = (1, 2, 3, 4, 5, 6)
_FILE_LEVELS = (1, 3, 5)


@dataclass(frozen=True)
class CursorEvidence:
    """Features of the cursor, which all continuations share."""

    tokens: int  # of the prefix
    last_class: int  # of the last token of the prefix
    is_attribute: bool  # the prefix ends in a dot
    matches: int  # positions with the longest match in the project
    shares: tuple[float, float]  # of the most similar function, and of the first four
    score: float  # of the most similar function
    known: NDArray[np.int32]  # ids of the words of header and prefix

    def row(self, occurrences: Occurrences) -> list[float]:
        """Return the features."""
        longest = [
            occurrences.level[occurrences.source == source].max(initial=0.0)
            for source in (PROJECT, FILE, SIMILAR, OWN)
        ]
        return [
            min(self.tokens, 40),
            self.last_class,
            float(self.is_attribute),
            np.log1p(self.matches),
            *self.shares,
            self.score,
            *longest,
        ]


@dataclass(frozen=True)
class Continuations:
    """Distinct continuations: each is the first `length` tokens of the occurrences in its rows."""

    occurrences: Occurrences  # sorted by tokens
    first: NDArray[np.int64]  # (C,) first row
    last: NDArray[np.int64]  # (C,) row after the last
    length: NDArray[np.int64]  # (C,) tokens
    width: NDArray[np.int64]  # (C,) characters
    ends_line: NDArray[np.bool_]  # (C,)
    features: NDArray[np.float32]  # (C, F)

    @classmethod
    def of(
        cls, occurrences: Occurrences, cursor: CursorEvidence, classes: NDArray[np.int8]
    ) -> "Continuations":
        """Merge equal continuations and compute their features."""
        occurrences = occurrences.take(np.lexsort(occurrences.tokens.T[::-1]))
        layout = _Layout.of(occurrences, classes, cursor.known)
        support = _Support.of(occurrences)
        row = cursor.row(occurrences)
        parts = [_at_length(i, layout, support, row) for i in range(MAX_TOKENS)]
        columns = (np.concatenate([part[j] for part in parts]) for j in range(6))
        return cls(occurrences, *columns)


@dataclass(frozen=True)
class _Layout:
    """Of every token of every occurrence: whether a continuation may end there, and its counts."""

    is_new: NDArray[np.bool_]  # (N, D) differs from the row above in this token or before
    is_end: NDArray[np.bool_]
    ends_line: NDArray[np.bool_]
    classes: NDArray[np.int8]
    width: NDArray[np.int64]
    lines: NDArray[np.int64]
    names: NDArray[np.int64]
    unknown: NDArray[np.int64]

    @classmethod
    def of(
        cls, occurrences: Occurrences, classes: NDArray[np.int8], known: NDArray[np.int32]
    ) -> "_Layout":
        tokens = occurrences.tokens
        kinds = classes[tokens]
        is_new = np.ones(tokens.shape, np.bool_)
        is_new[1:] = np.cumsum(tokens[1:] != tokens[:-1], 1) > 0
        is_text = ~np.isin(kinds, (NONE, NEWLINE, SPACE, JOINED))
        width = np.cumsum(np.where(is_text, occurrences.widths, 0), 1)
        lines = np.cumsum((kinds == NEWLINE) & (width > 0), 1)
        following = np.full_like(kinds, SPACE)
        following[:, :-1] = kinds[:, 1:]
        ends_line = is_text & np.isin(following, (NEWLINE, NONE)) & (lines < MAX_LINES)
        before = np.zeros_like(width)
        before[:, 1:] = width[:, :-1]
        reaches = ((before < MIN_WIDTH) & (width >= MIN_WIDTH)) | (
            (before < SHORT_WIDTH) & (width >= SHORT_WIDTH)
        )
        within = is_text & (lines == 0) & (reaches | ((width >= MIN_WIDTH) & (kinds == SPLIT)))
        is_name = kinds == NAME
        return cls(
            is_new,
            (ends_line | within) & (width >= SHORT_WIDTH),
            ends_line,
            kinds,
            width,
            lines,
            np.cumsum(is_name, 1),
            np.cumsum(is_name & ~np.isin(tokens, known), 1),
        )


@dataclass(frozen=True)
class _Support:
    """The counts and maxima of every occurrence, and the totals of the counts."""

    counts: Floats  # (N, S)
    maxima: Floats  # (N, M)
    totals: Floats  # (S,)
    longest: Floats  # (M,)

    @classmethod
    def of(cls, occurrences: Occurrences) -> "_Support":
        source, level, weight = occurrences.source, occurrences.level, occurrences.weight
        counts = [weight * ((source == PROJECT) & (level >= k)) for k in _PROJECT_LEVELS]
        counts += [weight * ((source == FILE) & (level >= k)) for k in _FILE_LEVELS]
        counts += [
            occurrences.probability,
            (source == SIMILAR).astype(float),
            (source == OWN).astype(float),
        ]
        maxima = [np.where(source == kind, level, 0.0) for kind in (PROJECT, FILE, SIMILAR, OWN)]
        maxima.append(-occurrences.rank.astype(float))
        table, tops = np.stack(counts, 1), np.stack(maxima, 1)
        return cls(table, tops, table.sum(0), tops.max(0))


def _at_length(
    i: int, layout: _Layout, support: _Support, cursor: list[float]
) -> tuple[NDArray[Any], ...]:
    """Return the columns of `Continuations` for those that end at token `i`."""
    starts = np.flatnonzero(layout.is_new[:, i])
    is_chosen = layout.is_end[starts, i]
    if not is_chosen.any():
        width = len(cursor) + _FEATURES
        empty = np.zeros(0, np.int64)
        return *(empty,) * 4, np.zeros(0, np.bool_), np.zeros((0, width), np.float32)
    counts = np.add.reduceat(support.counts, starts)[is_chosen]
    maxima = np.maximum.reduceat(support.maxima, starts)[is_chosen]
    ends = np.append(starts[1:], len(layout.is_new))[is_chosen]
    rows = starts[is_chosen]
    count = len(rows)
    shares = counts / np.maximum(support.totals, 1e-9)
    first_text = np.argmax(layout.width[rows] > 0, 1)
    features = np.column_stack(
        [
            np.tile(cursor, (count, 1)),
            layout.width[rows, i],
            np.full(count, i + 1),
            layout.ends_line[rows, i],
            layout.lines[rows, i],
            layout.classes[rows, i],
            layout.classes[rows, first_text],
            layout.names[rows, i],
            layout.unknown[rows, i],
            shares,
            np.log1p(counts[:, [0, 2, 6]]),
            counts[:, 9:],
            maxima,
            (maxima - support.longest)[:, :4],
        ]
    ).astype(np.float32)
    lengths = np.full(count, i + 1)
    return rows, ends, lengths, layout.width[rows, i], layout.ends_line[rows, i], features


_FEATURES = 8 + 12 + 3 + 3 + 5 + 4
