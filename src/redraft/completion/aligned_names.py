"""Occurrences that match the end of the prefix but for names, which are renamed.

`if user is None:` matches the end of `if order is None:`; the names that stand opposite each other
in the match are carried over into what follows (`user = []` becomes `order = []`). Knows no text: a
token is an id with a class.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from redraft.completion.context_tables import START, Ids
from redraft.completion.continuations import (
    ALIGNED,
    ALIGNED_FILE,
    Occurrences,
    Stream,
    occurrences_at,
)
from redraft.completion.ngram_index import ANY_NAME, NgramIndex
from redraft.completion.word_classes import NAME

WINDOW = 24
"""Tokens before the cursor that are compared."""

_SHORTEST = 3
_SCANNED = 400
_KEPT = 40
_NOTHING = -2


@dataclass(frozen=True)
class WordTables:
    """The class and the length of each word, and the id of the mark of a missing space."""

    classes: NDArray[np.int8]
    lengths: NDArray[np.int16]
    join: int


@dataclass(frozen=True)
class Alignment:
    """The tokens before positions, nearest first, compared with those of the prefix."""

    before: Ids  # (N, WINDOW)
    context: Ids  # (WINDOW,)
    matches: NDArray[np.bool_]  # (N, WINDOW) equal or both names, without a gap
    equal: NDArray[np.int64]  # (N,) equal tokens

    @classmethod
    def of(
        cls, tokens: Ids, positions: Ids, context: Sequence[int], classes: NDArray[np.int8]
    ) -> "Alignment":
        """Compare the tokens before each position with the end of the context."""
        indices = positions[:, None] - np.arange(1, WINDOW + 1)
        before = np.where(indices >= 0, tokens[np.maximum(indices, 0)], START)
        nearest = [*reversed(context[-WINDOW:]), START, *[_NOTHING] * WINDOW][:WINDOW]
        end = np.asarray(nearest, np.int32)
        is_name = (classes[before] == NAME) & (classes[np.maximum(end, 0)] == NAME)
        is_equal = before == end
        matches = np.logical_and.accumulate(is_equal | is_name, axis=1)
        return cls(before, end, matches, (matches & is_equal).sum(1))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Return the length of each match."""
        return np.asarray(self.matches.sum(1))

    def take(self, rows: NDArray[np.int64]) -> "Alignment":
        """Select rows."""
        return Alignment(self.before[rows], self.context, self.matches[rows], self.equal[rows])

    def renamed(self, tokens: Ids, words: WordTables) -> Ids:
        """Return following tokens (N, D), each name as the nearest one before it was renamed."""
        is_name = self.matches & (words.classes[self.before] == NAME)
        found = (tokens[:, :, None] == self.before[:, None, :]) & is_name[:, None, :]  # (N, D, W)
        is_keyword = np.zeros(tokens.shape, np.bool_)
        is_keyword[:, :-1] = tokens[:, 1:] == words.join  # of an argument: the callee's name
        return np.where(found.any(2) & ~is_keyword, self.context[found.argmax(2)], tokens)


def aligned_in_project(
    index: NgramIndex,
    context: Sequence[int],
    words: WordTables,
    is_same_file: NDArray[np.bool_],
    is_source: NDArray[np.bool_],
) -> list[Occurrences]:
    """Return the occurrences in the index that match best, those of the same file first.

    `is_source` tells of each example whether it may be copied from.
    """
    end = np.asarray(context[-WINDOW:], np.int32)
    shape = np.where(words.classes[end] == NAME, ANY_NAME, end).tolist()
    matches = index.shapes.matches(shape)
    if not matches:
        return []
    positions = matches[-1][:: -(-len(matches[-1]) // _SCANNED)]
    if len(matches) > 1 and len(positions) < _KEPT:
        more = matches[-2][:: -(-len(matches[-2]) // _SCANNED)]
        positions = np.union1d(positions, more)
    positions = positions[is_source[index.rows[positions]]]
    if not len(positions):
        return []
    alignment = Alignment.of(index.tokens, positions, context, words.classes)
    in_file = is_same_file[index.rows[positions]]
    score = alignment.lengths + alignment.equal + 4 * in_file
    best = np.argsort(-score, kind="stable")[:_KEPT]
    best = best[alignment.lengths[best] >= _SHORTEST]
    stream = Stream(index.tokens, index.widths)
    return [
        replace(
            _occurrences(stream, positions[rows], alignment.take(rows), words, source),
            origin=positions[rows],
        )
        for source, rows in (
            (ALIGNED, best[~in_file[best]]),
            (ALIGNED_FILE, best[in_file[best]]),
        )
        if len(rows)
    ]


def aligned_in_streams(
    streams: Sequence[Stream], context: Sequence[int], words: WordTables
) -> list[Occurrences]:
    """Return the best occurrence in each stream, with its index as rank."""
    if not streams:
        return []
    joined = Stream.join(streams)
    positions = np.arange(len(joined.tokens), dtype=np.int32)
    alignment = Alignment.of(joined.tokens, positions, context, words.classes)
    score = alignment.lengths + alignment.equal
    ends = np.cumsum([len(stream.tokens) for stream in streams])
    starts = ends - [len(stream.tokens) for stream in streams]
    score[starts] = score[ends - 1] = 0  # the edges: nothing follows the end
    best = np.asarray(
        [
            start + score[start:end].argmax()
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ]
    )
    rank = np.flatnonzero((alignment.lengths[best] >= _SHORTEST) & (score[best] > 0))
    best = best[rank]
    if not len(best):
        return []
    found = _occurrences(joined, positions[best], alignment.take(best), words, ALIGNED_FILE)
    return [replace(found, rank=rank.astype(np.int16))]


def _occurrences(
    stream: Stream, positions: Ids, alignment: Alignment, words: WordTables, source: int
) -> Occurrences:
    found = occurrences_at(stream, positions, source, level=alignment.lengths.astype(float))
    tokens = alignment.renamed(found.tokens, words)
    longer = words.lengths[tokens] - words.lengths[found.tokens]
    return replace(
        found,
        tokens=tokens,
        widths=found.widths + longer,
        equal=alignment.equal.astype(float),
        renamed=tokens != found.tokens,
    )
