"""Trains the background model: counts n-grams of many packages and prunes them into one table."""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.completion.projects import read_wheel
from redraft.completion.background import (
    HISTORY,
    ORDER,
    SHAPE,
    START,
    STEP,
    BackgroundModel,
    Codes,
    HashTable,
    WordCodes,
    coded,
    context_hashes,
    fingerprints_of,
    history_of,
    ngram_keys,
    raw_codes,
    slots_of,
    weight_keys,
    with_classes,
)
from redraft.completion.languages.python.language import PYTHON
from redraft.completion.word_classes import word_classes
from redraft.text.tokenizer import Tokenizer
from redraft.types import Example

MIN_PACKAGES = 3
"""Packages that a word must occur in; an n-gram must occur in `LEAST_COMMON`."""

LEAST_COMMON = 2
MAX_COUNT = 4
"""Occurrences in a package that count."""

DISCOUNT = 0.6
MAX_EXAMPLES = 2_500
"""Functions and blocks of a package that count."""

BITS = 20
"""The table has two to the power of this many slots, of three bytes each."""

LOAD = 0.85
"""Largest share of slots that are filled."""


@dataclass(frozen=True)
class Corpus:
    """The functions of many packages as one stream of word ids, each with its history."""

    words: list[str]
    tokens: NDArray[np.int32]  # (T,) -1 - i: the i-th code before the body
    is_old: NDArray[np.bool_]  # (T,) the word occurs before in the function or its header
    package: NDArray[np.int32]  # (T,)
    before: Codes  # the codes of the histories, HISTORY of each function

    @classmethod
    def of(cls, packages: Iterable[Sequence[Example]]) -> "Corpus":
        """Tokenize the functions of packages."""
        ids: dict[str, int] = {}
        tokens: list[int] = []
        is_old: list[bool] = []
        package: list[int] = []
        before: list[Codes] = []
        tokenizer = Tokenizer()
        for i, examples in enumerate(packages):
            for example in examples:
                body = tokenizer.tokenize(example.y)
                header = f"{example.x['name']} {example.x['arguments']}"
                seen = set(tokenizer.tokenize(header))
                first = HISTORY * len(before)
                before.append(history_of(example.x["name"]))
                tokens += [-1 - (first + j) for j in range(HISTORY)]
                is_old += [False] * HISTORY
                for token in body:
                    tokens.append(ids.setdefault(token, len(ids)))
                    is_old.append(token in seen)
                    seen.add(token)
                package += [i] * (HISTORY + len(body))
        return cls(
            list(ids),
            np.asarray(tokens, np.int32),
            np.asarray(is_old),
            np.asarray(package, np.int32),
            np.concatenate(before),
        )

    def common_words(self) -> NDArray[np.bool_]:
        """Return which words occur in enough packages."""
        inside = self.tokens >= 0
        pairs = np.unique(
            self.tokens[inside].astype(np.int64) * (1 + int(self.package.max()))
            + self.package[inside]
        )
        words = pairs // (1 + int(self.package.max()))
        return np.bincount(words, minlength=len(self.words)) >= MIN_PACKAGES

    def codes(self) -> list[Codes]:
        """Return the stream as codes of words and as codes of shapes."""
        classes = word_classes(self.words)
        table: WordCodes = coded(self.words, raw_codes(self.words), classes, self.common_words())
        inside = np.maximum(self.tokens, 0)
        outside = self.before[np.minimum(-1 - np.minimum(self.tokens, -1), len(self.before) - 1)]
        streams = []
        for words, salt in ((table.words, np.uint64(0)), (table.shapes, SHAPE)):
            own = with_classes(words[inside], self.is_old) + salt
            streams.append(np.where(self.tokens >= 0, own, outside))
        return streams


@dataclass(frozen=True)
class Entries:
    """Keys with their logarithms and how much each matters."""

    keys: Codes
    logs: NDArray[np.float64]
    counts: NDArray[np.float64]


