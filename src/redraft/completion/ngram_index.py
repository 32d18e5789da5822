"""An n-gram index of a code base: the positions at which the end of a context occurs.

Every output is a stream of token ids between `START` and `END`. For each order k, the positions are
sorted by a hash of the k tokens before them, so that a lookup is a binary search. Knows no cursor.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from redraft.completion.context_tables import END, START, ContextTables, Ids
from redraft.completion.languages.base import Language, kind_of
from redraft.completion.languages.python.language import PYTHON
from redraft.completion.word_classes import EDGES, NAME, first_words, word_classes
from redraft.text.tokenizer import Tokenizer, spell
from redraft.types import Example

ORDERS = (1, 2, 3, 4, 6, 9, 13)
"""Context lengths that are indexed, in tokens."""

MAX_WIDTH = 1000
"""Characters of a token that count."""

SHAPE_ORDERS = (4, 7, 11)
"""Context lengths that are indexed with any name in place of another."""

ANY_NAME = 2**31 - 2
"""Stands for every name in a shape."""

Encoded = tuple[Ids, NDArray[np.int16]]


@dataclass(frozen=True)
class NgramIndex:
    """The tokens of all examples, and for each order the sorted hashes and their positions."""

    examples: Sequence[Example]
    words: Sequence[str]
    ids: Mapping[str, int]
    tokens: Ids  # (S,)
    widths: NDArray[np.int16]  # (S,) characters of each token, with its implicit space
    rows: Ids  # (S,) the example of each position
    contexts: ContextTables
    shapes: ContextTables  # of the tokens with `ANY_NAME` for each name
    classes: NDArray[np.int8]  # (V,) of each word
    encoded: Mapping[str, Encoded]
    language: Language
    _names: dict[int, frozenset[int]] = field(default_factory=dict)

    @classmethod
    def build(
        cls,
        examples: Sequence[Example],
        known: "NgramIndex | None" = None,
        *,
        language: Language = PYTHON,
    ) -> "NgramIndex":
        """Index the outputs of `examples`; outputs that `known` has are not tokenized again."""
        words = list(known.words) if known else list(EDGES)
        ids = dict(known.ids) if known else {word: i for i, word in enumerate(words)}
        cache = known.encoded if known else {}
        encoded: dict[str, Encoded] = {}
        for example in examples:
            if example.y not in encoded:
                encoded[example.y] = cache.get(example.y) or _encode(example.y, words, ids)
        streams = [encoded[example.y] for example in examples]
        lengths = [len(stream[0]) for stream in streams]
        tokens = np.concatenate([[END], *(stream[0] for stream in streams)]).astype(np.int32)[1:]
        widths = np.concatenate([[0], *(stream[1] for stream in streams)]).astype(np.int16)[1:]
        rows = np.repeat(np.arange(len(streams), dtype=np.int32), lengths)
        starts = np.repeat(np.cumsum([0, *lengths])[:-1], lengths)
        contexts = ContextTables.build(tokens, starts, ORDERS)
        classes = word_classes(words, language.keywords)
        shapes = ContextTables.build(shape(tokens, classes), starts, SHAPE_ORDERS)
        return cls(
            examples, words, ids, tokens, widths, rows, contexts, shapes, classes, encoded, language
        )

    def prepare(self) -> None:
        """Compute the tables that are otherwise computed with the first suggestion."""
        _ = self.rarity, self.word_lengths, self.first_words, self.rows_of_file, self.are_functions

    @cached_property
    def rarity(self) -> NDArray[np.float64]:
        """Return the negative log-frequency of each word."""
        counts = np.bincount(self.tokens, minlength=len(self.words))
        return np.log((1 + len(self.tokens)) / (1.0 + counts))

    @cached_property
    def are_functions(self) -> NDArray[np.bool_]:
        """Return which examples are functions; the others are blocks."""
        return np.asarray([kind_of(one.x) == "function" for one in self.examples], np.bool_)

    @cached_property
    def word_lengths(self) -> NDArray[np.int16]:
        """Return the characters of each word."""
        return np.asarray([min(len(word), MAX_WIDTH) for word in self.words], np.int16)

    @cached_property
    def first_words(self) -> NDArray[np.int8]:
        """Return the code of each word as the first one of a line."""
        return first_words(self.words, self.language.keywords)

    @cached_property
    def rows_of_file(self) -> dict[str, list[int]]:
        """Return the examples of each file, in order."""
        files: dict[str, list[int]] = {}
        for row, example in enumerate(self.examples):
            files.setdefault(str(example.meta.get("file")), []).append(row)
        return files

    def file_named(self, path: str) -> str | None:
        """Return the indexed file that a path ends with, the longest if there are several."""
        parts = path.replace("\\", "/").split("/")
        names = ("/".join(parts[i:]) for i in range(len(parts)))
        return next((name for name in names if name in self.rows_of_file), None)

    def names_of(self, row: int) -> frozenset[int]:
        """Return the ids of the names in an example."""
        if row not in self._names:
            # of the type of `rows`: NumPy would convert all of them otherwise
            first, last = np.searchsorted(self.rows, np.asarray([row, row + 1], np.int32))
            tokens = self.tokens[first:last]
            self._names[row] = frozenset(tokens[self.classes[tokens] == NAME].tolist())
        return self._names[row]


def shape(tokens: Ids, classes: NDArray[np.int8]) -> Ids:
    """Return the tokens with `ANY_NAME` for each name."""
    return np.where(classes[tokens] == NAME, ANY_NAME, tokens).astype(np.int32)


def _encode(text: str, words: list[str], ids: dict[str, int]) -> Encoded:
    """Return the ids of a text between `START` and `END`, and the width of each."""
    tokens = Tokenizer().tokenize(text)
    for token in tokens:
        if token not in ids:
            ids[token] = len(words)
            words.append(token)
    stream = [START, *(ids[token] for token in tokens), END]
    return np.asarray(stream, np.int32), token_widths(tokens)


def token_widths(tokens: Sequence[str]) -> NDArray[np.int16]:
    """Return the characters of each token with its implicit space, 0 for `START` and `END`.

    Longer tokens than `MAX_WIDTH`, such as data in a string, count as that long.
    """
    return np.asarray([0, *(min(len(text), MAX_WIDTH) for text in spell(tokens)), 0], np.int16)
