"""The text before a cursor to the function, class or module that the cursor is in.

Decides by logical lines and their indentation. Knows nothing of what a header or a body says.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from redraft.autocomplete.header import read_header
from redraft.autocomplete.logical_lines import (
    HEADER,
    LogicalLine,
    indentation_of,
    read_lines,
    top_level_start,
    width,
)

_HEADER = re.compile(HEADER)
_HEADER_WORDS = ("def", "class", "async")

Kind = Literal["function", "class", "module"]


@dataclass(frozen=True)
class Scope:
    """A function or class by its header, or the module; and the line after, if there is one."""

    kind: Kind
    header: LogicalLine | None
    next: LogicalLine | None


def find_scope(before: str, ahead: str) -> Scope:
    """The innermost function around the end of a text, or else the class or the module.

    `ahead` is the rest of the last line: a line's own indentation counts, wherever in it one is.
    """
    lines = list(read_lines(before, top_level_start(before)))
    headers = _enclosing(before, lines)
    if lines and lines[-1].end < len(before):
        column = _column(before[lines[-1].end :], ahead)
        while headers and (
            width(lines[headers[-1]].indentation) >= column
            or _is_over(before, lines[headers[-1] :])
        ):
            headers.pop()
    if not headers:
        return Scope("module", None, next(read_lines(before), None))
    functions = [at for at in headers if not before.startswith("class", lines[at].start)]
    at = functions[-1] if functions else headers[-1]
    following = lines[at + 1] if at + 1 < len(lines) else None
    return Scope("function" if functions else "class", lines[at], following)


def _enclosing(before: str, lines: Sequence[LogicalLine]) -> list[int]:
    """The headers whose blocks hold the last line, and that line if it is one, outermost first."""
    headers: list[int] = []
    columns: list[int] = []
    for at, line in enumerate(lines):
        column = width(line.indentation)
        while columns and columns[-1] >= column:
            columns.pop()
            headers.pop()
        if before.startswith(_HEADER_WORDS, line.start) and _HEADER.match(before, line.start):
            columns.append(column)
            headers.append(at)
    return headers


def _is_over(before: str, lines: Sequence[LogicalLine]) -> bool:
    """Whether a header's line, the last with code, was all there is to its block."""
    return len(lines) == 1 and read_header(before, lines[0]).body is not None


def _column(since: str, ahead: str) -> float:
    """Where a last line without code stands, given the text since the end of the last code.

    At the left edge nothing may have been typed yet: only two blank lines end the block above.
    """
    _, *above, own = since.split("\n")
    is_unread = not own.strip() and bool(ahead.strip())
    column = width(indentation_of(own + ahead if is_unread else own))
    is_code = is_unread and not ahead.lstrip().startswith("#")
    is_apart = sum(not line.strip() for line in above) > 1
    return column if column or is_code or is_apart else math.inf
