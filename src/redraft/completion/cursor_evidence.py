"""The evidence at a cursor: features of the prefix, the names that are known there.

Turns the header, the prefix and the buffer into the ids and tables that continuations are
compared with.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from redraft.completion.aligned_names import WordTables
from redraft.completion.continuations import PROJECT, Occurrences, Stream
from redraft.completion.evidence import CursorEvidence
from redraft.completion.languages.base import Language
from redraft.completion.name_evidence import KnownNames
from redraft.completion.ngram_index import NgramIndex
from redraft.completion.similar_functions import SimilarFunction
from redraft.completion.surroundings import Surroundings
from redraft.completion.word_classes import NAME, first_word, first_words, word_class, word_classes
from redraft.text.tokenizer import JOIN, Tokenizer
from redraft.types import Input

ALONE = Surroundings()
"""The surroundings of a function without a file."""

_FOLLOWING = 4
"""Tokens after the cursor that are compared."""


class SessionWords:
    """The words of an index, and those of one function that the index does not have."""

    def __init__(self, index: NgramIndex) -> None:
        self._index = index
        self._known = len(index.words)
        self._added: list[str] = []
        self._ids: dict[str, int] = {}
        self._tables: WordTables | None = None

    @property
    def language(self) -> Language:
        """The language of the index."""
        return self._index.language

    def __len__(self) -> int:
        return self._known + len(self._added)

    def __getitem__(self, token: int) -> str:
        return self._index.words[token] if token < self._known else self._added[token - self._known]

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Return the ids of tokens; new words get new ids."""
        ids = []
        for token in tokens:
            known = self._index.ids.get(token)
            if known is None:
                known = self._ids.setdefault(token, len(self))
                if known == len(self):
                    self._added.append(token)
                    self._tables = None
            ids.append(known)
        return ids

    def known(self, words: Iterable[str]) -> list[int]:
        """Return the ids of those words that have one."""
        found = (self._index.ids.get(word, self._ids.get(word)) for word in words)
        return [token for token in found if token is not None]

    def tables(self) -> WordTables:
        """Return the classes and lengths of all words."""
        if self._tables is None:
            join = self.encode([JOIN])[0]
            lengths = np.asarray([min(len(word), 1000) for word in self._added], np.int16)
            self._tables = WordTables(
                np.concatenate(
                    [self._index.classes, word_classes(self._added, self.language.keywords)]
                ),
                np.concatenate([self._index.word_lengths, lengths]),
                join,
            )
        return self._tables

    def first_words(self) -> NDArray[np.int8]:
        """Return the code of each word as the first one of a line."""
        return np.concatenate(
            [self._index.first_words, first_words(self._added, self.language.keywords)]
        )

    def table(self, tokens: Sequence[int]) -> NDArray[np.bool_]:
        """Return a boolean table of all words that is True for the given ones."""
        table = np.zeros(len(self), np.bool_)
        table[np.asarray(tokens, np.int64)] = True
        return table


