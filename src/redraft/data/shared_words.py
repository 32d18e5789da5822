"""Which words examples share, and what the words that they do not share are spelled with."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from redraft.data.pieces import CONTINUED, learn_pieces
from redraft.data.tokenizer import JOIN, is_word, split_identifier

_SHARED = 2
"""A part of an identifier that so many words have is known as a whole."""


class SharedWords:
    """How many examples have each word, and whether they are of several projects."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.first: dict[str, Any] = {}
        self.several: set[str] = set()
        self.projects: set[Any] = set()

    def count(self, words: Collection[str], project: Any) -> None:
        """Count the words of one example."""
        self.counts.update(words)
        self.projects.add(project)
        for word in words:
            if self.first.setdefault(word, project) != project:
                self.several.add(word)

    def frequent(self, min_count: int, most: int) -> dict[str, int]:
        """The words that most examples have, and how many, ties by spelling."""
        shared = self.several if len(self.projects) > 1 else self.counts
        ranked = sorted(self.counts.items(), key=lambda entry: (-entry[1], entry[0]))
        return dict(
            [(w, count) for w, count in ranked if count >= min_count and w in shared][:most]
        )


def spelling(counts: Mapping[str, int], written: Collection[str], pieces: int) -> dict[str, int]:
    """Parts that words have in common, all characters, and pieces for parts of lost words alone.

    With them every word of the same characters can be written.
    """
    parts = Counter(part for word in counts for part in set(split_identifier(word)))
    ranked = sorted(parts.items(), key=lambda entry: (-entry[1], entry[0]))
    shared = {part: count for part, count in ranked if count >= _SHARED and part not in written}
    known = {*written, *shared}
    lost = [word for word in counts if word not in written and is_word(word)]
    rest = Counter(part for word in lost for part in split_identifier(word) if part not in known)
    characters = sorted({character for word in counts if is_word(word) for character in word})
    single = [mark + character for mark in ("", CONTINUED) for character in characters]
    learned = [JOIN, " ", *single, *learn_pieces(rest, pieces)]
    return {**shared, **{piece: 1 for piece in learned if piece not in known}}
