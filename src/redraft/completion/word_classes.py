"""Classes of tokens: what matters of a token for the ranking of continuations."""

import keyword
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from redraft.text.tokenizer import JOIN

NONE, KEYWORD, NAME, NEWLINE, SPACE, NUMBER, QUOTE, SIGN, SPLIT, JOINED = range(10)
"""The classes; `SPLIT` is a sign after which a suggestion may end."""

EDGES = ("<start>", "<end>")
"""Stand for the edges of an output. No text has these tokens: words contain no punctuation."""

_KEYWORDS = frozenset(keyword.kwlist)


def word_class(word: str) -> int:
    """Return the class of a token."""
    if word in EDGES:
        return NONE
    if word == JOIN:
        return JOINED
    if word in ("(", ","):
        return SPLIT
    if word == "\n":
        return NEWLINE
    if word.isspace():
        return SPACE
    if word.isidentifier():
        return KEYWORD if word in _KEYWORDS else NAME
    return NUMBER if word[0].isdigit() else QUOTE if word in ('"', "'") else SIGN


def word_classes(words: Iterable[str]) -> NDArray[np.int8]:
    """Return the class of each token."""
    return np.fromiter(map(word_class, words), np.int8)
