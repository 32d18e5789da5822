"""Lossless tokenizer for text and code: `detokenize(tokenize(text)) == text` for every text.

A token is a word, an operator, a single other character, a newline, or a run of whitespace such as
an indentation. A single space is implicit where `expects_space` predicts one and a token elsewhere;
`JOIN` marks a predicted space that the text does not have. Knows no vocabulary and no model.
"""

import re
from collections.abc import Iterable

JOIN = "<join>"
"""Marks a missing space. No text has this token: words contain no punctuation."""

_OPERATOR = r"(?:\*\*|//|>>|<<)=?|\.\.\.|[-=!<>+*/%&|^:]=|->|=>|&&|\|\||::"
_TOKEN = re.compile(rf"\w+|\n|[^\S\n]+|{_OPERATOR}|.", re.DOTALL)
_PIECE = re.compile(r"_+|\d+|[^\W\d_]+")
_CAMEL = re.compile(r"(?<=[^\W\d_A-Z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][^\W\d_A-Z])")

_SPACED = frozenset("= == != <= >= += -= *= /= //= := -> + < > && || => | &".split())  # noqa: SIM905
_SPACE_AFTER = frozenset(",:;#")
_NO_SPACE_BEFORE = frozenset(",:;.)]}")


def is_word(token: str) -> bool:
    """Return True if the token consists of letters, digits and underscores."""
    return token[-1].isalnum() or token[-1] == "_"


def expects_space(left: str, right: str) -> bool:
    """Return True if text usually has a space between two tokens that are not whitespace."""
    if right in _NO_SPACE_BEFORE or left == right == "#":  # a ruler such as ####
        return False
    if left in _SPACE_AFTER or (left in _SPACED) != (right in _SPACED):
        return True
    # names of underscores alone predict no space; published results depend on this rule
    return is_word(left) and is_word(right) and bool(left.strip("_") and right.strip("_"))


def split_identifier(word: str) -> list[str]:
    """Split an identifier: `maxCardCount_2` gives max, Card, Count, _, 2."""
    return [part for piece in _PIECE.findall(word) for part in _CAMEL.split(piece)]


class Tokenizer:
    """Splits texts into tokens."""

    def tokenize(self, text: str) -> list[str]:
        """Split a text into tokens that `detokenize` joins to the same text."""
        tokens: list[str] = []
        left = space = ""  # the last token that is not whitespace, and the whitespace after it
        for token in _TOKEN.findall(text):
            if token.isspace():
                space += token
                tokens.append(token)
                continue
            if left:
                expected = expects_space(left, token)
                if space == " " and expected:
                    tokens.pop()
                elif not space and expected:
                    tokens.append(JOIN)
            tokens.append(token)
            left, space = token, ""
        return tokens


def spell(tokens: Iterable[str]) -> list[str]:
    """Return the text of each token, with the implicit space before it."""
    texts: list[str] = []
    left = ""  # the previous token, or "" if no implicit space can follow it
    for token in tokens:
        if token == JOIN:
            texts.append("")
            left = ""
        elif token.isspace():
            texts.append(token)
            left = ""
        else:
            texts.append(f" {token}" if left and expects_space(left, token) else token)
            left = token
    return texts


def detokenize(tokens: Iterable[str]) -> str:
    """Join tokens to text, the inverse of `Tokenizer.tokenize`."""
    return "".join(spell(tokens))
