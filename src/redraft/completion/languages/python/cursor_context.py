"""The context of a cursor: the enclosing function and the part of its body before the cursor.

Reads only the text before the cursor, which need not parse. Formats functions as mining does, so
that a context looks like the training examples. Knows no model.
"""

import re
from dataclasses import replace

from redraft.completion.languages.base import MAX_BLOCK_LINES, Context, Place
from redraft.completion.languages.python.blocks import block_input, own_lines, skeleton
from redraft.completion.languages.python.header import (
    Docstring,
    Header,
    read_docstring,
    read_header,
)
from redraft.completion.languages.python.logical_lines import LogicalLine, indentation_of, width
from redraft.completion.languages.python.scope import Scope, find_scope
from redraft.mining.python_functions import normalised
from redraft.types import Input

MAX_MODULE = 20_000
"""Characters of a module before the cursor that are read for its prefix."""

_REST = re.compile(r"[^\r\n]*")
_SEMICOLON = re.compile(r"[ \t\f]*;[ \t\f]*")
_TOP_LEVEL = re.compile(r"\n(?=[^\s#)\]}])")
_WITHOUT_CODE = re.compile(r"^[ \t\f]*(?=#|\Z)", re.MULTILINE)


def find_context(text: str, offset: int) -> Context:
    """Return the context of the cursor at `offset`; text after its line is ignored."""
    before = "\n" + normalised(text[:offset])
    rest = _REST.match(text, offset)
    ahead = rest[0] if rest else ""
    context = _read(before, find_scope(before, ahead))
    if context.place != "header":
        return context
    return replace(context, block=_read(before, find_scope(before, ahead, is_in_header=True)))


def _read(before: str, scope: Scope) -> Context:
    """Return the context of the end of `before` in a scope."""
    header = read_header(before, scope.header) if scope.header else None
    first = scope.next
    if scope.header and header and header.body is not None:
        first = LogicalLine(header.body, scope.header.end, "")
    docstring = read_docstring(before, first) if first else None
    start = _body_start(before, header, docstring)
    body = before[start:]
    indentation = _indentation(body, scope, header)
    described = docstring.text if docstring else ""
    is_function = scope.kind == "function"
    place: Place = "body" if start <= len(before) else "docstring" if docstring else "header"
    x: Input
    if header and is_function:
        x = {"docstring": described, "name": header.name, "arguments": header.arguments}
    else:
        x = block_input(before, scope.header, described)
    is_inline = bool(header and header.body is not None)
    if is_function or is_inline or place != "body":
        prefix = _prefix(body, indentation)
    else:
        prefix = _block_prefix(before, start - 1, indentation)
    return Context(x=x, prefix=prefix, indentation=indentation, kind=scope.kind, place=place)


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


def _prefix(body: str, indentation: str) -> str:
    """Return the lines of a body without indentation."""
    *above, last = (line.lstrip("\f") for line in body.split("\n"))
    if indentation.startswith(last):
        last = ""  # the cursor is inside the indentation
    lines = [line.removeprefix(indentation) for line in (*above, last)]
    return "\n".join(lines).lstrip("\n")


def _block_prefix(before: str, start: int, indentation: str) -> str:
    """Return the last lines of a block, without the bodies of the definitions in it.

    `start` is the line end before the block. Of a long module only the last part is read.
    """
    if not indentation and len(before) > MAX_MODULE:
        top_level = _TOP_LEVEL.search(before, len(before) - MAX_MODULE)
        start = top_level.start() if top_level else start
    last = before[before.rfind("\n") + 1 :]
    lines = own_lines(before, start)
    if lines and lines[-1].end == len(before):  # the cursor is in the last statement
        trailing = last[len(last.rstrip()) :]
        return skeleton(before, lines[-MAX_BLOCK_LINES:]) + trailing
    lines = lines[1 - MAX_BLOCK_LINES :]
    typed = "" if indentation.startswith(last) else last.removeprefix(indentation)
    return skeleton(before, lines) + "\n" * bool(lines) + typed
