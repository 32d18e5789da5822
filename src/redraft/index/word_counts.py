"""Counts of words in memory: for each word the rows that contain it, by NumPy arrays.

Immutable. Joining two and removing rows copies arrays; no word is counted again. Knows words and
rows, no scores.
"""

import json
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from redraft.storage.artifact import Artifact
from redraft.storage.checks import (
    check_ascending,
    check_values,
    damaged,
    read_array,
    read_json,
    same,
)

WORDS = "words.json"
_DTYPES = {"starts": np.int64, "rows": np.uint32, "counts": np.uint32, "lengths": np.uint32}
_MOST = 2**32 - 1

Integers = NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class WordCounts:
    """The rows of each word, ascending, and how often it occurs there."""

    columns: Mapping[str, int]  # the number of each word, ascending
    starts: NDArray[np.int64]  # (V + 1,)
    rows: Integers  # (P,)
    counts: Integers  # (P,)
    lengths: Integers  # (N,), in words

    @classmethod
    def of(cls, bags: Iterable[Sequence[str]]) -> "WordCounts":
        """Count the words of bags; words are numbered in the order of their occurrence."""
        columns: defaultdict[str, int] = defaultdict()
        columns.default_factory = columns.__len__
        occurrences, lengths = array("q"), array("I")
        for bag in bags:
            occurrences.extend(map(columns.__getitem__, bag))
            lengths.append(len(bag))
        size = max(1, len(lengths))
        row = np.repeat(np.arange(len(lengths)), np.array(lengths, np.int64))
        keys, counts = np.unique(np.array(occurrences, np.int64) * size + row, return_counts=True)
        starts = np.searchsorted(keys, np.arange(len(columns) + 1) * size)
        arrays = (keys % size, counts, lengths)
        return cls(
            dict(columns), starts.astype(np.int64), *(np.array(part, np.uint32) for part in arrays)
        )

    def __len__(self) -> int:
        return len(self.lengths)

    def of_word(self, word: str) -> tuple[Integers, Integers]:
        """Return the rows of a word and its counts in them; both are empty for an unknown word."""
        column = self.columns.get(word)
        if column is None:
            return self.rows[:0], self.counts[:0]
        part = slice(*self.starts[column : column + 2].tolist())
        return self.rows[part], self.counts[part]

    def joined(self, other: "WordCounts") -> "WordCounts":
        """Return these counts with the rows of `other` after these rows."""
        if not len(self) or not len(other):
            return other if len(other) else self
        columns = dict(self.columns)
        numbers = np.array(
            [columns.setdefault(word, len(columns)) for word in other.columns], np.int64
        )
        frequencies = np.diff(other.starts)
        added = np.zeros(len(columns), np.int64)
        added[numbers] = frequencies
        ends = np.append(self.starts, np.full(len(columns) - len(self.columns), self.starts[-1]))
        number = np.repeat(numbers, frequencies)
        order = np.argsort(number, kind="stable")
        places = ends[1:][number[order]]
        return WordCounts(
            columns,
            ends + np.append(0, np.cumsum(added)),
            np.insert(self.rows, places, other.rows[order] + np.uint32(len(self))),
            np.insert(self.counts, places, other.counts[order]),
            np.append(self.lengths, other.lengths),
        )

    def without(self, rows: NDArray[np.int64]) -> "WordCounts":
        """Return the counts without these rows; words that occur in no other stay."""
        if not len(rows):
            return self
        is_kept = np.ones(len(self), np.bool_)
        is_kept[rows] = False
        new_rows = (np.cumsum(is_kept) - 1).astype(np.uint32)
        gone = np.flatnonzero(~is_kept[self.rows])
        return WordCounts(
            self.columns,
            self.starts - np.searchsorted(gone, self.starts),
            new_rows[np.delete(self.rows, gone)],
            np.delete(self.counts, gone),
            self.lengths[is_kept],
        )

    def without_unused_words(self) -> "WordCounts":
        """Return the counts of the words that occur."""
        is_used = np.diff(self.starts) > 0
        if is_used.all():
            return self
        words = compress(self.columns, is_used.tolist())
        columns = {word: column for column, word in enumerate(words)}
        starts = np.append(0, self.starts[1:][is_used])
        return WordCounts(columns, starts, self.rows, self.counts, self.lengths)

    def save(self, folder: Path) -> None:
        """Write the arrays and the words into an existing folder."""
        for name in _DTYPES:
            np.save(folder / f"{name}.npy", getattr(self, name), allow_pickle=False)
        text = json.dumps(list(self.columns), ensure_ascii=False)
        # lone surrogates, which UTF-8 cannot encode, become JSON escapes
        (folder / WORDS).write_text(text, encoding="utf-8", errors="backslashreplace")

    @classmethod
    def load(cls, artifact: Artifact, examples: int) -> "WordCounts":
        """Return the saved counts of this many examples; check every value."""
        paths = {name: artifact.path(f"{name}.npy") for name in _DTYPES}
        arrays = {name: read_array(paths[name], dtype, (None,)) for name, dtype in _DTYPES.items()}
        starts, rows, counts, lengths = (np.array(part) for part in arrays.values())
        words = _read_words(artifact.path(WORDS))
        if len(starts) != len(words) + 1 or starts[0] != 0 or starts[-1] != len(rows):
            raise damaged(paths["starts"], f"not the starts of {len(words):,} words")
        check_ascending(paths["starts"], "the starts of words", starts)
        same(paths["counts"], "rows and their counts", (len(rows), len(counts)))
        same(paths["lengths"], "examples and their lengths", (examples, len(lengths)))
        check_values(paths["rows"], "the rows", rows, least=0, most=examples - 1)
        check_ascending(paths["rows"], "the rows of a word", rows, starts=starts)
        check_values(paths["counts"], "the counts", counts, least=1, most=_MOST)
        columns = {word: column for column, word in enumerate(words)}
        return cls(columns, starts, rows, counts, lengths)


def _read_words(path: Path) -> list[str]:
    words = read_json(path)
    if not isinstance(words, list) or not all(type(word) is str for word in words):
        raise damaged(path, "not a list of words")
    if len(set(words)) < len(words):
        raise damaged(path, "a word occurs twice")
    return words
