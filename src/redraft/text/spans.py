"""The words of a text with their offsets, and the spans of words that are values.

Unlike the tokens of `tokenizer`, an e-mail address, a date such as 2024-07-03 and a number such as
1,000 are one word each. White space is skipped, except for newlines, which separate the fields of
an input. Knows no vocabulary and no model.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice

Span = tuple[int, int]
"""Positions of the first word of a span and of the word after it."""

_WORD = re.compile(
    r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"  # an e-mail address
    r"|\d+(?:[.,:/-]\d+)*(?!\w)"  # a number, a time or a date
    r"|\w{2,}(?:-\w*\d{2}\w*)+"  # a code such as INV-2025-0318
    r"|\w+|\n|[^\w\s]"
)
QUOTES = frozenset("\"'`")


@lru_cache(maxsize=100_000)
def is_word(word: str) -> bool:
    """Return True if the word has a letter or a digit: it is not punctuation."""
    return any(character.isalnum() for character in word)


def is_number(word: str) -> bool:
    """Return True for a number, a time or a date in digits."""
    return word[0].isdigit()


@dataclass(frozen=True)
class WordSpans:
    """The words of a text: as written, case-folded, and where they start and end."""

    text: str
    words: tuple[str, ...]
    folded: tuple[str, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    @classmethod
    def of(cls, text: str, *, limit: int | None = None) -> "WordSpans":
        """Split `text` into words; with a `limit`, only the first ones."""
        matches = list(islice(_WORD.finditer(text), limit))
        words = tuple(match.group() for match in matches)
        return cls(
            text,
            words,
            tuple(word.casefold() for word in words),
            tuple(match.start() for match in matches),
            tuple(match.end() for match in matches),
        )

    def __len__(self) -> int:
        return len(self.words)

    def slice(self, span: Span) -> str:
        """Return the text of a span of words."""
        start, end = span
        return self.text[self.starts[start] : self.ends[end - 1]]

    def fold(self, span: Span) -> tuple[str, ...]:
        """Return the case-folded words of a span."""
        return self.folded[span[0] : span[1]]

    @cached_property
    def quoted(self) -> tuple[bool, ...]:
        """For each word whether it stands between quotes; the quotes themselves do not."""
        inside: list[bool] = []
        quote = None
        for i, word in enumerate(self.words):
            is_mark = word in QUOTES and not self._is_apostrophe(i)
            if is_mark and quote is None and word in self.words[i + 1 :]:
                quote = word
                inside.append(False)
            elif is_mark and word == quote:
                quote = None
                inside.append(False)
            else:
                inside.append(quote is not None)
        return tuple(inside)

    def _is_apostrophe(self, i: int) -> bool:
        """Return True for a mark between two letters, as in `don't`."""
        start, end = self.starts[i], self.ends[i]
        around = self.text[start - 1 : start], self.text[end : end + 1]
        return self.words[i] == "'" and all(part.isalnum() for part in around)

    def values(self) -> Iterator[Span]:
        """Yield the spans of quoted strings, numbers and e-mail addresses outside of quotes."""
        inside = self.quoted
        i = 0
        while i < len(self):
            end = i
            while end < len(self) and inside[end]:
                end += 1
            if end > i:
                yield i, end
            elif is_number(self.words[i]) or "@" in self.words[i][1:]:
                yield i, i + 1
            i = max(end, i + 1)


def shape_of(word: str) -> str:
    """Return the kind of a word: number, code, address or plain word."""
    if is_number(word):
        return "number"
    if "@" in word[1:]:
        return "address"
    return "code" if "-" in word else "word"


def overlaps(span: Span, other: Span) -> bool:
    """Return True if two spans share a word."""
    return span[0] < other[1] and other[0] < span[1]
