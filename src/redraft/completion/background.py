"""A background model: how probable code is in Python at large, by n-grams of many packages.

The n-grams are keys of one hash table with fingerprints: no word is stored. A name that the table
does not have, or any name in the model of shapes, stands for its class: known in the function or
new. Trained by `experiments/completion`; part of the package. Knows no index and no cursor.
"""

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from redraft.completion.context_tables import Ids
from redraft.completion.renaming import name_parts
from redraft.completion.surroundings import BUILTINS
from redraft.completion.word_classes import NAME

ORDER = 5
"""Tokens of the longest n-gram."""

HISTORY = ORDER - 1
"""Codes before the cursor that count."""

UNSEEN = -14.0
"""Log-probability of a token that the table does not have."""

STEP = 1 / 16
"""Resolution of the stored logarithms, which lie between 0 and -255 steps."""

Codes = NDArray[np.uint64]
Logs = NDArray[np.float32]

_FACTOR = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1
_MIX = np.uint64(0xD6E8FEB86659FD93)
_SECOND = np.uint64(0xC2B2AE3D27D4EB4F)
_WEIGHT = np.uint64(0xA0761D6478BD642F)
_SHIFT = np.uint64(32)
_CLASS = 1 << 40

OLD, NEW, START, BODY = (np.uint64(_CLASS + i) for i in range(100, 104))
SHAPE = np.uint64(0x5851F42D4C957F2D)
"""Added to the codes of the model of shapes."""

_KEPT = frozenset({*BUILTINS, "self", "cls"})


@dataclass(frozen=True)
class HashTable:
    """Logarithms by 64-bit keys, each in one of two slots with 16 bits of its key."""

    fingerprints: NDArray[np.uint16]  # (S,) 0: empty
    values: NDArray[np.uint8]  # (S,)

    def find(self, keys: Codes) -> Logs:
        """Return the logarithm of each key, NaN where there is none."""
        prints = fingerprints_of(keys)
        first, second = slots_of(keys, len(self.values))
        is_first = self.fingerprints.take(first) == prints
        slots = np.where(is_first, first, second)
        found = self.fingerprints.take(slots) == prints
        return np.where(found, self.values.take(slots) * np.float32(-STEP), np.float32(np.nan))


def fingerprints_of(keys: Codes) -> NDArray[np.uint16]:
    """Return the 16 bits of each key that are stored; never 0."""
    return (keys & np.uint64(0xFFFF)).astype(np.uint16) | np.uint16(1)


