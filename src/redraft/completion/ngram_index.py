"""An n-gram index of a code base: the positions at which the end of a context occurs.

Every output is a stream of token ids between `START` and `END`. For each order k, the positions are
sorted by a hash of the k tokens before them, so that a lookup is a binary search. Knows no cursor.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from redraft.completion.word_classes import EDGES, word_classes
from redraft.text.tokenizer import Tokenizer, spell
from redraft.types import Example

ORDERS = (1, 2, 3, 4, 6, 9, 13)
"""Context lengths that are indexed, in tokens."""

MAX_WIDTH = 1000
"""Characters of a token that count."""

START, END = 0, 1
"""Ids before the first and after the last token of an output."""

_MULTIPLIER = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1

Ids = NDArray[np.int32]
Encoded = tuple[Ids, NDArray[np.int16]]


@dataclass(frozen=True)
class NgramIndex:
    """The tokens of all examples, and for each order the sorted hashes and their positions."""

    examples: Sequence[Example]
    words: Sequence[str]
    ids: Mapping[str, int]
    tokens: Ids  # (S,)
    widths: NDArray[np.int16]  # (S,) characters of each token, with its implicit space
    rows: Ids  # (S,) the example of each position
    tables: Sequence[tuple[NDArray[np.uint32], Ids]]
    encoded: Mapping[str, Encoded]

    @classmethod
    def build(cls, examples: Sequence[Example], known: "NgramIndex | None" = None) -> "NgramIndex":
        """Index the outputs of `examples`; outputs that `known` has are not tokenized again."""
        words = list(known.words) if known else list(EDGES)
        ids = dict(known.ids) if known else {word: i for i, word in enumerate(words)}
        cache = known.encoded if known else {}
        encoded: dict[str, Encoded] = {}
        for example in examples:
            if example.y not in encoded:
                encoded[example.y] = cache.get(example.y) or _encode(example.y, words, ids)
        streams = [encoded[example.y] for example in examples]
        lengths = [len(stream[0]) for stream in streams]
        tokens = np.concatenate([[END], *(stream[0] for stream in streams)]).astype(np.int32)[1:]
        widths = np.concatenate([[0], *(stream[1] for stream in streams)]).astype(np.int16)[1:]
        rows = np.repeat(np.arange(len(streams), dtype=np.int32), lengths)
        starts = np.repeat(np.cumsum([0, *lengths])[:-1], lengths)
        tables = list(_tables(tokens, starts))
        return cls(examples, words, ids, tokens, widths, rows, tables, encoded)

    @cached_property
    def classes(self) -> NDArray[np.int8]:
        """Return the class of each word."""
        return word_classes(self.words)

    @cached_property
    def rows_of_file(self) -> dict[str, list[int]]:
        """Return the examples of each file, in order."""
        files: dict[str, list[int]] = {}
        for row, example in enumerate(self.examples):
            files.setdefault(str(example.meta.get("file")), []).append(row)
        return files

    def file_named(self, path: str) -> str | None:
        """Return the indexed file that a path ends with, the longest if there are several."""
        parts = path.replace("\\", "/").split("/")
        names = ("/".join(parts[i:]) for i in range(len(parts)))
        return next((name for name in names if name in self.rows_of_file), None)

    def matches(self, context: Sequence[int]) -> list[Ids]:
        """Return, for each order up to the longest match, the positions after that context.

        The positions of an order are a subset of those of the order before.
        """
        total, power, start = 0, 1, len(context)
        positions: list[Ids] = []
        for order, (hashes, sorted_positions) in zip(ORDERS, self.tables, strict=True):
            for back in range(ORDERS[len(positions) - 1] if positions else 0, order):
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


def _encode(text: str, words: list[str], ids: dict[str, int]) -> Encoded:
    """Return the ids of a text between `START` and `END`, and the width of each."""
    tokens = Tokenizer().tokenize(text)
    for token in tokens:
        if token not in ids:
            ids[token] = len(words)
            words.append(token)
    stream = [START, *(ids[token] for token in tokens), END]
    return np.asarray(stream, np.int32), token_widths(tokens)


def token_widths(tokens: Sequence[str]) -> NDArray[np.int16]:
    """Return the characters of each token with its implicit space, 0 for `START` and `END`.

    Longer tokens than `MAX_WIDTH`, such as data in a string, count as that long.
    """
    return np.asarray([0, *(min(len(text), MAX_WIDTH) for text in spell(tokens)), 0], np.int16)


def _tables(tokens: Ids, starts: NDArray[np.int64]) -> Iterable[tuple[NDArray[np.uint32], Ids]]:
    """Yield the sorted context hashes of each order, and their positions."""
    at = np.arange(len(tokens))
    inside = np.flatnonzero(tokens != START).astype(np.int32)
    total = np.zeros(len(tokens), np.uint64)
    power = 1
    for back in range(1, ORDERS[-1] + 1):
        power = power * _MULTIPLIER & _MASK
        before = np.where(at - back >= starts, tokens[np.maximum(at - back, 0)], START)
        total += (before.astype(np.uint64) + np.uint64(1)) * np.uint64(power)
        if back in ORDERS:
            hashes = ((total ^ (total >> np.uint64(29))) >> np.uint64(32)).astype(np.uint32)
            order = np.argsort(hashes[inside], kind="stable")
            yield hashes[inside][order], inside[order]
