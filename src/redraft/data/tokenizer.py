"""Space-and-punctuation tokens that lose nothing: `detokenize(tokenize(text)) == text`, always.

A token is a word, an operator, one other character, a newline, or a run of white space such as
an indentation. A single space is left out where `expects_space` expects one and written as a
token where it does not; where a space is expected and none stands, `JOIN` is written. Knows no
vocabulary and no model.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from redraft.data.pieces import CONTINUED

JOIN = "<join>"
"""No space here, though one was expected. Never a token of a text: words hold no punctuation."""

_OPERATOR = r"(?:\*\*|//|>>|<<)=?|\.\.\.|[-=!<>+*/%&|^:]=|->|=>|&&|\|\||::"
_TOKEN = re.compile(rf"\w+|\n|[^\S\n]+|{_OPERATOR}|.", re.DOTALL)
_PIECE = re.compile(r"_+|\d+|[^\W\d_]+")
_CAMEL = re.compile(r"(?<=[^\W\d_A-Z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][^\W\d_A-Z])")

_SPACED = frozenset("= == != <= >= += -= *= /= //= := -> + < > && || => | &".split())  # noqa: SIM905
_SPACE_AFTER = frozenset(",:;#")
_NO_SPACE_BEFORE = frozenset(",:;.)]}")


def is_word(token: str) -> bool:
    """Whether the token is made of letters, digits and underscores."""
    return token[-1].isalnum() or token[-1] == "_"


def expects_space(left: str, right: str) -> bool:
    """Whether text usually has a space between these two, neither being white space."""
    if right in _NO_SPACE_BEFORE or left == right == "#":  # a ruler of #### is one run
        return False
    if left in _SPACE_AFTER or (left in _SPACED) != (right in _SPACED):
        return True
    # underscores alone are most often a part of a split identifier
    return is_word(left) and is_word(right) and bool(left.strip("_") and right.strip("_"))


def split_identifier(word: str) -> list[str]:
    """The parts of an identifier: `maxCardCount_2` to max, Card, Count, _, 2."""
    return [part for piece in _PIECE.findall(word) for part in _CAMEL.split(piece)]


@dataclass(frozen=True)
class Tokenizer:
    """Texts to tokens and back."""

    splits_identifiers: bool = False

    def tokenize(self, text: str) -> list[str]:
        """The tokens of a text."""
        tokens: list[str] = []
        left = space = ""  # the last token that is no white space, and what stood since
        for token in self._pieces(text):
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

    def _pieces(self, text: str) -> Iterable[str]:
        for token in _TOKEN.findall(text):
            if self.splits_identifiers and is_word(token):
                yield from split_identifier(token)
            else:
                yield token


def spell(tokens: Iterable[str]) -> list[str]:
    """The text that each token stands for, with the space that belongs before it.

    A piece that continues a word stands for itself, without a space.
    """
    texts: list[str] = []
    left = ""  # the token before, unless a space after it is ruled out
    for token in tokens:
        if token == JOIN:
            texts.append("")
            left = ""
        elif token.isspace():
            texts.append(token)
            left = ""
        elif token.startswith(CONTINUED):
            left = token.removeprefix(CONTINUED)
            texts.append(left)
        else:
            texts.append(f" {token}" if left and expects_space(left, token) else token)
            left = token
    return texts


def detokenize(tokens: Iterable[str]) -> str:
    """The text that these tokens came from; for any other tokens, the text they stand for."""
    return "".join(spell(tokens))
