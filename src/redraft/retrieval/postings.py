"""BM25 over many examples by an inverted file: the rows of each word, mapped from disk.

The nearest rows are found exactly without scoring all: once the words that are still to be read
cannot lift a new row among the best, they are only looked up for the rows that were seen. Knows
words and rows; does not know what the rows are.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from redraft.artifact import Artifact
from redraft.data.arrays import mapped
from redraft.errors import ModelError
from redraft.retrieval.neighbours import Neighbours

K1, B = 1.5, 0.75
"""Of Lucene's BM25: how soon a word's repetitions count for nothing, and how far length counts."""

_SLACK = 1e-5
"""What sums may lose by rounding: rows this near to the least of the best are looked at too."""

_DENSE = 4

Ids = NDArray[np.int64]
Scores = NDArray[np.float32]
Mask = NDArray[np.bool_]

NAMES = ("terms", "starts", "bounds", "rows", "counts", "scores", "lengths")


def term(word: str) -> int:
    """A word as a number of 64 bits."""
    digest = hashlib.blake2b(word.encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


@dataclass(frozen=True)
class Postings:
    """For each word the rows that have it, ascending, with its count there and what it scores."""

    terms: NDArray[np.uint64]  # (T,), ascending
    starts: Ids  # (T + 1,)
    bounds: Scores  # (T,), the most that a word scores anywhere
    rows: NDArray[np.uint32]  # (P,)
    counts: NDArray[np.uint32]  # (P,)
    scores: Scores  # (P,)
    lengths: NDArray[np.uint32]  # (N,), in words

    @classmethod
    def open(cls, folder: Path) -> "Postings":
        """Those that a builder wrote to the folder."""
        return cls(*(mapped(folder / f"{name}.npy") for name in NAMES))

    @classmethod
    def load(cls, artifact: Artifact, examples: int) -> "Postings":
        """Those of a saved model of so many examples."""
        found = cls(*(mapped(artifact.path(f"{name}.npy")) for name in NAMES))
        sizes = len(found.terms) + 1, len(found.rows), examples
        if sizes != (len(found.starts), int(found.starts[-1]), len(found.lengths)):
            raise ModelError(f"{artifact.folder}: its postings do not fit together; fit again")
        return found

    def save(self, folder: Path) -> None:
        """Write the arrays as NumPy files, to be mapped into memory."""
        for name in NAMES:
            np.save(folder / f"{name}.npy", getattr(self, name), allow_pickle=False)

    def __len__(self) -> int:
        return len(self.lengths)

    def score_all(self, bag: Sequence[str]) -> Scores:
        """What each row scores for a bag of words: (N,)."""
        totals = np.zeros(len(self), np.float32)
        for each in self._known(bag):
            rows, scores = self._of(each)
            totals[rows] += scores
        return totals

    def search(self, bag: Sequence[str], k: int, *, allowed: Mask | None = None) -> Neighbours:
        """The k best rows for a bag of words: (1, K); ties to the earlier row."""
        k = min(k, len(self) if allowed is None else int(allowed.sum()))
        if k == 0:
            return Neighbours.none(1)
        words = list(self._known(bag))
        rows = self._candidates(Counter(words), k, allowed)
        scores = self._score(words, rows)
        if len(rows) < k:  # the rest shares no word: the first rows there are
            rest = np.ones(len(self), np.bool_) if allowed is None else allowed.copy()
            rest[rows] = False
            rows = np.concatenate([rows, np.flatnonzero(rest)[: k - len(rows)]])
            scores = np.concatenate([scores, np.zeros(len(rows) - len(scores), np.float32)])
        distances = np.asarray(1 / (1 + scores), np.float32)
        best = np.lexsort((rows, distances))[:k]
        return Neighbours(rows[best][None], distances[best][None])

    def _known(self, bag: Sequence[str]) -> Iterator[int]:
        """The places of the words that any row has."""
        wanted = np.array([term(word) for word in bag], np.uint64)
        places = np.searchsorted(self.terms, wanted)
        for place, each in zip(places.tolist(), wanted, strict=True):
            if place < len(self.terms) and self.terms[place] == each:
                yield place

    def _of(self, word: int) -> tuple[NDArray[np.uint32], Scores]:
        start, end = int(self.starts[word]), int(self.starts[word + 1])
        # plain arrays over the mapped pages: the class of a mapped array slows every operation
        return np.asarray(self.rows[start:end]), np.asarray(self.scores[start:end])

    def _candidates(self, words: Counter[int], k: int, allowed: Mask | None) -> Ids:
        """All rows that may be among the k best, ascending, and few others."""
        bounds = {word: count * float(self.bounds[word]) for word, count in words.items()}
        order = sorted(words, key=lambda word: -bounds[word])
        left = np.append(np.cumsum([bounds[word] for word in order][::-1])[::-1], 0.0)
        totals = np.zeros(len(self), np.float32)
        floor, at = 0.0, 0
        # a row that has none of the words read so far can have `left` at most
        while at < len(order) and left[at] > floor - _SLACK * (1 + floor):
            rows, scores = self._of(order[at])
            if allowed is not None:
                kept = allowed[rows]
                rows, scores = rows[kept], scores[kept]
            totals[rows] += words[order[at]] * scores
            floor = _raised(floor, totals[rows], k)
            at += 1
        least = floor - left[at] - _SLACK * (1 + floor)
        found = np.flatnonzero(totals > max(least, 0.0))
        sums = totals[found]
        for place in range(at, len(order)):
            sums = sums + words[order[place]] * self._lookup(order[place], found)
            floor = _raised(floor, sums, k)
            kept = sums >= floor - left[place + 1] - _SLACK * (1 + floor)
            found, sums = found[kept], sums[kept]
        return found

    def _lookup(self, word: int, rows: Ids) -> Scores:
        """What a word scores in some rows."""
        held, scores = self._of(word)
        if _DENSE * len(rows) > len(held):  # to search for so many takes longer than to read all
            every = np.zeros(len(self), np.float32)
            every[held] = scores
            return every[rows]
        places = np.searchsorted(held, rows.astype(np.uint32)).clip(max=len(held) - 1)
        return np.where(held[places] == rows, scores[places], np.float32(0))

    def _score(self, words: Sequence[int], rows: Ids) -> Scores:
        """What rows score, the words added up in their order: to the last bit as by `score_all`."""
        totals = np.zeros(len(rows), np.float32)
        for word in words:
            totals += self._lookup(word, rows)
        return totals


def _raised(floor: float, sums: Scores, k: int) -> float:
    """What the k best have at least, given that and the sums of some rows."""
    above = sums[sums > floor]
    return float(np.partition(above, len(above) - k)[-k]) if len(above) >= k else floor
