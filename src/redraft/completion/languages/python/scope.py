"""Finds the function, class or module around a cursor.

Decides by logical lines and their indentation; ignores the contents of headers and bodies.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from redraft.completion.languages.base import Kind
from redraft.completion.languages.python.header import read_header
from redraft.completion.languages.python.logical_lines import (
    HEADER,
    LogicalLine,
    indentation_of,
    read_lines,
    top_level_start,
    width,
)

_HEADER = re.compile(HEADER)
_HEADER_WORDS = ("def", "class", "async")


@dataclass(frozen=True)
class Scope:
    """A function or class with its header, or the module; `next` is its first line, if any."""

    kind: Kind
    header: LogicalLine | None
    next: LogicalLine | None


def find_scope(before: str, ahead: str, *, is_in_header: bool = False) -> Scope:
    """Return the innermost function around the end of `before`, or else the class or the module.

    `ahead` is the rest of the cursor's line, since the cursor may be inside its indentation. With
    `is_in_header` the last line is a header, and what is around that is returned.
    """
    lines = list(read_lines(before, top_level_start(before)))
    headers = _enclosing(before, lines)
    if is_in_header:
        headers = headers[:-1]
    if lines and lines[-1].end < len(before):
        column = _column(before[lines[-1].end :], ahead)
        while headers and (
            width(lines[headers[-1]].indentation) >= column
            or _is_over(before, lines[headers[-1] :])
        ):
            headers.pop()
    if not headers:
        return Scope("module", None, next(read_lines(before), None))
    functions = [i for i in headers if not is_class(before, lines[i])]
    header = functions[-1] if functions else headers[-1]
    following = lines[header + 1] if header + 1 < len(lines) else None
    return Scope("function" if functions else "class", lines[header], following)


def is_header(text: str, line: LogicalLine) -> bool:
    """Return True if a line is the header of a function or class."""
    return text.startswith(_HEADER_WORDS, line.start) and bool(_HEADER.match(text, line.start))


def is_class(text: str, line: LogicalLine) -> bool:
    """Return True if a header is that of a class."""
    return text.startswith("class", line.start)


def _enclosing(before: str, lines: Sequence[LogicalLine]) -> list[int]:
    """Return the indices of the headers around the last line, outermost first.

    Includes the last line if it is a header.
    """
    headers: list[int] = []
    columns: list[int] = []
    for i, line in enumerate(lines):
        column = width(line.indentation)
        while columns and columns[-1] >= column:
            columns.pop()
            headers.pop()
        if is_header(before, line):
            columns.append(column)
            headers.append(i)
    return headers


def _is_over(before: str, lines: Sequence[LogicalLine]) -> bool:
    """Return True if the last line of code is a header with an inline body."""
    return len(lines) == 1 and read_header(before, lines[0]).body is not None


def _column(tail: str, ahead: str) -> float:
    """Return the column of a last line without code; `tail` is the text after the last code.

    At column 0 the user may not have indented yet: only two blank lines end the block above.
    """
    _, *above, last = tail.split("\n")
    is_before_text = not last.strip() and bool(ahead.strip())
    column = width(indentation_of(last + ahead if is_before_text else last))
    is_code = is_before_text and not ahead.lstrip().startswith("#")
    is_separated = sum(not line.strip() for line in above) > 1
    return column if column or is_code or is_separated else math.inf
