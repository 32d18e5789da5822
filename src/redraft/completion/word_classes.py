"""Classes of tokens: what matters of a token for the ranking of continuations."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from redraft.completion.languages.python.language import PYTHON
from redraft.text.tokenizer import JOIN

NONE, KEYWORD, NAME, NEWLINE, SPACE, NUMBER, QUOTE, SIGN, SPLIT, JOINED = range(10)
"""The classes; `SPLIT` is a sign after which a suggestion may end."""

EDGES = ("<start>", "<end>")
"""Stand for the edges of an output. No text has these tokens: words contain no punctuation."""

_COMMON = (
    "return if for raise with try else elif except finally while yield assert del import from not "
    "def class async await break continue pass global nonlocal lambda self super cls print"
)
_CODES = {word: code for code, word in enumerate(_COMMON.split(), start=10)}


def word_class(word: str, keywords: frozenset[str] = PYTHON.keywords) -> int:
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
        return KEYWORD if word in keywords else NAME
    return NUMBER if word[0].isdigit() else QUOTE if word in ('"', "'") else SIGN


def word_classes(
    words: Iterable[str], keywords: frozenset[str] = PYTHON.keywords
) -> NDArray[np.int8]:
    """Return the class of each token."""
    return np.fromiter((word_class(word, keywords) for word in words), np.int8)


def first_word(word: str, keywords: frozenset[str] = PYTHON.keywords) -> int:
    """Return a code for the first token of a line: of common words, or else the class."""
    return _CODES.get(word) or word_class(word, keywords)


def first_words(words: Iterable[str], keywords: frozenset[str]) -> NDArray[np.int8]:
    """Return the code of each token as the first one of a line."""
    return np.fromiter((first_word(word, keywords) for word in words), np.int8)
