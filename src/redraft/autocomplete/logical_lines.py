"""Source text to logical lines, whether it parses or not.

Knows strings, comments, brackets, indentation, and the words that only a statement begins with;
knows no other grammar. What is left open ends with the text, or where a new statement must begin.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

# what follows a quote; it never fails once begun, so that nothing is ever tried twice
_DOUBLE = r'(?:""(?:[^"\\]+|\\(?:[\s\S]|\Z)|"(?!""))*(?:"""|\Z)|(?:[^"\\\n]+|\\[\s\S])*"?)'
_SINGLE = _DOUBLE.replace('"', "'")
STRING = f"\"{_DOUBLE}|'{_SINGLE}"
"""A string without its prefix; one in single quotes ends with its line at the latest."""

COMMENT = r"#[^\n]*"
SPACE = r"[ \t\f]"
HEADER = rf"(?:async{SPACE}+def|def|class)(?:{SPACE}|\\\n)+(?=\w|\Z)"
_STATEMENT = (
    rf"{HEADER}|(?:assert|break|continue|del|elif|except|finally|global|import|nonlocal|pass|raise"
    rf"|return|try|while|with)\b"
)

_CLOSED = r"""[^()\[\]{}"'#\n\\]*[)\]}]"""

# both begin with plain characters only: `re` leaps from one such character to the next
_TOP_LEVEL = re.compile(rf"{STRING}|{COMMENT}|\n\f*(?P<header>{HEADER})")
_TOKEN = re.compile(
    r"""[\n"'#\\()\[\]{}](?:"""
    rf"(?<=\n)(?:(?P<indentation>{SPACE}*)"
    rf"(?:(?P<statement>(?={_STATEMENT}))|(?P<line>(?=[^ \t\f\n#])))|(?P<end>))"
    rf"|(?<=[(\[{{])(?:{_CLOSED}|(?P<open>))|(?<=[)\]}}])(?P<close>)"
    rf"|(?<=\"){_DOUBLE}|(?<='){_SINGLE}|(?<=#)[^\n]*|(?<=\\)\n?)"
)
_CLOSED_BY = {"(": ")", "[": "]", "{": "}"}


class LogicalLine(NamedTuple):  # a tuple, since there are thousands at every keystroke
    """Where a statement, or the header of a block, begins and ends, and the white space before."""

    start: int
    end: int
    indentation: str


def indentation_of(line: str) -> str:
    """The white space that a line begins with; a form feed ends a page and is no part of it."""
    return line[: len(line) - len(line.lstrip(" \t\f"))].lstrip("\f")


def width(indentation: str) -> int:
    """The columns that white space takes up: a tab goes on to the next eighth, as in Python."""
    return len(indentation.expandtabs(8)) if "\t" in indentation else len(indentation)


def top_level_start(text: str) -> int:
    """The line end before the last function or class without indentation; 0 if there is none."""
    start = 0
    for match in _TOP_LEVEL.finditer(text):
        if match.lastgroup:
            start = match.start()
    return start


def read_lines(text: str, start: int = 0) -> Iterator[LogicalLine]:
    """The logical lines after a line end, which the text must have at `start`."""
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
    """What closes the strings and brackets that a text leaves open."""
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
