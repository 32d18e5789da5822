"""Splits source text into logical lines, whether it parses or not.

Knows strings, comments, brackets, indentation, and the keywords that only start a statement; no
other grammar. An open bracket or string ends with the text, or where a new statement must start.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

# the rest of a string after its quote; always matches, so that the regex never backtracks
_DOUBLE = r'(?:""(?:[^"\\]+|\\(?:[\s\S]|\Z)|"(?!""))*(?:"""|\Z)|(?:[^"\\\n]+|\\[\s\S])*"?)'
_SINGLE = _DOUBLE.replace('"', "'")
STRING = f"\"{_DOUBLE}|'{_SINGLE}"
"""A string without its prefix; one that is not triple-quoted ends at the end of its line."""

COMMENT = r"#[^\n]*"
SPACE = r"[ \t\f]"
HEADER = rf"(?:async{SPACE}+def|def|class)(?:{SPACE}|\\\n)+(?=\w|\Z)"
_STATEMENT = (
    rf"{HEADER}|(?:assert|break|continue|del|elif|except|finally|global|import|nonlocal|pass|raise"
    rf"|return|try|while|with)\b"
)

_CLOSED = r"""[^()\[\]{}"'#\n\\]*[)\]}]"""

# both start with literal characters, so that `re` can skip to the next one quickly
_TOP_LEVEL = re.compile(rf"{STRING}|{COMMENT}|\n\f*(?P<header>{HEADER})")
_TOKEN = re.compile(
    r"""[\n"'#\\()\[\]{}](?:"""
    rf"(?<=\n)(?:(?P<indentation>{SPACE}*)"
    rf"(?:(?P<statement>(?={_STATEMENT}))|(?P<line>(?=[^ \t\f\n#])))|(?P<end>))"
    rf"|(?<=[(\[{{])(?:{_CLOSED}|(?P<open>))|(?<=[)\]}}])(?P<close>)"
    rf"|(?<=\"){_DOUBLE}|(?<='){_SINGLE}|(?<=#)[^\n]*|(?<=\\)\n?)"
)
_CLOSED_BY = {"(": ")", "[": "]", "{": "}"}


class LogicalLine(NamedTuple):  # a tuple for speed: there are thousands per keystroke
    """The start, end and indentation of a statement or of a block's header."""

    start: int
    end: int
    indentation: str


def indentation_of(line: str) -> str:
    """Return the white space at the start of a line, without form feeds."""
    return line[: len(line) - len(line.lstrip(" \t\f"))].lstrip("\f")


def width(indentation: str) -> int:
    """Return the columns of an indentation; as in Python, a tab extends to a multiple of 8."""
    return len(indentation.expandtabs(8)) if "\t" in indentation else len(indentation)


def top_level_start(text: str) -> int:
    """Return the offset of the line end before the last top-level function or class, or 0."""
    start = 0
    for match in _TOP_LEVEL.finditer(text):
        if match.lastgroup:
            start = match.start()
    return start


def read_lines(text: str, start: int = 0) -> Iterator[LogicalLine]:
    """Yield the logical lines after `start`, which must be the offset of a line end."""
    depth, begin, indentation = 0, -1, ""
    for match in _TOKEN.finditer(text, start):
        kind = match.lastgroup
        if kind is None:
            continue
        if kind == "open":
            depth += 1
        elif kind == "close":
            depth = max(depth - 1, 0)
        elif kind == "statement" or not depth:
            depth = 0  # a bracket before a new statement was never closed
            if begin >= 0:
                yield LogicalLine(begin, match.start(), indentation)
            begin = -1
            if kind != "end":
                begin, indentation = match.end(), match["indentation"].lstrip("\f")
    if begin >= 0:
        yield LogicalLine(begin, len(text), indentation)


def closing(text: str) -> str:
    """Return the quotes and brackets that close the open strings and brackets of a text."""
    brackets: list[str] = []
    quotes = ""
    for match in _TOKEN.finditer(text):
        token = match[0]
        if match.lastgroup == "open":
            brackets.append(_CLOSED_BY[token])
        elif match.lastgroup == "close":
            del brackets[-1:]
        elif token.startswith(('"', "'")) and match.end() == len(text):
            mark = token[:3] if token[:3] in ('"""', "'''") else token[0]
            is_closed = len(token) >= 2 * len(mark) and token.endswith(mark)
            quotes = "" if is_closed else mark
    return quotes + "".join(reversed(brackets))
