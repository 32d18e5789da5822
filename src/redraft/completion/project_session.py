"""Completion from the code of a project, without a network and without training.

Continuations that occur elsewhere are ranked by the probability that they are right, which
gradient-boosted trees estimate from their occurrences. Trees and weights were trained on other
projects (`experiments/completion`) and are part of the package.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from redraft.completion.aligned_names import aligned_in_project, aligned_in_streams
from redraft.completion.context_tables import END, START
from redraft.completion.continuations import (
    MIN_WIDTH,
    Occurrences,
    Stream,
    in_function,
    in_project,
    in_similar,
)
from redraft.completion.cursor_evidence import ALONE, CursorReader, SessionWords
from redraft.completion.evidence import Continuations
from redraft.completion.gradient_boosting import BoostedTrees
from redraft.completion.languages.base import kind_of
from redraft.completion.ngram_index import NgramIndex, token_widths
from redraft.completion.renaming import Renaming
from redraft.completion.similar_functions import SimilarFunction, is_same_function
from redraft.completion.surroundings import Surroundings
from redraft.editing.session import CompletionSession, continuation, readable_prefix
from redraft.text.tokenizer import Tokenizer, detokenize, is_word
from redraft.types import Completion, Input, Prototype

LEAST_PROBABLE = 0.13
"""Probability from which a suggestion is shown first."""

LEAST_PROBABLE_SHORT = 0.5
"""Probability from which a suggestion shorter than `MIN_WIDTH` is shown first."""

LEAST_PROBABLE_OTHER = 0.05
"""Probability from which a suggestion is shown below another."""

GROWTH = 0.9
"""A suggestion grows while at least this share of its probability is left."""

LINE_GROWTH = 0.8
"""A suggestion grows to the end of a line while at least this share is left."""

STARTER = Path(__file__).parent / "starter"


@cache
def starter_weights() -> NDArray[np.float64]:
    """Return the weights of the similarities of functions."""
    weights: NDArray[np.float64] = np.load(STARTER / "similarity.npy", allow_pickle=False)
    return weights


@cache
def starter_trees() -> BoostedTrees:
    """Return the trees that rank continuations."""
    return BoostedTrees.load(STARTER / "acceptance.npz")


@dataclass(frozen=True)
class _Ranked:
    """The continuations of one reading of the prefix, each with its probability."""

    typed: Sequence[str]
    continuations: Continuations
    probability: NDArray[np.float32]


class ProjectSession(CompletionSession):
    """The function at the cursor, the similar ones, renamed, and the names of the buffer."""

    def __init__(
        self,
        x: Input,
        similar: Sequence[SimilarFunction],
        index: NgramIndex,
        file: str | None,
        surroundings: Surroundings = ALONE,
    ) -> None:
        self.index = index
        self.similar = similar
        self.words = SessionWords(index)
        self._following = ""
        in_file = index.rows_of_file.get(file or "", [])
        self._is_same_file = np.zeros(len(index.examples), np.bool_)
        self._is_same_file[in_file] = True
        # blocks are no sources for functions, but a script may be written like a function
        self._is_source = index.are_functions | (kind_of(x) != "function")
        own = [row for row in in_file if is_same_function(index.examples[row], x, file)]
        self._is_source[own] = False
        self._streams = [
            self._stream(
                Renaming.between(one.prototype.example.x, x, index.language), one.prototype
            )
            for one in similar
        ]
        self._reader = CursorReader(x, surroundings, self.words, self._streams)

    def read_after(self, following: str) -> None:
        """Take the code after the line of the cursor as evidence."""
        self._following = following

    def complete(self, prefix: str, k: int = 5) -> list[Completion]:
        """Return at most `k` suggestions, the best first; none if none is probable enough."""
        typed = readable_prefix(Tokenizer().tokenize(prefix))
        readings = [self.rank(typed)]
        if typed and is_word(typed[-1]) and prefix.endswith(typed[-1]):
            readings.append(self.rank(typed[:-1], partial=typed[-1]))
        ranked = [reading for reading in readings if reading is not None]
        chosen: list[Completion] = []
        for reading, i in _best_first(ranked):
            text, token = self._text(prefix, reading, i)
            if not text.strip() or any(_overlap(text, other.text) for other in chosen):
                continue
            probability = float(reading.probability[i])
            source = self._source(reading, i, text)
            chosen.append(Completion(token, text, math.log(probability), source))
            if len(chosen) == k:
                break
        return chosen

    def rank(self, typed: Sequence[str], partial: str = "") -> _Ranked | None:
        """Return the continuations of the tokens `typed`, those that begin with `partial`."""
        continuations = self.continuations(typed, partial)
        if continuations is None:
            return None
        probability = starter_trees().probabilities(continuations.features)
        return _Ranked(typed, continuations, probability)

    def continuations(self, typed: Sequence[str], partial: str = "") -> Continuations | None:
        """Return the continuations of the tokens `typed` with their features."""
        context = self.words.encode(typed)
        own = self._as_stream(typed)
        tables = self.words.tables()
        shares = [one.probability for one in self.similar]
        parts = in_project(self.index, context, self._is_same_file, self._is_source)
        parts += in_similar(self._streams, shares, context)
        parts += in_function(own, context)
        parts += aligned_in_project(
            self.index, context, tables, self._is_same_file, self._is_source
        )
        parts += aligned_in_streams([*self._streams, own], context, tables)
        if not parts:
            return None
        occurrences = Occurrences.join(parts)
        if partial:
            occurrences = occurrences.take(np.flatnonzero(self._begin(occurrences, partial)))
            if not len(occurrences.source):
                return None
        occurrences = self._reader.covered(occurrences, typed, self.index)
        evidence = self._reader.evidence(typed, self._following, occurrences, self.similar)
        return Continuations.of(occurrences, evidence, self.words.tables().classes)

    def text(self, typed: Sequence[str], continuations: Continuations, i: int) -> str:
        """Return the text of a continuation of the tokens `typed`."""
        tokens = self._tokens(continuations, i)
        return continuation(detokenize(typed), typed, tokens)

    def _tokens(self, continuations: Continuations, i: int) -> list[str]:
        row = continuations.occurrences.tokens[continuations.first[i]]
        return [self.words[token] for token in row[: continuations.length[i]]]

    def _stream(self, renaming: Renaming, prototype: Prototype) -> Stream:
        tokens = Tokenizer().tokenize(renaming.apply(prototype.example.y))
        return self._as_stream(tokens)

    def _as_stream(self, tokens: Sequence[str]) -> Stream:
        ids = [START, *self.words.encode(tokens), END]
        return Stream(np.asarray(ids, np.int32), token_widths(tokens))

    def _begin(self, occurrences: Occurrences, partial: str) -> NDArray[np.bool_]:
        """Return which occurrences begin with a longer word than `partial`."""
        firsts = occurrences.tokens[:, 0]
        longer = [
            token
            for token in np.unique(firsts).tolist()
            if self.words[token].startswith(partial) and self.words[token] != partial
        ]
        return np.isin(firsts, longer)

    def _text(self, prefix: str, reading: _Ranked, i: int) -> tuple[str, str]:
        """Return the text to insert and its first token."""
        tokens = self._tokens(reading.continuations, i)
        return continuation(prefix, reading.typed, tokens), tokens[0]

    def _source(self, reading: _Ranked, i: int, text: str) -> Prototype | None:
        """Return a function that contains the suggested text, a similar one if possible."""
        stripped = text.strip()
        for one in self.similar:
            if stripped in one.prototype.example.y:
                return one.prototype
        found = reading.continuations
        origins = found.occurrences.origin[found.first[i] : found.last[i]]
        for position in origins[origins >= 0].tolist():
            example = self.index.examples[self.index.rows[position]]
            if stripped in example.y:
                return Prototype(example, 1.0)
        return None


def _best_first(readings: Sequence[_Ranked]) -> list[tuple[_Ranked, int]]:
    """Return the suggestions that may be shown, the best first, each grown as far as is likely."""
    pool = [
        (float(probability), reading, i)
        for reading in readings
        for i, probability in enumerate(reading.probability.tolist())
        if probability >= LEAST_PROBABLE_OTHER
    ]
    pool.sort(key=lambda one: (one[1].continuations.width[one[2]] < MIN_WIDTH, -one[0]))
    shown: list[tuple[_Ranked, int]] = []
    for probability, reading, i in pool:
        is_short = reading.continuations.width[i] < MIN_WIDTH
        least = LEAST_PROBABLE_SHORT if is_short else LEAST_PROBABLE
        if shown or probability >= least:
            shown.append((reading, _grown(reading, i)))
    return shown


def _grown(reading: _Ranked, i: int) -> int:
    """Return the longest continuation that begins like `i` and is nearly as probable."""
    found = reading.continuations
    length = found.length[i]
    least = np.where(found.ends_line, LINE_GROWTH, GROWTH) * reading.probability[i]
    begins = (
        (found.first >= found.first[i])
        & (found.last <= found.last[i])
        & (found.length >= length)
        & (reading.probability >= least)
    )
    candidates = np.flatnonzero(begins)
    return int(candidates[np.argmax(found.width[candidates])])


def _overlap(text: str, other: str) -> bool:
    """Return True if one text begins with the other."""
    return text.startswith(other) or other.startswith(text)
