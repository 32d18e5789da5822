"""The text of a header or of a docstring, perhaps cut off, to what it says.

Uses `ast` on the few lines in question, so that a finished header or docstring reads exactly as
in mining, and falls back on the text as it is written. Knows no cursor.
"""

import ast
import inspect
import re
import warnings
from dataclasses import dataclass

from redraft.autocomplete.logical_lines import COMMENT, HEADER, STRING, LogicalLine, closing

_NAME = re.compile(rf"{HEADER}(?P<name>\w*)")
_PART = re.compile(rf"{STRING}|{COMMENT}|(?P<open>[(\[{{])|(?P<close>[)\]}}])|(?P<colon>:)")
_BODY = re.compile(r"[ \t\f]*(?P<body>[^ \t\f\n#])")
_MAYBE_DOCSTRING = re.compile(r"""\(|[rRuU]?["']""")
_STRING = re.compile(rf"[rRuU]?(?P<string>{STRING})")


@dataclass(frozen=True)
class Header:
    """What a function's or class's header says, where it ends, and where an inline body begins."""

    name: str
    arguments: str
    end: int
    body: int | None


@dataclass(frozen=True)
class Docstring:
    """A docstring as mining cleans it, and where it ends."""

    text: str
    end: int


def read_header(text: str, line: LogicalLine) -> Header:
    """The header that a line is or begins with, finished or not."""
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
    """The docstring that a line is or begins with, finished or not."""
    if not _MAYBE_DOCSTRING.match(text, line.start):
        return None
    written = text[line.start : line.end]
    tree = _parse(written) or _parse(written + closing(written))
    if tree:
        found = ast.get_docstring(tree)
        if found is None:
            return None
        return Docstring(_printable(found), line.start + _end(tree.body[0], written))
    string = _STRING.match(written)
    if string and not written[string.end() :].strip():  # an escape is cut off, or wrong
        found = inspect.cleandoc(string["string"].strip("\"'"))
        return Docstring(found, line.start + string.end())
    return None


def _arguments(written: str) -> str:
    """Arguments as mining writes them; as they are written, if they do not parse."""
    tree = _parse(f"def f({written}\n): pass")
    if tree and isinstance(function := tree.body[0], ast.FunctionDef):
        try:
            return _printable(ast.unparse(function.args))
        except RecursionError:
            pass
    return written.strip()


def _parse(text: str) -> ast.Module | None:
    """The tree of a text, if it has one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the user's code, such as "\d" in a plain string
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _end(statement: ast.stmt, text: str) -> int:
    """Where a statement ends, or the text, if the statement was cut off."""
    *above, last = text.split("\n")[: statement.end_lineno]
    column = len(last.encode()[: statement.end_col_offset].decode())
    return sum(len(line) + 1 for line in above) + column


def _printable(text: str) -> str:
    """The text with half characters, which an escape can spell, as `?`; as in mining."""
    return text.encode(errors="replace").decode()