def count(stream: Codes, package: NDArray[np.int32], inside: NDArray[np.bool_]) -> list[Entries]:
    """Return the n-grams and the back-off weights of a stream of codes."""
    padded = np.concatenate([np.full(HISTORY, START), stream])
    last = stream[inside]
    packages = package[inside]
    lower = np.full(len(last), np.log(1e-6))
    entries: list[Entries] = []
    for order in range(1, ORDER + 1):
        contexts = context_hashes(padded[None], order)[0][inside]
        keys = ngram_keys(contexts, last)
        pairs = keys * np.uint64(3) + packages.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        _, first, times = np.unique(pairs, return_index=True, return_counts=True)
        unique, where, index = np.unique(keys[first], return_index=True, return_inverse=True)
        counts = np.bincount(index, weights=np.minimum(times, MAX_COUNT)).astype(np.float64)
        common = np.bincount(index) >= (LEAST_COMMON if order > 1 else MIN_PACKAGES)
        at = first[where]
        owners, owner = np.unique(contexts[at], return_inverse=True)
        totals = np.bincount(owner, weights=counts).astype(np.float64)
        kept = np.maximum(counts - DISCOUNT, 0) * common
        left = 1 - np.bincount(owner, weights=kept) / totals
        own = kept / totals[owner]
        logs = np.log(own + left[owner] * np.exp(lower[at]) + 1e-12)
        entries.append(Entries(unique[common], logs[common], counts[common]))
        has_kept = np.bincount(owner, weights=common) > 0
        if order > 1:
            weights = np.log(np.maximum(left, 1e-6))
            entries.append(
                Entries(weight_keys(owners[has_kept]), weights[has_kept], totals[has_kept])
            )
        lower = _backed_off(
            (keys, unique[common], logs[common]),
            (contexts, owners[has_kept], np.log(np.maximum(left, 1e-6))[has_kept]),
            lower,
        )
        print(f"order {order}: {common.sum():,} n-grams, {lower.mean():.3f} nats", flush=True)
    return entries


def _backed_off(
    ngrams: tuple[Codes, Codes, NDArray[np.float64]],
    weights: tuple[Codes, Codes, NDArray[np.float64]],
    lower: NDArray[np.float64],
) -> NDArray[np.float64]:
    found, weight = _looked_up(*ngrams), _looked_up(*weights)
    return np.where(np.isnan(found), lower + np.nan_to_num(weight), found)


def _looked_up(keys: Codes, known: Codes, values: NDArray[np.float64]) -> NDArray[np.float64]:
    place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.where(known[place] == keys, values[place], np.nan)


def pruned(entries: Sequence[Entries], bits: int) -> HashTable:
    """Return a table of 2 ** `bits` slots with the entries that occur most often."""
    keys = np.concatenate([part.keys for part in entries])
    logs = np.concatenate([part.logs for part in entries])
    counts = np.concatenate([part.counts for part in entries])
    size = 1 << bits
    best = np.argsort(-counts, kind="stable")[: int(LOAD * size)]
    keys, logs = keys[best], logs[best]
    values = np.clip(np.rint(-logs / STEP), 0, 255).astype(np.uint8)
    prints, slots = fingerprints_of(keys), slots_of(keys, size)
    table = HashTable(np.zeros(size, np.uint16), np.zeros(size, np.uint8))
    missing = np.arange(len(keys))
    for choice in slots:
        wanted = choice[missing]
        free = np.flatnonzero(table.fingerprints[wanted] == 0)
        _, chosen = np.unique(wanted[free], return_index=True)
        placed = missing[free[chosen]]
        table.fingerprints[choice[placed]] = prints[placed]
        table.values[choice[placed]] = values[placed]
        missing = np.setdiff1d(missing, placed)
    print(
        f"{len(keys):,} of {sum(len(part.keys) for part in entries):,} entries, "
        f"{len(missing):,} without a slot",
        flush=True,
    )
    return table


def read_packages(wheels: Iterable[Path]) -> Iterator[list[Example]]:
    """Yield at most `MAX_EXAMPLES` functions and blocks of each wheel."""
    rng = random.Random(0)
    for wheel in wheels:
        examples: list[Example] = []
        for file, text in read_wheel(wheel).items():
            mined = PYTHON.mine(text, name=file, package=file.split("/")[0])
            examples += mined if isinstance(mined, list) else []
        yield rng.sample(examples, min(len(examples), MAX_EXAMPLES))


def fit_background(packages: Iterable[Sequence[Example]], *, bits: int = BITS) -> BackgroundModel:
    """Train the model on the functions and blocks of packages."""
    corpus = Corpus.of(packages)
    inside = corpus.tokens >= 0
    print(f"{inside.sum():,} tokens, {len(corpus.words):,} words", flush=True)
    entries = [one for stream in corpus.codes() for one in count(stream, corpus.package, inside)]
    return BackgroundModel(pruned(entries, bits))