class CursorReader:
    """Reads the evidence at cursors of one function."""

    def __init__(
        self,
        x: Input,
        surroundings: Surroundings,
        words: SessionWords,
        streams: Sequence[Stream],
    ) -> None:
        self._words = words
        tokenizer = Tokenizer()
        self._header = words.encode(tokenizer.tokenize(f"{x['name']} {x['arguments']}"))
        self._arguments = words.encode(words.language.argument_names(x["arguments"]))
        self._described = words.known(set(tokenizer.tokenize(x["docstring"][:2000])))
        self._is_described = float(bool(x["docstring"]))
        self._visible = words.known(surroundings.visible)
        self._buffer = words.known(surroundings.names)
        classes = words.tables().classes
        self._stream_names = [
            frozenset(stream.tokens[classes[stream.tokens] == NAME].tolist()) for stream in streams
        ]

    def covered(
        self, occurrences: Occurrences, typed: Sequence[str], index: NgramIndex
    ) -> Occurrences:
        """Fill in the coverage of the functions that the occurrences are in."""
        tokens = {*self._words.encode(typed), *self._header}
        classes = self._words.tables().classes
        rarity = index.rarity
        rarest = float(rarity.max(initial=1.0))
        weights = {
            token: float(rarity[token]) if token < len(rarity) else rarest
            for token in tokens
            if classes[token] == NAME
        }
        total = sum(weights.values()) or 1.0
        names = frozenset(weights)

        def share(function: frozenset[int]) -> float:
            return sum(weights[token] for token in names & function) / total

        rows = np.full(len(occurrences.origin), -1)
        is_indexed = occurrences.origin >= 0
        rows[is_indexed] = index.rows[occurrences.origin[is_indexed]]
        shares = {row: share(index.names_of(row)) for row in set(rows[rows >= 0].tolist())}
        of_stream = [share(stream) for stream in self._stream_names]
        ranks = occurrences.rank.tolist()
        occurrences.coverage[:] = [
            shares[row] if row >= 0 else of_stream[rank] if rank < len(of_stream) else 0.0
            for row, rank in zip(rows.tolist(), ranks, strict=True)
        ]
        return occurrences

    def evidence(
        self,
        typed: Sequence[str],
        following: str,
        occurrences: Occurrences,
        similar: Sequence[SimilarFunction],
    ) -> CursorEvidence:
        """Return the evidence at the end of the tokens `typed`."""
        words = self._words
        context = words.encode(typed)
        [dot, join] = words.encode([".", JOIN])
        after = Tokenizer().tokenize(following.lstrip().split("\n")[0])[:_FOLLOWING]
        after_ids = tuple(words.encode(after))
        used = set(context)
        fresh = [token for token in self._arguments if token not in used]
        line = list(typed[_line_start(typed) :])
        known = KnownNames(
            typed=words.table([*context, *self._header]),
            arguments=words.table(fresh),
            described=words.table(self._described),
            visible=words.table(self._visible),
            buffer=words.table(self._buffer),
            dot=dot,
            join=join,
            is_attribute=bool(typed) and typed[-1] == ".",
            is_string=sum(token in ('"', "'") for token in line) % 2 == 1,
        )
        shares = [one.probability for one in similar]
        features = (
            min(len(typed), 40),
            word_class(typed[-1], words.language.keywords) if typed else 0,
            float(bool(typed) and typed[-1] == "."),
            np.log1p(_longest_matches(occurrences)),
            sum(shares[:1]),
            sum(shares[:4]),
            similar[0].score if similar else 0.0,
            *_line_features(typed, line, words.language.keywords),
            len(self._arguments),
            len(fresh),
            self._is_described,
        )
        return CursorEvidence(features, known, words.first_words(), after_ids)


def _line_start(typed: Sequence[str]) -> int:
    """Return the index of the first token of the last line."""
    return next((i + 1 for i in range(len(typed) - 1, -1, -1) if typed[i] == "\n"), 0)


def _line_features(
    typed: Sequence[str], line: Sequence[str], keywords: frozenset[str]
) -> list[float]:
    """Return features of the last line and of the line with text above it."""
    above = list(typed[: len(typed) - len(line)])
    while above and above[-1].isspace():
        above.pop()
    previous = above[_line_start(above) :]
    is_indented = bool(line) and line[0].isspace()
    before = len(previous[0]) if previous and previous[0].isspace() else 0
    first = next((token for token in previous if not token.isspace()), None)
    own = next((token for token in line if not token.isspace()), None)
    return [
        float(len(line[0])) if is_indented else 0.0,
        float(before),
        float(first_word(first, keywords)) if first else 0.0,
        float(first_word(previous[-1], keywords)) if previous else 0.0,
        float(previous[-1] == ":") if previous else 0.0,
        float(first_word(own, keywords)) if own else 0.0,
        float(len(line)),
        float(sum(token in "([{" for token in typed) - sum(token in ")]}" for token in typed)),
    ]


def _longest_matches(occurrences: Occurrences) -> int:
    """Return how many occurrences have the longest match in the project."""
    in_index = occurrences.source == PROJECT
    levels = occurrences.level[in_index]
    if not len(levels):
        return 0
    return int(occurrences.weight[in_index][levels == levels.max()].sum())
