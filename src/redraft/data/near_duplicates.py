"""Sequences of tokens that are nearly the same: MinHash finds candidates, then all are compared.

The similarity of two sequences is the share of their tokens that stand in both in the same order:
2 · longest common subsequence / (sum of lengths). Everything is a function of the tokens alone,
the same on every machine. Knows no functions and no files.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Words: TypeAlias = NDArray[np.uint64]

Tokens: TypeAlias = Sequence[str]

PERMUTATIONS = 128
BUCKET = 100
"""A row is compared with so many of the first rows in its bucket, which are most often kept."""

_CHUNK = 512
"""Sequences that are signed at once: few enough for a processor's cache."""

_LETTERS = 0x110000
"""How many characters there are: each token is written as one, to be compared by rapidfuzz."""


@dataclass(frozen=True)
class Pairs:
    """Candidates: row `left[i]` of the one side may resemble row `right[i]` of the other."""

    left: "NDArray[np.int64]"
    right: "NDArray[np.int64]"


def _scramble(words: "Words") -> "Words":
    """A fixed random-looking permutation of 64-bit words (the finaliser of splitmix64)."""
    import numpy as np

    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


class _Digests(dict[str, int]):
    """A 64-bit word for every token that is asked for."""

    def __missing__(self, token: str) -> int:
        digest = hashlib.blake2b(token.encode(errors="surrogatepass"), digest_size=8).digest()
        return self.setdefault(token, int.from_bytes(digest, "little"))


def signatures(sequences: Sequence[Tokens], *, permutations: int = PERMUTATIONS) -> "Words":
    """(N, permutations) MinHash of the sets of neighbouring token pairs, the end being a token.

    Two rows agree in about the share of columns that is the Jaccard similarity of the sets.
    """
    import numpy as np

    digests = _Digests()
    found = np.empty((len(sequences), permutations), dtype=np.uint64)
    for start in range(0, len(sequences), _CHUNK):
        chunk = sequences[start : start + _CHUNK]
        found[start : start + _CHUNK] = _sign(chunk, digests, permutations)
    return found


def _sign(sequences: Sequence[Tokens], digests: _Digests, permutations: int) -> "Words":
    """The signatures of some sequences."""
    import numpy as np

    words = np.array([digests[t] for tokens in sequences for t in (*tokens, "\n")], np.uint64)
    lengths = np.array([len(tokens) + 1 for tokens in sequences])
    starts = np.cumsum(lengths) - lengths
    before = np.roll(words, 1)
    before[starts] = 0  # no pair reaches into the sequence before
    shingles = _scramble(words ^ _scramble(before))
    seeds = _scramble(np.arange(1, permutations + 1, dtype=np.uint64))
    columns = [np.minimum.reduceat(_scramble(shingles ^ seed), starts) for seed in seeds]
    return np.stack(columns, axis=1)


def candidates(left: "Words", right: "Words", *, rows: int) -> Pairs:
    """Pairs of signatures that agree in a whole band of this many columns; each pair once.

    Fewer rows a band find pairs that are less alike, and more false ones. Of a bucket of the
    right side only its first rows are paired.
    """
    import numpy as np

    found = []
    for start in range(0, left.shape[1] - rows + 1, rows):
        keys = _band(left, start, rows)
        known = _band(right, start, rows)
        order = np.argsort(known, kind="stable")  # within a bucket the first rows come first
        known = known[order]
        first = np.searchsorted(known, keys, side="left")
        counts = np.minimum(np.searchsorted(known, keys, side="right") - first, BUCKET)
        rows_left = np.repeat(np.arange(len(keys)), counts)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        rows_right = order[np.repeat(first, counts) + within]
        found.append(rows_left * len(right) + rows_right)
    codes = np.unique(np.concatenate(found)) if found else np.empty(0, dtype=np.int64)
    return Pairs(*np.divmod(codes, max(1, len(right))))


def _band(words: "Words", start: int, rows: int) -> "Words":
    """One key for some columns of each row."""
    import numpy as np

    keys = np.zeros(len(words), dtype=np.uint64)
    for column in range(start, start + rows):
        keys = _scramble(keys ^ words[:, column])
    return keys


def _spell(sequences: Iterable[Tokens]) -> list[str]:
    """Each sequence as a text of one character a token; a token has one character everywhere."""
    numbers: dict[str, int] = {}
    return [
        "".join(chr(numbers.setdefault(token, len(numbers)) % _LETTERS) for token in tokens)
        for tokens in sequences
    ]


def similarity(left: Tokens, right: Tokens) -> float:
    """The share of tokens that both have in the same order."""
    from rapidfuzz.distance import Indel

    return Indel.normalized_similarity(*_spell([left, right]))


def near_duplicates(sequences: Sequence[Tokens], *, threshold: float, rows: int = 4) -> set[int]:
    """The rows that resemble an earlier row which is not itself among them."""
    from rapidfuzz.distance import Indel

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
    asked: Sequence[Tokens], known: Sequence[Tokens], *, least: float, rows: int = 2
) -> list[float]:
    """For each asked sequence the greatest similarity to a known one; 0 if under `least`."""
    from rapidfuzz.distance import Indel

    pairs = candidates(signatures(asked), signatures(known), rows=rows)
    texts = _spell([*asked, *known])
    best = [0.0] * len(asked)
    for row, other in zip(pairs.left.tolist(), pairs.right.tolist(), strict=True):
        cutoff = max(least, best[row])
        text = texts[len(asked) + other]
        found = Indel.normalized_similarity(texts[row], text, score_cutoff=cutoff)
        best[row] = max(best[row], found)
    return best
