"""Texts to token numbers, unknown words in pieces: what a network reads."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from redraft.data.pieces import learn_pieces, segment
from redraft.data.tokenizer import JOIN, Tokenizer, split_identifier
from redraft.data.vocabulary import END, START, UNKNOWN, Vocabulary

_TOKENIZER = Tokenizer()

_KEPT = 100_000
"""Words whose pieces are kept."""


@dataclass(frozen=True)
class NumberingConfig:
    """How many words and pieces are known."""

    min_count: int = 2
    max_words: int = 10_000
    pieces: int = 1_000


@dataclass(frozen=True)
class Numbering:
    """A vocabulary, and the way from text to its numbers."""

    vocabulary: Vocabulary
    _known: dict[str, list[int]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def learn(cls, texts: Iterable[str], config: NumberingConfig) -> "Numbering":
        """The numbering whose words and pieces are those of these texts."""
        counts: Counter[str] = Counter()
        for text in texts:
            for token in tokens_of(text):
                counts.update({token, *split_identifier(token)})
        ranked = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
        words = [entry for entry in ranked if entry[1] >= config.min_count][: config.max_words]
        kept = dict(words)
        pieces = [p for p in learn_pieces(counts, config.pieces) if p not in kept]
        return cls(Vocabulary.of({**kept, **dict.fromkeys(pieces, 0)}))

    def numbers(self, text: str, *, longest: int) -> list[int]:
        """The text's tokens as numbers, at most `longest`, and the number of the end."""
        numbers: list[int] = []
        for token in tokens_of(text):
            if len(numbers) >= longest:
                break
            numbers += self._token(token)
        return [*numbers[:longest], *self.vocabulary.encode([END])]

    def target(self, text: str, *, longest: int) -> list[int]:
        """Start, the text's whole words, end: what a decoder writes, rare words being unknown."""
        # spelled in pieces, every name would have to fit into the code that the decoder reads,
        # and inputs would be near for the sake of their names
        words = itertools.islice(tokens_of(text), longest)
        return self.vocabulary.encode([START, *words, END])

    def _token(self, token: str) -> list[int]:
        if token not in self._known:
            if len(self._known) >= _KEPT:  # of many texts most words are met once
                self._known.clear()
            self._known[token] = self.vocabulary.encode(self._spell(token))
        return self._known[token]

    def _spell(self, token: str) -> list[str]:
        """The token if it is known, else the parts of the identifier, each in pieces if need be."""
        if token in self.vocabulary:
            return [token]
        parts = split_identifier(token)
        if len(parts) > 1:
            return [piece for part in parts for piece in self._spell(part)]
        return segment(token, self.vocabulary) or [UNKNOWN]

    def save(self, path: Path) -> None:
        """Write the vocabulary."""
        self.vocabulary.save(path)

    @classmethod
    def load(cls, path: Path) -> "Numbering":
        """The numbering that was saved."""
        return cls(Vocabulary.load(path))


def tokens_of(text: str) -> Iterator[str]:
    """The tokens that a network reads: spaces and joins are not among them."""
    return (token for token in _TOKENIZER.tokenize(text) if token not in (" ", JOIN))
