"""A buffer and a cursor to what a completion can know: whose body it is in, and what is written.

Reads what stands before the cursor, which need not parse. Knows what mining makes of a function,
so that a context looks like the examples that a model has learned from; knows no model.
"""

import re
from dataclasses import dataclass
from typing import Literal

from redraft.autocomplete.header import Docstring, Header, read_docstring, read_header
from redraft.autocomplete.logical_lines import LogicalLine, indentation_of, width
from redraft.autocomplete.scope import Kind, Scope, find_scope
from redraft.data.example import Input
from redraft.errors import ConfigError

MAX_BLOCK_LINES = 50
"""How much is given of a class's or a module's own text."""

_LINE_END = re.compile(r"\r\n?|\n")
_REST = re.compile(r"[^\r\n]*")
_SEMICOLON = re.compile(r"[ \t\f]*;[ \t\f]*")
_WITHOUT_CODE = re.compile(r"^[ \t\f]*(?=#|\Z)", re.MULTILINE)

Place = Literal["header", "docstring", "body"]


@dataclass(frozen=True)
class Context:
    """What surrounds a cursor: the innermost function, or else the class or the module.

    `prefix` is its body up to the cursor as mining writes it, without the docstring and without
    `indentation`, which every further line of a completion needs again. It is empty before the
    body (`place`). A class or module has no name and no arguments, and its prefix is its last
    lines. `line` is where it begins, from 1 on.
    """

    docstring: str
    name: str
    arguments: str
    prefix: str
    indentation: str
    kind: Kind
    place: Place
    line: int

    @property
    def x(self) -> Input:
        """The input that a model completes."""
        return {"docstring": self.docstring, "name": self.name, "arguments": self.arguments}


def offset_of(text: str, line: int, column: int) -> int:
    """Where a line and a column, both from 1 on, are in a text; a column counts characters."""
    starts = [0, *(match.end() for match in _LINE_END.finditer(text))]
    if not 1 <= line <= len(starts):
        raise ConfigError(f"line {line}: the text has lines 1 to {len(starts)}; name one of them")
    start = starts[line - 1]
    end = _LINE_END.search(text, start)
    last = (end.start() if end else len(text)) - start + 1
    if not 1 <= column <= last:
        raise ConfigError(
            f"line {line}, column {column}: the line has columns 1 to {last}; name one of them"
        )
    return start + column - 1


def find_context(text: str, offset: int) -> Context:
    """What a completion at the offset can know; nothing after the cursor's line is read."""
    before = _as_mined(text[:offset])
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
    named = header if scope.kind == "function" else None
    return Context(
        docstring=docstring.text if docstring else "",
        name=named.name if named else "",
        arguments=named.arguments if named else "",
        prefix=_prefix(body, indentation, lines=None if named else MAX_BLOCK_LINES),
        indentation=indentation,
        kind=scope.kind,
        place="body" if start <= len(before) else "docstring" if docstring else "header",
        line=before.count("\n", 0, scope.header.start if scope.header else 1),
    )


def _as_mined(text: str) -> str:
    """The text with line ends and characters as mining reads them, a line end before all of it."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return "\n" + text.encode(errors="replace").decode()


def _body_start(before: str, header: Header | None, docstring: Docstring | None) -> int:
    """Where the body begins, after header and docstring; past the end if they are not finished."""
    if docstring and (semicolon := _SEMICOLON.match(before, docstring.end)):
        return semicolon.end()
    if not docstring and header is None:
        return 1
    if not docstring and header and header.body is not None:
        return header.body
    end = docstring.end if docstring else header.end if header else 0
    line_end = before.find("\n", end)
    return (line_end if line_end >= 0 else len(before)) + 1


def _indentation(body: str, scope: Scope, header: Header | None) -> str:
    """The white space that every line of a body begins with, or would; none for an inline body."""
    if not scope.header or not header or header.body is not None:
        return ""
    if scope.next:
        return scope.next.indentation
    outer = scope.header.indentation
    written = _WITHOUT_CODE.search(body)
    if written and width(indentation_of(written[0])) > width(outer):
        return indentation_of(written[0])
    return outer + ("\t" if outer.endswith("\t") else " " * 4)


def _prefix(body: str, indentation: str, *, lines: int | None) -> str:
    """The last lines of a body, or all of them, without indentation, as mining writes them."""
    *above, own = (line.lstrip("\f") for line in body.split("\n"))
    if indentation.startswith(own):
        own = ""  # the cursor is in what is not part of the body
    kept = [line.removeprefix(indentation) for line in (*above, own)]
    return "\n".join(kept[-lines:] if lines else kept).lstrip("\n")