def slots_of(keys: Codes, size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the two slots of each key in a table whose size is a power of two."""
    shift = np.uint64(64 - (size.bit_length() - 1))
    return (keys >> shift).astype(np.int64), (keys * _SECOND >> shift).astype(np.int64)


def context_hashes(codes: Codes, order: int) -> Codes:
    """Return the hash of the `order - 1` codes before each code of the last axis from `HISTORY`."""
    width = codes.shape[-1] - HISTORY
    total = np.full((*codes.shape[:-1], width), np.uint64(order << 50))
    power = 1
    for back in range(1, order):
        power = power * _FACTOR & _MASK
        total += codes[..., HISTORY - back : HISTORY - back + width] * np.uint64(power)
    return _mixed(total)


def ngram_keys(contexts: Codes, codes: Codes) -> Codes:
    """Return the keys of n-grams by the hashes of their contexts and their last codes."""
    return _mixed(contexts + codes * np.uint64(_FACTOR))


def weight_keys(contexts: Codes) -> Codes:
    """Return the keys of the back-off weights of contexts."""
    return _mixed(contexts ^ _WEIGHT)


def _mixed(keys: Codes) -> Codes:
    keys = (keys ^ (keys >> _SHIFT)) * _MIX
    return keys ^ (keys >> _SHIFT)


@dataclass(frozen=True)
class WordCodes:
    """The codes of words in both models; 0 for a name that stands for its class."""

    words: Codes  # (V,)
    shapes: Codes  # (V,)

    @classmethod
    def join(cls, parts: "Sequence[WordCodes]") -> "WordCodes":
        """Concatenate codes."""
        return cls(
            np.concatenate([part.words for part in parts]),
            np.concatenate([part.shapes for part in parts]),
        )


@dataclass(frozen=True)
class BackgroundModel:
    """Two back-off n-gram models, of words and of shapes, in one table."""

    table: HashTable

    @classmethod
    def load(cls, path: Path) -> "BackgroundModel":
        """Load the table that `save` wrote."""
        with np.load(path, allow_pickle=False) as arrays:
            return cls(HashTable(arrays["fingerprints"], arrays["values"]))

    def save(self, path: Path) -> None:
        """Write the table as compressed arrays."""
        np.savez_compressed(path, fingerprints=self.table.fingerprints, values=self.table.values)

    def encode(self, words: Sequence[str], classes: NDArray[np.int8]) -> WordCodes:
        """Return the codes of words with their classes."""
        codes = raw_codes(words)
        keys = ngram_keys(np.full(len(codes), start_of(1)), codes)
        return coded(words, codes, classes, ~np.isnan(self.table.find(keys)))

    def log_probs(self, codes: Codes) -> Logs:
        """Return the log-probability of each code of (N, HISTORY + D) after those before it."""
        shape = len(codes), codes.shape[1] - HISTORY
        return self.at_cells(codes, np.arange(shape[0] * shape[1])).reshape(shape)

    def at_cells(self, codes: Codes, cells: NDArray[np.int64]) -> Logs:
        """Return those of the cells of the flattened (N, D)."""
        last = codes[:, HISTORY:].ravel()[cells]
        logs = np.full(last.shape, np.float32(UNSEEN))
        for order in range(1, ORDER + 1):
            contexts = context_hashes(codes, order).ravel()[cells]
            if order > 1:
                weights = self.table.find(weight_keys(contexts))
                logs = np.where(np.isnan(weights), logs, logs + weights)
            found = self.table.find(ngram_keys(contexts, last))
            logs = np.where(np.isnan(found), logs, found)
        return np.maximum(logs, np.float32(UNSEEN))


@dataclass(frozen=True)
class CursorBackground:
    """The background model at a cursor."""

    model: BackgroundModel
    codes: WordCodes  # of all words of the session
    before: WordCodes  # the last `HISTORY` codes of the prefix
    is_old: NDArray[np.bool_]  # (V,) words of the header and the prefix

    @classmethod
    def at(
        cls,
        model: BackgroundModel,
        codes: WordCodes,
        name: str,
        *,
        header: Sequence[int],
        context: Sequence[int],
        is_old: NDArray[np.bool_],
    ) -> "CursorBackground":
        """Read the end of the ids `context` in a function of a name and the ids of a header."""
        last = np.asarray(context[-HISTORY:], np.int64)
        seen = {*header, *context[:-HISTORY]}
        was_old = []
        for token in last.tolist():
            was_old.append(token in seen)
            seen.add(token)
        old = np.asarray(was_old, np.bool_)
        start = history_of(name)
        words = np.concatenate([start, with_classes(codes.words[last], old)])
        shapes = np.concatenate([start, with_classes(codes.shapes[last], old) + SHAPE])
        return cls(model, codes, WordCodes(words[-HISTORY:], shapes[-HISTORY:]), is_old)

    def log_probs(self, tokens: Ids, is_new: NDArray[np.bool_]) -> tuple[Logs, Logs]:
        """Return the log-probabilities of words and shapes (N, D).

        Where not `is_new`, a token and those before it equal the row above, whose value is copied.
        """
        cells = np.flatnonzero(is_new)
        rows = np.maximum.accumulate(np.where(is_new, np.arange(len(tokens))[:, None], 0), axis=0)
        old = self.is_old[tokens]
        found = []
        for table, before, salt in (
            (self.codes.words, self.before.words, np.uint64(0)),
            (self.codes.shapes, self.before.shapes, SHAPE),
        ):
            own = with_classes(table[tokens], old) + salt
            codes = np.concatenate([np.broadcast_to(before, (len(own), HISTORY)), own], 1)
            logs = np.zeros(tokens.shape, np.float32)
            logs.ravel()[cells] = self.model.at_cells(codes, cells)
            found.append(np.take_along_axis(logs, rows, 0))
        return found[0], found[1]


def start_of(order: int) -> np.uint64:
    """Return the hash of the empty context."""
    return np.uint64(context_hashes(np.zeros((1, HISTORY + 1), np.uint64), order)[0, 0])


def raw_codes(words: Iterable[str]) -> Codes:
    """Return the hash of each word."""
    return np.fromiter((zlib.crc32(word.encode()) for word in words), np.uint64)


def coded(
    words: Sequence[str], codes: Codes, classes: NDArray[np.int8], is_known: NDArray[np.bool_]
) -> WordCodes:
    """Return the codes of words: an unknown one stands for its class."""
    kinds = classes.astype(np.uint64) + np.uint64(_CLASS)
    is_name = classes == NAME
    of_class = np.where(is_name, np.uint64(0), kinds)
    is_kept = np.fromiter((word in _KEPT for word in words), np.bool_, len(words))
    whole = np.where(is_known, codes, of_class)
    return WordCodes(whole, np.where(is_name & ~is_kept, np.uint64(0), whole))


def history_of(name: str) -> Codes:
    """Return the codes before the body of a function of this name."""
    first = name_parts(name)[:1]
    codes = [START, START, *(raw_codes(first) + SHAPE if first else [START]), BODY]
    return np.asarray(codes[-HISTORY:], np.uint64)


def with_classes(codes: Codes, is_old: NDArray[np.bool_]) -> Codes:
    """Return the codes with a class in place of each 0: known in the function or not."""
    return np.where(codes == 0, np.where(is_old, OLD, NEW), codes)
