"""BM25 over many examples by a memory-mapped inverted file.

Search is exact but does not score every row (MaxScore, Turtle and Flood 1995): once the words that
remain cannot lift a new row into the top k, they are looked up only for the rows seen before.
Knows words and rows, no examples.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from redraft.index.neighbours import Neighbours
from redraft.storage.artifact import Artifact
from redraft.storage.checks import (
    check_ascending,
    check_starts,
    check_values,
    read_array,
    same,
)

LARGEST_SCORE = 1e6
"""Limit of a loaded score: far above any real one, and sums stay finite."""

_SLACK = 1e-5
"""Relative tolerance for rounding: rows this close to the threshold stay candidates."""

_DENSE = 4
"""Look words up in a dense array if the candidates exceed 1 / _DENSE of the postings."""

Ids = NDArray[np.int64]
Scores = NDArray[np.float32]
Mask = NDArray[np.bool_]

NAMES = ("terms", "starts", "bounds", "rows", "counts", "scores", "lengths")
_DTYPES = (np.uint64, np.int64, np.float32, np.uint32, np.uint32, np.float32, np.uint32)


def term(word: str) -> int:
    """Return a 64-bit hash of a word."""
    digest = hashlib.blake2b(word.encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


@dataclass(frozen=True)
class Postings:
    """For each word the rows that contain it, ascending, with its counts and scores."""

    terms: NDArray[np.uint64]  # (T,), ascending
    starts: Ids  # (T + 1,)
    bounds: Scores  # (T,), the highest score of each word
    rows: NDArray[np.uint32]  # (P,)
    counts: NDArray[np.uint32]  # (P,)
    scores: Scores  # (P,)
    lengths: NDArray[np.uint32]  # (N,), in words

    @classmethod
    def open(cls, paths: Iterable[Path]) -> "Postings":
        """Memory-map the files of the arrays, in the order of `NAMES`."""
        arrays = zip(paths, _DTYPES, strict=True)
        return cls(*(read_array(path, dtype, (None,)) for path, dtype in arrays))

    @classmethod
    def load(cls, artifact: Artifact, examples: int) -> "Postings":
        """Return the postings of a saved model of this many examples; check every value."""
        paths = {name: artifact.path(f"{name}.npy") for name in NAMES}
        postings = cls.open(paths.values())
        words, entries = len(postings.terms), len(postings.rows)
        same(paths["bounds"], "words and their bounds", (words, len(postings.bounds)))
        same(paths["counts"], "rows and their counts", (entries, len(postings.counts)))
        same(paths["scores"], "rows and their scores", (entries, len(postings.scores)))
        same(paths["lengths"], "examples and their lengths", (examples, len(postings.lengths)))
        check_starts(paths["starts"], postings.starts, count=words, size=entries)
        check_ascending(paths["terms"], "the words", postings.terms)
        check_values(paths["rows"], "the rows", postings.rows, least=0, most=examples - 1)
        starts = postings.starts
        check_ascending(paths["rows"], "the rows of a word", postings.rows, starts=starts)
        for name in ("bounds", "scores"):
            check_values(
                paths[name], f"the {name}", getattr(postings, name), least=0, most=LARGEST_SCORE
            )
        return postings

    def save(self, folder: Path) -> None:
        """Write the arrays as NumPy files, which can be memory-mapped."""
        for name in NAMES:
            np.save(folder / f"{name}.npy", getattr(self, name), allow_pickle=False)

    def __len__(self) -> int:
        return len(self.lengths)

    def search(self, bag: Sequence[str], k: int, *, allowed: Mask | None = None) -> Neighbours:
        """Return the k best rows for a bag of words: (1, K); ties go to the first row."""
        k = min(k, len(self) if allowed is None else int(allowed.sum()))
        if k == 0:
            return Neighbours.none(1)
        words = list(self._word_ids(bag))
        rows = self._candidates(Counter(words), k, allowed)
        scores = self._score(words, rows)
        if len(rows) < k:  # fill up with the first rows that share no word
            rest = np.ones(len(self), np.bool_) if allowed is None else allowed.copy()
            rest[rows] = False
            rows = np.concatenate([rows, np.flatnonzero(rest)[: k - len(rows)]])
            scores = np.concatenate([scores, np.zeros(len(rows) - len(scores), np.float32)])
        distances = np.asarray(1 / (1 + scores), np.float32)
        best = np.lexsort((rows, distances))[:k]
        return Neighbours(rows[best][None], distances[best][None])

    def _word_ids(self, bag: Sequence[str]) -> Iterator[int]:
        """Yield the indices into `terms` of the words that occur in any row."""
        hashes = np.array([term(word) for word in bag], np.uint64)
        indices = np.searchsorted(self.terms, hashes)
        for index, word_hash in zip(indices.tolist(), hashes, strict=True):
            if index < len(self.terms) and self.terms[index] == word_hash:
                yield index

    def _postings_of(self, word: int) -> tuple[NDArray[np.uint32], Scores]:
        start, end = int(self.starts[word]), int(self.starts[word + 1])
        # plain views: np.memmap slows down every operation
        return np.asarray(self.rows[start:end]), np.asarray(self.scores[start:end])

    def _candidates(self, words: Counter[int], k: int, allowed: Mask | None) -> Ids:
        """Return a small superset of the k best rows, ascending."""
        bounds = {word: count * float(self.bounds[word]) for word, count in words.items()}
        order = sorted(words, key=lambda word: -bounds[word])
        # remaining[i]: the highest score that the words from order[i] on can add
        remaining = np.append(np.cumsum([bounds[word] for word in order][::-1])[::-1], 0.0)
        totals = np.zeros(len(self), np.float32)
        threshold, i = 0.0, 0
        # a row with none of the words so far scores at most remaining[i]
        while i < len(order) and remaining[i] > threshold - _SLACK * (1 + threshold):
            rows, scores = self._postings_of(order[i])
            if allowed is not None:
                is_allowed = allowed[rows]
                rows, scores = rows[is_allowed], scores[is_allowed]
            totals[rows] += words[order[i]] * scores
            threshold = _raise_threshold(threshold, totals[rows], k)
            i += 1
        least = threshold - remaining[i] - _SLACK * (1 + threshold)
        candidates = np.flatnonzero(totals > max(least, 0.0))
        sums = totals[candidates]
        for j in range(i, len(order)):
            sums = sums + words[order[j]] * self._lookup(order[j], candidates)
            threshold = _raise_threshold(threshold, sums, k)
            is_possible = sums >= threshold - remaining[j + 1] - _SLACK * (1 + threshold)
            candidates, sums = candidates[is_possible], sums[is_possible]
        return candidates

    def _lookup(self, word: int, rows: Ids) -> Scores:
        """Return the scores of a word in `rows`."""
        word_rows, scores = self._postings_of(word)
        if _DENSE * len(rows) > len(word_rows):  # faster than a binary search per row
            dense = np.zeros(len(self), np.float32)
            dense[word_rows] = scores
            return dense[rows]
        indices = np.searchsorted(word_rows, rows.astype(np.uint32)).clip(max=len(word_rows) - 1)
        return np.where(word_rows[indices] == rows, scores[indices], np.float32(0))

    def _score(self, words: Sequence[int], rows: Ids) -> Scores:
        """Return the scores of `rows`, summed in the order of words, bit for bit as in memory."""
        totals = np.zeros(len(rows), np.float32)
        for word in words:
            totals += self._lookup(word, rows)
        return totals


def _raise_threshold(threshold: float, sums: Scores, k: int) -> float:
    """Return a lower bound of the k-th best score, given the current one and partial sums."""
    above = sums[sums > threshold]
    return float(np.partition(above, len(above) - k)[-k]) if len(above) >= k else threshold
