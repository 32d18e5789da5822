"""Find near-duplicate token sequences: MinHash LSH proposes candidates, which are then compared.

The similarity of two sequences is 2 · longest common subsequence / (sum of lengths). Results
depend only on the tokens and are the same on every machine. Knows no functions and no files.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Indel

Words: TypeAlias = NDArray[np.uint64]
Tokens: TypeAlias = Sequence[str]

PERMUTATIONS = 128
BUCKET = 100
"""A row is compared with at most this many rows of its bucket, the first ones."""

_CHUNK = 512
"""Sequences per batch of signatures, small enough for the CPU cache."""

_LETTERS = 0x110000
"""Number of Unicode code points: each token is mapped to one, for rapidfuzz."""


@dataclass(frozen=True)
class Pairs:
    """Candidate pairs: row `left[i]` of one set and row `right[i]` of the other."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]


def _scramble(words: Words) -> Words:
    """Apply a fixed pseudorandom permutation of 64-bit words (the splitmix64 finaliser)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


class _Digests(dict[str, int]):
    """A cache of 64-bit token hashes."""

    def __missing__(self, token: str) -> int:
        digest = hashlib.blake2b(token.encode(errors="surrogatepass"), digest_size=8).digest()
        return self.setdefault(token, int.from_bytes(digest, "little"))


def signatures(sequences: Sequence[Tokens], *, permutations: int = PERMUTATIONS) -> Words:
    """Return MinHash signatures (N, permutations) of the sets of token bigrams.

    The share of equal columns of two rows estimates the Jaccard similarity of their sets.
    """
    digests = _Digests()
    result = np.empty((len(sequences), permutations), dtype=np.uint64)
    for start in range(0, len(sequences), _CHUNK):
        chunk = sequences[start : start + _CHUNK]
        result[start : start + _CHUNK] = _sign(chunk, digests, permutations)
    return result


def _sign(sequences: Sequence[Tokens], digests: _Digests, permutations: int) -> Words:
    """Return the signatures of a chunk of sequences."""
    words = np.array([digests[t] for tokens in sequences for t in (*tokens, "\n")], np.uint64)
    lengths = np.array([len(tokens) + 1 for tokens in sequences])
    starts = np.cumsum(lengths) - lengths
    before = np.roll(words, 1)
    before[starts] = 0  # no bigram across two sequences
    shingles = _scramble(words ^ _scramble(before))
    seeds = _scramble(np.arange(1, permutations + 1, dtype=np.uint64))
    columns = [np.minimum.reduceat(_scramble(shingles ^ seed), starts) for seed in seeds]
    return np.stack(columns, axis=1)


def candidates(left: Words, right: Words, *, rows: int) -> Pairs:
    """Return the distinct pairs of signatures that agree in a whole band of `rows` columns.

    Fewer rows per band find less similar pairs, and more false ones. Only the first `BUCKET` rows
    of each bucket of the right side are paired.
    """
    codes_by_band = []
    for start in range(0, left.shape[1] - rows + 1, rows):
        left_keys = _band(left, start, rows)
        right_keys = _band(right, start, rows)
        order = np.argsort(right_keys, kind="stable")  # keeps row order within a bucket
        right_keys = right_keys[order]
        first = np.searchsorted(right_keys, left_keys, side="left")
        counts = np.searchsorted(right_keys, left_keys, side="right") - first
        counts = np.minimum(counts, BUCKET)
        rows_left = np.repeat(np.arange(len(left_keys)), counts)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        rows_right = order[np.repeat(first, counts) + within]
        codes_by_band.append(rows_left * len(right) + rows_right)
    if not codes_by_band:
        return Pairs(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
    codes = np.unique(np.concatenate(codes_by_band))
    return Pairs(*np.divmod(codes, max(1, len(right))))


def _band(words: Words, start: int, rows: int) -> Words:
    """Return one hash per row of the columns of a band."""
    keys = np.zeros(len(words), dtype=np.uint64)
    for column in range(start, start + rows):
        keys = _scramble(keys ^ words[:, column])
    return keys


def _spell(sequences: Iterable[Tokens]) -> list[str]:
    """Map each sequence to a string with one character per token."""
    numbers: dict[str, int] = {}
    return [
        "".join(chr(numbers.setdefault(token, len(numbers)) % _LETTERS) for token in tokens)
        for tokens in sequences
    ]


def similarity(left: Tokens, right: Tokens) -> float:
    """Return the similarity of two sequences, 0 to 1."""
    return Indel.normalized_similarity(*_spell([left, right]))


def near_duplicates(sequences: Sequence[Tokens], *, threshold: float, rows: int = 4) -> set[int]:
    """Return the rows that are near-duplicates of an earlier row that is kept."""
    signed = signatures(sequences)
    pairs = candidates(signed, signed, rows=rows)
    texts = _spell(sequences)
    dropped: set[int] = set()
    for row, other in zip(pairs.left.tolist(), pairs.right.tolist(), strict=True):
        if other >= row or row in dropped or other in dropped:
            continue
        if Indel.normalized_similarity(texts[row], texts[other], score_cutoff=threshold):
            dropped.add(row)
    return dropped


def nearest_similarities(
    queries: Sequence[Tokens], references: Sequence[Tokens], *, least: float, rows: int = 2
) -> list[float]:
    """Return for each query its greatest similarity to a reference; 0 if below `least`."""
    pairs = candidates(signatures(queries), signatures(references), rows=rows)
    texts = _spell([*queries, *references])
    best = [0.0] * len(queries)
    for row, other in zip(pairs.left.tolist(), pairs.right.tolist(), strict=True):
        cutoff = max(least, best[row])
        text = texts[len(queries) + other]
        score = Indel.normalized_similarity(texts[row], text, score_cutoff=cutoff)
        best[row] = max(best[row], score)
    return best
