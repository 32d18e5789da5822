"""BM25 as in Lucene over word counts in memory.

Every new row changes the IDF of each word and the mean length, so scores are computed when they are
asked for, and kept: counts are all that a changed index shares with the one before. Knows words and
rows, no examples.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redraft.index.word_counts import Integers, WordCounts
from redraft.storage.artifact import Artifact

K1, B = 1.5, 0.75
"""BM25's term-frequency saturation and length normalisation."""

MAX_ADDED = 1_024
"""Rows that are kept apart from the large arrays; more of them are joined with these."""

Scores = NDArray[np.float32]


class Bm25Index:
    """Word counts in two parts, and scores of words.

    `added` are the rows after those of `base`. They are few, so that adding a row copies no large
    array.
    """

    def __init__(self, base: WordCounts, added: WordCounts | None = None) -> None:
        self.base = base
        self.added = WordCounts.of([]) if added is None else added
        self._scored: dict[str, tuple[Integers, Scores]] = {}

    @classmethod
    def build(cls, bags: Iterable[Sequence[str]]) -> "Bm25Index":
        """Return an index of bags of words; equal bags give equal files."""
        return cls(WordCounts.of(bags))

    def __len__(self) -> int:
        return len(self.base) + len(self.added)

    def replace(self, rows: Sequence[int], bags: Iterable[Sequence[str]]) -> "Bm25Index":
        """Return an index without the given rows and with `bags` appended."""
        removed = np.asarray(rows, np.int64)
        first = len(self.base)
        base = self.base.without(removed[removed < first])
        kept = self.added.without(removed[removed >= first] - first).without_unused_words()
        added = kept.joined(WordCounts.of(bags))
        if len(added) > MAX_ADDED:
            return Bm25Index(base.joined(added).without_unused_words())
        return Bm25Index(base, added)

    def scores(self, bag: Iterable[str]) -> Scores:
        """Return the score (N,) of each row for a bag of words, summed in the order of words."""
        totals = np.zeros(len(self), np.float32)
        found = [self.of_word(word) for word in bag]
        if found:
            rows, scores = zip(*found, strict=True)
            # indices of another type would take the slow path of add.at
            np.add.at(totals, np.concatenate(rows, dtype=np.intp), np.concatenate(scores))
        return totals

    def of_word(self, word: str) -> tuple[Integers, Scores]:
        """Return the rows that contain a word, ascending, and its score in them."""
        if word in self._scored:
            return self._scored[word]
        rows, counts = self.base.of_word(word)
        added_rows, added_counts = self.added.of_word(word)
        if len(added_rows):
            rows = np.append(rows, added_rows + np.uint32(len(self.base)))
            counts = np.append(counts, added_counts)
        if not len(rows):  # not kept: inputs have words without limit
            return rows, np.zeros(0, np.float32)
        scores = bm25_scores(counts, self._weights[rows], idf(len(self), len(rows)))
        self._scored[word] = rows, scores
        return rows, scores

    @cached_property
    def _weights(self) -> NDArray[np.float64]:
        return length_weights(np.append(self.base.lengths, self.added.lengths))

    def save(self, folder: Path) -> None:
        """Write the counts as NumPy arrays and JSON."""
        self.base.joined(self.added).without_unused_words().save(folder)

    @classmethod
    def load(cls, artifact: Artifact, examples: int) -> "Bm25Index":
        """Return a saved index of this many examples; check every value."""
        return cls(WordCounts.load(artifact, examples))


def length_weights(lengths: Integers) -> NDArray[np.float64]:
    """Return k1 (1 − b + b · length / mean length) of each row."""
    total = int(lengths.sum(dtype=np.int64))
    mean = total / len(lengths) if total else 1.0
    return K1 * ((1 - B) + B * lengths.astype(np.float64) / mean)


def idf(rows: int, frequency: Any) -> NDArray[np.float32]:
    """Return Lucene's inverse document frequency of words in `frequency` of `rows` rows."""
    return np.asarray(np.log(1 + (rows - frequency + 0.5) / (frequency + 0.5)), np.float32)


def bm25_scores(counts: Integers, weights: NDArray[np.float64], idf: NDArray[np.float32]) -> Scores:
    """Return the scores of counts of a word, by the weights of their rows and the word's IDF."""
    counts = counts.astype(np.float32)
    return np.asarray(idf * (counts / (weights + counts)), np.float32)
