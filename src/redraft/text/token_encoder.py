"""Encode text as token ids; OOV words are split into subwords. Used by the retrievers."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from redraft.config.ranges import WORDS, Range, check_ranges
from redraft.text.subwords import learn_pieces, segment
from redraft.text.tokenizer import JOIN, Tokenizer, split_identifier
from redraft.text.vocabulary import END, START, UNKNOWN, Vocabulary, most_frequent

_TOKENIZER = Tokenizer()

MAX_WORDS = 20_000
"""The maximum number of whole words in a vocabulary."""

_CACHE_SIZE = 100_000
"""The number of words whose ids are cached."""


@dataclass(frozen=True)
class TokenEncoderConfig:
    """Size of the vocabulary: the minimum count of a word, and the number of subwords."""

    min_count: Annotated[int, WORDS] = 2
    pieces: Annotated[int, Range(0, 1_000_000)] = 1_000

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True)
class TokenEncoder:
    """Encodes text with a vocabulary of words and subwords."""

    vocabulary: Vocabulary
    _cache: dict[str, list[int]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def learn(cls, texts: Iterable[str], config: TokenEncoderConfig) -> "TokenEncoder":
        """Build the vocabulary from `texts` and return its encoder."""
        counts: Counter[str] = Counter()
        for text in texts:
            for token in tokens_of(text):
                counts.update({token, *split_identifier(token)})
        words = most_frequent(counts, MAX_WORDS, min_count=config.min_count)
        pieces = {p: 0 for p in learn_pieces(counts, config.pieces) if p not in words}
        return cls(Vocabulary.of(words | pieces))

    def encode(self, text: str, *, longest: int) -> list[int]:
        """Encode a text as at most `longest` ids of words and subwords, and the end token."""
        ids: list[int] = []
        for token in tokens_of(text):
            if len(ids) >= longest:
                break
            ids += self._ids(token)
        return [*ids[:longest], *self.vocabulary.encode([END])]

    def target(self, text: str, *, longest: int) -> list[int]:
        """Return the ids of a decoder target: start, at most `longest` whole words, end.

        OOV words become the unknown token.
        """
        # with subwords, the embedding would have to encode every name, and inputs would be close
        # because they share names
        words = itertools.islice(tokens_of(text), longest)
        return self.vocabulary.encode([START, *words, END])

    def _ids(self, token: str) -> list[int]:
        if token not in self._cache:
            if len(self._cache) >= _CACHE_SIZE:  # most words of a large corpus occur once
                self._cache.clear()
            self._cache[token] = self.vocabulary.encode(self._split(token))
        return self._cache[token]

    def _split(self, token: str) -> list[str]:
        """Split an OOV token into identifier parts, and OOV parts into subwords."""
        if token in self.vocabulary:
            return [token]
        parts = split_identifier(token)
        if len(parts) > 1:
            return [piece for part in parts for piece in self._split(part)]
        return segment(token, self.vocabulary) or [UNKNOWN]

    def save(self, path: Path) -> None:
        """Write the vocabulary."""
        self.vocabulary.save(path)

    @classmethod
    def load(cls, path: Path) -> "TokenEncoder":
        """Load the vocabulary that `save` wrote."""
        return cls(Vocabulary.load(path))


def tokens_of(text: str) -> Iterator[str]:
    """Return the tokens of a text without spaces and join marks."""
    return (token for token in _TOKENIZER.tokenize(text) if token not in (" ", JOIN))
