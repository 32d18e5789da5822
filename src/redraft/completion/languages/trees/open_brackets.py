"""Brackets, strings and comments that are open at the end of a text, whether it parses or not.

Knows no grammar beyond the lexical one: quotes, comments, templates and regular expressions.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

DOUBLE = r'"(?:[^"\\\n]|\\[^\n])*+(?:"|\Z)'
SINGLE = DOUBLE.replace('"', "'")
RAW = r"`[^`]*+(?:`|\Z)"
TEXT_BLOCK = r'"""(?:[^"\\]|\\[\s\S]|"(?!""))*+(?:"""|\Z)'
TEMPLATE = r"`(?P<template>)"
# bounded, since after every slash the line would be read to its end
REGEX = r"/(?![/*])(?:[^\\/\[\n]|\\[^\n]|\[(?:[^\]\\\n]|\\[^\n]){0,99}+\]){1,300}+/(?P<regex>)"

_COMMENT = r"//[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)"
_TEMPLATE_PART = re.compile(r"(?:[^`\\$]|\\[\s\S]|\$(?!\{))*+(?P<end>`|\$\{|\\?\Z)")
_BEFORE_REGEX = re.compile(
    r"(?:[(,=:\[!&|?{};+*%<>~^-]|\b(?:return|typeof|case|in|of|do|else))\s*\Z"
)
_WINDOW = 40
_CLOSED_BY = {"(": ")", "[": "]", "{": "}", "${": "}`", "`": "`"}


class Bracket(NamedTuple):
    """An open bracket, or the mark of a string template, and its offset."""

    mark: str
    offset: int


@dataclass(frozen=True)
class OpenParts:
    """The open brackets at the end of a text, outermost first, and whether it ends in a literal."""

    brackets: Sequence[Bracket]
    is_string: bool
    is_comment: bool


@dataclass(frozen=True)
class Lexis:
    """The lexical grammar of a language: the patterns of its strings."""

    strings: tuple[str, ...]

    @cached_property
    def _token(self) -> re.Pattern[str]:
        strings = "|".join(self.strings)
        return re.compile(
            rf"(?P<comment>{_COMMENT})|{strings}|(?P<open>[(\[{{])|(?P<close>[)\]}}])"
        )

    def open_parts(self, text: str) -> OpenParts:
        """Return what is open at the end of `text`."""
        stack: list[Bracket] = []
        offset = 0
        while match := self._token.search(text, offset):
            offset = match.end()
            kind = match.lastgroup
            if kind == "open":
                stack.append(Bracket(match[0], match.start()))
            elif kind == "close":
                if _pop(stack, match[0]):
                    offset = _skip_template(text, offset, stack)
            elif kind == "template":
                offset = _skip_template(text, offset, stack, start=match.start())
            elif kind == "regex":
                window = text[max(0, match.start() - _WINDOW) : match.start()]
                if window.strip() and not _BEFORE_REGEX.search(window):
                    offset = match.start() + 1  # a division
            elif match.end() == len(text):
                is_comment = kind == "comment"
                is_over = match[0].endswith("*/") if is_comment else _is_closed(match[0])
                if not is_over:
                    return OpenParts(stack, is_string=not is_comment, is_comment=is_comment)
        is_string = bool(stack) and stack[-1].mark == "`"
        return OpenParts(stack, is_string=is_string, is_comment=False)


def closing(brackets: Sequence[Bracket]) -> str:
    """Return the text that closes brackets, the innermost first."""
    return "".join(_CLOSED_BY[bracket.mark] for bracket in reversed(brackets))


def _pop(stack: list[Bracket], mark: str) -> bool:
    """Close the bracket of a closing `mark`; returns True if a template goes on after it.

    Brackets within it were never closed. A mark that closes nothing is ignored.
    """
    for i in range(len(stack) - 1, max(-1, len(stack) - 4), -1):
        if _CLOSED_BY[stack[i].mark][0] == mark:
            is_template = stack[i].mark == "${"
            del stack[i:]
            return is_template
        if stack[i].mark in "{${":
            return False  # a statement cannot end outside of its block
    return False


def _skip_template(text: str, offset: int, stack: list[Bracket], start: int | None = None) -> int:
    """Return the offset after a part of a template; pushes its mark if it is not over."""
    match = _TEMPLATE_PART.match(text, offset)
    if match is None:
        return offset
    if match["end"] != "`":
        begin = offset if start is None else start
        stack.append(Bracket(match["end"] if match["end"] == "${" else "`", begin))
    return match.end()


def _is_closed(string: str) -> bool:
    """Return True if a string at the end of the text has its closing quote."""
    mark = '"""' if string.startswith('"""') else string[0]
    return len(string) >= 2 * len(mark) and string.endswith(mark)
