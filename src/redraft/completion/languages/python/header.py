"""Parser for headers and docstrings, complete or cut off.

Uses `ast` on these few lines, so that a complete header or docstring reads exactly as in
mining, and falls back on the source text. Knows no cursor.
"""

import ast
import inspect
import re
from dataclasses import dataclass

from redraft.completion.languages.python.logical_lines import (
    COMMENT,
    HEADER,
    STRING,
    LogicalLine,
    closing,
)
from redraft.mining.python_functions import parse_quietly, without_surrogates

_NAME = re.compile(rf"{HEADER}(?P<name>\w*)")
_PART = re.compile(rf"{STRING}|{COMMENT}|(?P<open>[(\[{{])|(?P<close>[)\]}}])|(?P<colon>:)")
_BODY = re.compile(r"[ \t\f]*(?P<body>[^ \t\f\n#])")
_MAYBE_DOCSTRING = re.compile(r"""\(|[rRuU]?["']""")
_STRING = re.compile(rf"[rRuU]?(?P<string>{STRING})")


@dataclass(frozen=True)
class Header:
    """The header of a function or class, its end, and the start of an inline body."""

    name: str
    arguments: str
    end: int
    body: int | None


@dataclass(frozen=True)
class Docstring:
    """A docstring, cleaned as in mining, and its end."""

    text: str
    end: int


def read_header(text: str, line: LogicalLine) -> Header:
    """Parse the header at the start of a line, complete or not."""
    name = _NAME.match(text, line.start, line.end)
    opened = closed = colon = None
    depth = 0
    for match in _PART.finditer(text, line.start, line.end):
        if match.lastgroup == "open":
            if not depth and opened is None and match[0] == "(":
                opened = match.end()
            depth += 1
        elif match.lastgroup == "close":
            depth = max(depth - 1, 0)
            if not depth and opened is not None and closed is None:
                closed = match.start()
        elif match.lastgroup == "colon" and not depth:
            colon = match.end()
            break
    end = line.end if colon is None else colon
    body = _BODY.match(text, end, line.end)
    return Header(
        name=name["name"] if name else "",
        arguments="" if opened is None else _arguments(text[opened : closed or end]),
        end=end,
        body=body.start("body") if body else None,
    )


def read_docstring(text: str, line: LogicalLine) -> Docstring | None:
    """Parse the docstring at the start of a line, complete or not; None if there is none."""
    if not _MAYBE_DOCSTRING.match(text, line.start):
        return None
    source = text[line.start : line.end]
    tree = _parse(source) or _parse(source + closing(source))
    if tree:
        docstring = ast.get_docstring(tree)
        if docstring is None:
            return None
        return Docstring(without_surrogates(docstring), line.start + _end(tree.body[0], source))
    string = _STRING.match(source)
    if string and not source[string.end() :].strip():  # an escape is cut off or invalid
        docstring = inspect.cleandoc(string["string"].strip("\"'"))
        return Docstring(docstring, line.start + string.end())
    return None


def _arguments(source: str) -> str:
    """Return the arguments as mining formats them; unchanged if they do not parse."""
    tree = _parse(f"def f({source}\n): pass")
    if tree and isinstance(function := tree.body[0], ast.FunctionDef):
        try:
            return without_surrogates(ast.unparse(function.args))
        except RecursionError:
            pass
    return source.strip()


def _parse(text: str) -> ast.Module | None:
    """Parse a text; None if it is invalid."""
    try:
        return parse_quietly(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _end(statement: ast.stmt, text: str) -> int:
    """Return the offset of a statement's end, or of the text's if the statement is cut off."""
    *above, last = text.split("\n")[: statement.end_lineno]
    column = len(last.encode()[: statement.end_col_offset].decode())
    return sum(len(line) + 1 for line in above) + column
