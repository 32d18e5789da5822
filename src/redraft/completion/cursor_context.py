"""The context of a cursor: the enclosing function and the part of its body before the cursor.

Reads only the text before the cursor, which need not parse. Formats functions as mining does, so
that a context looks like the training examples. Knows no model.
"""

import re
from dataclasses import dataclass
from typing import Literal

from redraft.completion.header import Docstring, Header, read_docstring, read_header
from redraft.completion.logical_lines import LogicalLine, indentation_of, width
from redraft.completion.scope import Kind, Scope, find_scope
from redraft.errors import ConfigError
from redraft.mining.python_functions import normalised
from redraft.types import Input

MAX_BLOCK_LINES = 50
"""Lines of the prefix in a class or a module."""

_AFTER_LINE = re.compile(r"(?<=\n)|(?<=\r)(?!\n)")
_REST = re.compile(r"[^\r\n]*")
_SEMICOLON = re.compile(r"[ \t\f]*;[ \t\f]*")
_WITHOUT_CODE = re.compile(r"^[ \t\f]*(?=#|\Z)", re.MULTILINE)

Place = Literal["header", "docstring", "body"]


@dataclass(frozen=True)
class Context:
    """The innermost function around a cursor, or else the class or the module.

    `prefix` is its body up to the cursor in the format of mining, without the docstring and
    without `indentation`, which further lines of a completion need again. It is empty before the
    body (see `place`). A class or module has no name and no arguments in its input `x`, and its
    prefix is its last lines.
    """

    x: Input
    prefix: str
    indentation: str
    kind: Kind
    place: Place


def offset_of(text: str, line: int, column: int) -> int:
    """Return the offset of a line and a column, both counted from 1, in characters."""
    lines = _AFTER_LINE.split(text)
    if not 1 <= line <= len(lines):
        raise ConfigError(f"line {line}: the text has lines 1 to {len(lines)}; name one of them")
    last = len(lines[line - 1].rstrip("\r\n")) + 1
    if not 1 <= column <= last:
        raise ConfigError(
            f"line {line}, column {column}: the line has columns 1 to {last}; name one of them"
        )
    return sum(map(len, lines[: line - 1])) + column - 1


def find_context(text: str, offset: int) -> Context:
    """Return the context of the cursor at `offset`; text after its line is ignored."""
    before = "\n" + normalised(text[:offset])
    rest = _REST.match(text, offset)
    scope = find_scope(before, rest[0] if rest else "")
    header = read_header(before, scope.header) if scope.header else None
    first = scope.next
    if scope.header and header and header.body is not None:
        first = LogicalLine(header.body, scope.header.end, "")
    docstring = read_docstring(before, first) if first else None
    start = _body_start(before, header, docstring)
    body = before[start:]
    indentation = _indentation(body, scope, header)
    function = header if scope.kind == "function" else None
    return Context(
        x={
            "docstring": docstring.text if docstring else "",
            "name": function.name if function else "",
            "arguments": function.arguments if function else "",
        },
        prefix=_prefix(body, indentation, max_lines=None if function else MAX_BLOCK_LINES),
        indentation=indentation,
        kind=scope.kind,
        place="body" if start <= len(before) else "docstring" if docstring else "header",
    )


def _body_start(before: str, header: Header | None, docstring: Docstring | None) -> int:
    """Return the offset of the body; past the end if header or docstring are incomplete."""
    if docstring:
        if semicolon := _SEMICOLON.match(before, docstring.end):
            return semicolon.end()
        end = docstring.end
    elif header is None:
        return 1
    elif header.body is not None:
        return header.body
    else:
        end = header.end
    line_end = before.find("\n", end)
    return (line_end if line_end >= 0 else len(before)) + 1


def _indentation(body: str, scope: Scope, header: Header | None) -> str:
    """Return the indentation of the body, guessed if it has no line yet; "" for an inline body."""
    if not scope.header or not header or header.body is not None:
        return ""
    if scope.next:
        return scope.next.indentation
    outer = scope.header.indentation
    match = _WITHOUT_CODE.search(body)
    if match and width(indentation_of(match[0])) > width(outer):
        return indentation_of(match[0])
    return outer + ("\t" if outer.endswith("\t") else " " * 4)


def _prefix(body: str, indentation: str, *, max_lines: int | None) -> str:
    """Return the last `max_lines` lines of a body, or all of them, without indentation."""
    *above, last = (line.lstrip("\f") for line in body.split("\n"))
    if indentation.startswith(last):
        last = ""  # the cursor is inside the indentation
    lines = [line.removeprefix(indentation) for line in (*above, last)]
    return "\n".join(lines[-max_lines:] if max_lines else lines).lstrip("\n")
