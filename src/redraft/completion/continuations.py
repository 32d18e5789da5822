"""Continuations of a prefix that occur elsewhere, with the evidence for each.

An occurrence is a position whose preceding tokens match the end of the prefix: in the project, in
the same file, in the function itself, or in a similar function with its names renamed
(`aligned_names` has those that match but for names). What follows an occurrence, cut where a
suggestion may end, is a continuation. Equal continuations are merged, and their occurrences become
the features by which they are ranked.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from redraft.completion.context_tables import END, START, Ids, is_among
from redraft.completion.ngram_index import ORDERS, NgramIndex

MAX_TOKENS = 32
"""Maximum tokens of a continuation."""

MIN_WIDTH = 10
"""Characters from which a continuation may end within a line."""

MAX_LINES = 3
"""Maximum lines of a continuation."""

PROJECT, FILE, SIMILAR, OWN, ALIGNED, ALIGNED_FILE = range(6)
"""Where an occurrence is; in the last two, names were renamed to those of the prefix."""

_LONGEST_MATCH = 16
_LEVELS = len(ORDERS)
_MAX_PER_LEVEL = 40
_MAX_PROJECT = 100
_MAX_FILE_PER_LEVEL = 20
_SCANNED = 4000

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Stream:
    """Tokens that continuations are copied from, with the width of each."""

    tokens: Ids
    widths: NDArray[np.int16]

    @classmethod
    def join(cls, streams: "Sequence[Stream]") -> "Stream":
        """Concatenate streams."""
        return cls(
            np.concatenate([stream.tokens for stream in streams]),
            np.concatenate([stream.widths for stream in streams]),
        )


@dataclass(frozen=True)
class Occurrences:
    """Positions that match the end of the prefix, and what follows each: N in all."""

    tokens: Ids  # (N, MAX_TOKENS), START where the stream is over
    widths: NDArray[np.int16]  # (N, MAX_TOKENS)
    source: NDArray[np.int8]  # (N,)
    level: Floats  # (N,) length of the match: index of the order, or tokens outside the index
    weight: Floats  # (N,) occurrences that it stands for
    rank: NDArray[np.int16]  # (N,) of the similar function
    probability: Floats  # (N,) of the similar function
    origin: Ids  # (N,) position in the index; -1 elsewhere
    equal: Floats  # (N,) tokens of an aligned match that are equal, not only of equal shape
    renamed: NDArray[np.bool_]  # (N, MAX_TOKENS) tokens that were renamed
    coverage: Floats  # (N,) share of the names at the cursor that the function has

    @classmethod
    def join(cls, parts: "Sequence[Occurrences]") -> "Occurrences":
        """Concatenate occurrences."""
        fields = cls.__dataclass_fields__
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in fields))

    def take(self, rows: NDArray[np.int64]) -> "Occurrences":
        """Select rows."""
        return Occurrences(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


def following(stream: Stream, positions: Ids) -> tuple[Ids, NDArray[np.int16]]:
    """Return the tokens from each position to the end of its output, and their widths."""
    indices = positions[:, None] + np.arange(MAX_TOKENS)
    inside = indices < len(stream.tokens)
    indices = np.minimum(indices, len(stream.tokens) - 1)
    tokens = np.where(inside, stream.tokens[indices], START)
    is_over = np.cumsum((tokens == END) | (tokens == START), 1) > 0
    return np.where(is_over, START, tokens), np.where(is_over, 0, stream.widths[indices])


def occurrences_at(
    stream: Stream, positions: Ids, source: int, *, level: Floats, weight: float = 1.0
) -> Occurrences:
    """Return what follows each position of a stream."""
    tokens, widths = following(stream, positions)
    count = len(positions)
    return Occurrences(
        tokens,
        widths,
        np.full(count, source, np.int8),
        level,
        np.full(count, weight),
        np.full(count, 99, np.int16),
        np.zeros(count),
        positions if source in (PROJECT, FILE) else np.full(count, -1, np.int32),
        np.zeros(count),
        np.zeros(tokens.shape, np.bool_),
        np.zeros(count),
    )


def in_project(
    index: NgramIndex,
    context: Sequence[int],
    is_same_file: NDArray[np.bool_],
    is_source: NDArray[np.bool_],
) -> list[Occurrences]:
    """Return a sample of the occurrences in the index, longest match first.

    `is_same_file` tells of each example whether it is in the file of the cursor, `is_source`
    whether it may be copied from.
    """
    stream = Stream(index.tokens, index.widths)
    matches = index.contexts.matches(context)
    sampled: list[Occurrences] = []
    taken = 0
    for i in reversed(range(len(matches))):
        positions = matches[i][:: -(-len(matches[i]) // _SCANNED)]
        if i + 1 < len(matches):
            positions = positions[~is_among(positions, matches[i + 1])]
        rows = index.rows[positions]
        kept = is_source[rows]
        positions, rows = positions[kept], rows[kept]
        in_file = positions[is_same_file[rows]]
        parts = [(FILE, in_file[-_MAX_FILE_PER_LEVEL:], len(in_file))]
        if taken < _MAX_PROJECT:
            chosen = positions[:: max(1, -(-len(positions) // _MAX_PER_LEVEL))]
            parts.append((PROJECT, chosen, len(positions)))
            taken += len(chosen)
        sampled += [
            occurrences_at(
                stream, part, source, level=np.full(len(part), i + 1.0), weight=count / len(part)
            )
            for source, part, count in parts
            if len(part)
        ]
    return sampled


def match_lengths(tokens: Ids, context: Sequence[int]) -> NDArray[np.int64]:
    """Return for each position how many tokens before it equal the end of the context.

    The context begins with `START`, which counts as a token.
    """
    lengths = np.zeros(len(tokens), np.int64)
    is_match = np.ones(len(tokens), np.bool_)
    before = [START, *context]
    for back in range(1, min(len(before), _LONGEST_MATCH, len(tokens) - 1) + 1):
        is_match[:back] = False
        is_match[back:] &= tokens[:-back] == before[-back]
        if not is_match.any():
            break
        lengths[is_match] = back
    return lengths


def in_function(stream: Stream, context: Sequence[int]) -> list[Occurrences]:
    """Return the occurrences of the end of the prefix in the prefix itself, given as a stream."""
    lengths = match_lengths(stream.tokens, context)[:-1]
    best = int(lengths.max(initial=0))
    if best < 2:  # a single token is no evidence
        return []
    positions = np.flatnonzero(lengths == best).astype(np.int32)
    return [occurrences_at(stream, positions, OWN, level=lengths[positions].astype(float))]


def in_similar(
    streams: Sequence[Stream], probabilities: Sequence[float], context: Sequence[int]
) -> list[Occurrences]:
    """Return the best occurrence in each similar function.

    Of several equally long matches the one whose offset is nearest to that of the cursor.
    """
    if not streams:
        return []
    joined = Stream.join(streams)
    lengths = match_lengths(joined.tokens, context)  # no match extends beyond a `START`
    ends = np.cumsum([len(stream.tokens) for stream in streams]).tolist()
    ranks, nearest = [], []
    for rank, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        best = int(lengths[start:end].max())
        if best:
            offsets = np.flatnonzero(lengths[start:end] == best)
            offset = offsets[np.argmin(np.abs(offsets - 1 - len(context)))]
            ranks.append(rank)
            nearest.append(start + int(offset))
    positions = np.asarray(nearest, np.int32)
    found = occurrences_at(joined, positions, SIMILAR, level=lengths[positions].astype(float))
    found.rank[:] = ranks
    found.probability[:] = [probabilities[rank] for rank in ranks]
    return [found] if ranks else []
