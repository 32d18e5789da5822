"""The features of continuations: how often, where and after how long a match each occurs.

Occurrences are sorted by their tokens, so that equal beginnings are neighbours, and counted for
every length at once. Knows no text: a token is an id with a class.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redraft.completion.continuations import (
    ALIGNED,
    ALIGNED_FILE,
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
from redraft.completion.name_evidence import Counts, KnownNames
from redraft.completion.word_classes import JOINED, NEWLINE, NONE, SPACE, SPLIT

SHORT_WIDTH = 4
"""Characters of the shortest continuation."""

_PROJECT_LEVELS = (1, 2, 3, 4, 5, 6)
_FILE_LEVELS = (1, 3, 5)
_SOURCES = (PROJECT, FILE, SIMILAR, OWN, ALIGNED, ALIGNED_FILE)


@dataclass(frozen=True)
class CursorEvidence:
    """Features of the cursor, which all continuations share."""

    features: tuple[float, ...]
    known: KnownNames
    first_words: NDArray[np.int8]  # (V,) code of each word as the first of a line
    following: tuple[int, ...]  # ids of the first tokens after the cursor's line; may be empty

    def row(self, occurrences: Occurrences) -> list[float]:
        """Return the features."""
        longest = [
            occurrences.level[occurrences.source == source].max(initial=0.0) for source in _SOURCES
        ]
        return [*self.features, float(bool(self.following)), *longest]


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
        layout = _Layout.of(occurrences, classes, cursor)
        support = _Support.of(occurrences, layout)
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
    names: tuple[Counts, ...]
    first_word: NDArray[np.int8]  # (N,)
    renamed: Counts
    meets: NDArray[np.int64]  # (N,) token from which the code after the cursor follows; 99: none

    @classmethod
    def of(
        cls, occurrences: Occurrences, classes: NDArray[np.int8], cursor: CursorEvidence
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
        first_text = np.argmax(is_text, 1)
        return cls(
            is_new,
            (ends_line | within) & (width >= SHORT_WIDTH),
            ends_line,
            kinds,
            width,
            lines,
            cursor.known.counts(tokens, kinds),
            cursor.first_words[tokens[np.arange(len(tokens)), first_text]],
            np.cumsum(occurrences.renamed, 1),
            _meeting(tokens, lines, cursor.following),
        )


def _meeting(
    tokens: NDArray[np.int32], lines: NDArray[np.int64], following: tuple[int, ...]
) -> NDArray[np.int64]:
    """Return the token of each row from which the tokens `following` begin a line; 99 if none."""
    if not following:
        return np.full(len(tokens), 99)
    size = tokens.shape[1] - len(following) + 1
    is_equal = lines[:, :size] > 0
    for i, token in enumerate(following):
        is_equal = is_equal & (tokens[:, i : i + size] == token)
    return np.where(is_equal.any(1), is_equal.argmax(1), 99)


@dataclass(frozen=True)
class _Support:
    """The counts and maxima of every occurrence, and the totals of the counts."""

    counts: Floats  # (N, S)
    maxima: Floats  # (N, M)
    totals: Floats  # (S,)
    longest: Floats  # (M,)

    @classmethod
    def of(cls, occurrences: Occurrences, layout: _Layout) -> "_Support":
        source, level, weight = occurrences.source, occurrences.level, occurrences.weight
        counts = [weight * ((source == PROJECT) & (level >= k)) for k in _PROJECT_LEVELS]
        counts += [weight * ((source == FILE) & (level >= k)) for k in _FILE_LEVELS]
        counts += [occurrences.probability, (layout.meets < 99).astype(float)]
        counts += [(source == kind).astype(float) for kind in _SOURCES[2:]]
        maxima = [np.where(source == kind, level, 0.0) for kind in _SOURCES]
        maxima += [-occurrences.rank.astype(float), occurrences.equal, occurrences.coverage]
        table, tops = np.stack(counts, 1), np.stack(maxima, 1)
        return cls(table, tops, table.sum(0), tops.max(0))


def _at_length(
    i: int, layout: _Layout, support: _Support, cursor: list[float]
) -> tuple[NDArray[Any], ...]:
    """Return the columns of `Continuations` for those that end at token `i`."""
    starts = np.flatnonzero(layout.is_new[:, i])
    is_chosen = layout.is_end[starts, i]
    if not is_chosen.any():
        empty = np.zeros(0, np.int64)
        features = np.zeros((0, len(cursor) + _FEATURES), np.float32)
        return *(empty,) * 4, np.zeros(0, np.bool_), features
    counts = np.add.reduceat(support.counts, starts)[is_chosen]
    maxima = np.maximum.reduceat(support.maxima, starts)[is_chosen]
    renamed = np.minimum.reduceat(layout.renamed[:, i], starts)[is_chosen]
    meets = np.minimum.reduceat(layout.meets, starts)[is_chosen]
    ends = np.append(starts[1:], len(layout.is_new))[is_chosen]
    rows = starts[is_chosen]
    count = len(rows)
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
            layout.first_word[rows],
            *(names[rows, i] for names in layout.names),
            renamed,
            np.clip(meets - i - 1, -1, 50),
            counts / np.maximum(support.totals, 1e-9),
            np.log1p(counts[:, [0, 2, 6]]),
            counts[:, 9:],
            maxima,
            maxima - support.longest,
        ]
    ).astype(np.float32)
    lengths = np.full(count, i + 1)
    return rows, ends, lengths, layout.width[rows, i], layout.ends_line[rows, i], features


_COUNTS = len(_PROJECT_LEVELS) + len(_FILE_LEVELS) + 2 + len(_SOURCES) - 2
_MAXIMA = len(_SOURCES) + 3
_FEATURES = 7 + 6 + 2 + _COUNTS + 3 + (_COUNTS - 9) + 2 * _MAXIMA
