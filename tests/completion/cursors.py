"""Cursors in real sources, with the expected context from `ast` on the whole file.

Shares no code with the finder. A cursor on a line without code is judged by the written rule: its
line's indentation decides, and at the left edge only two blank lines end the function above.
"""

import ast
import io
import random
import re
import tokenize
import warnings
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from redraft.mining.python_functions import body_after_docstring

Cut = Literal["whole", "line", "file"]
Function = ast.FunctionDef | ast.AsyncFunctionDef
Block = Function | ast.ClassDef | ast.Module

_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
_HEADER = re.compile(r"(?:async )?(?:def|class) ")


@dataclass(frozen=True)
class Cursor:
    """A buffer, a place in it, and the source it was made from."""

    source: "Source"
    offset: int
    cut: Cut
    share: Literal["body", "anywhere"]

    @property
    def buffer(self) -> str:
        """The text that an editor would hold."""
        text = self.source.text
        if self.cut == "whole":
            return text
        end = text.find("\n", self.offset) if self.cut == "line" else -1
        return text[: self.offset] + (text[end:] if end >= 0 else "")


@dataclass(frozen=True)
class Expected:
    """Return the expected context; None if it is not determined yet."""

    kind: str
    name: str | None
    arguments: str | None
    docstring: str | None
    prefix: str | None


class Source:
    """A file that parses, with offsets for the lines and columns of its tree."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.text = path, text
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.tree = ast.parse(text)
        self.lines = text.split("\n")
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)

    @classmethod
    def read(cls, path: Path) -> "Source | None":
        """The source in a file, unless it does not parse."""
        try:
            with tokenize.open(path) as stream:
                return cls(path, stream.read())
        except (SyntaxError, ValueError, LookupError, RecursionError, MemoryError):
            return None

    def offset(self, line: int, column: int) -> int:
        """The offset of a line, from 1 on, and a column in bytes."""
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def start(self, node: ast.stmt) -> int:
        return self.offset(node.lineno, node.col_offset)

    def end(self, node: ast.stmt) -> int:
        return self.offset(node.end_lineno or node.lineno, node.end_col_offset or 0)

    def column(self, node: ast.stmt) -> int:
        return len(self.lines[node.lineno - 1][: node.col_offset].expandtabs())

    @cached_property
    def blocks(self) -> list[Function | ast.ClassDef]:
        kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        return [node for node in ast.walk(self.tree) if isinstance(node, kinds)]

    @cached_property
    def code(self) -> list[tuple[int, int]]:
        """Where each logical line begins and ends, by the standard tokenizer."""
        found: list[tuple[int, int]] = []
        begin: int | None = None
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            line, column = token.start
            if token.type == tokenize.NEWLINE and begin is not None:
                found.append((begin, self.starts[line - 1] + column))
                begin = None
            elif begin is None and token.type not in _NO_CODE:
                begin = self.starts[line - 1] + column
        return found

    def enclosing(self, offset: int) -> list[Function | ast.ClassDef]:
        """The blocks from `def` or `class` to their last character that hold an offset."""
        found = [n for n in self.blocks if self.start(n) <= offset <= self.end(n)]
        return sorted(found, key=self.start)


def draw(sources: Sequence[Source], count: int, *, seed: int) -> Iterator[Cursor]:
    """Random cursors, four in five of them in the bodies of functions, one in two cut off."""
    generator = random.Random(seed)
    for at in range(count):
        source = generator.choice(sources)
        functions = [n for n in source.blocks if not isinstance(n, ast.ClassDef)]
        cut: Cut = ("whole", "line", "whole", "file")[at % 4]
        if at % 5 < 4 and functions:
            node = generator.choice(functions)
            first = node.body[min(_has_docstring(node), len(node.body) - 1)]
            offset = generator.randint(source.start(first), source.end(node))
            yield Cursor(source, offset, cut, "body")
        else:
            yield Cursor(source, generator.randint(0, len(source.text)), cut, "anywhere")


def expect(cursor: Cursor) -> Expected:
    """What the cursor should find."""
    source, offset = cursor.source, cursor.offset
    blocks = _blocks(cursor)
    functions = [block for block in blocks if not isinstance(block, ast.ClassDef)]
    if functions:
        return _expect_in_function(source, functions[-1], offset)
    node: Block = blocks[-1] if blocks else source.tree
    kind = "class" if isinstance(node, ast.ClassDef) else "module"
    known = not _has_docstring(node) or source.end(node.body[0]) < offset
    known = known and (isinstance(node, ast.Module) or source.start(node.body[0]) < offset)
    docstring = _docstring(node) if known else None
    if isinstance(node, ast.Module):
        return Expected(kind, "", "", docstring, None)
    name = f"class {node.name}" if known else None
    return Expected(kind, name, None, docstring, None)


def _blocks(cursor: Cursor) -> list[Function | ast.ClassDef]:
    """The functions and classes that a cursor is in, outermost first."""
    source, offset = cursor.source, cursor.offset
    at = bisect_right(source.code, (offset, -1)) - 1  # the last code that begins before the cursor
    if at < 0:
        return []
    begin, end = source.code[at]
    if offset <= end:
        is_header = _HEADER.match(source.text, begin, offset)
        return [n for n in source.enclosing(begin) if source.start(n) < begin or is_header]
    line = bisect_right(source.starts, offset) - 1
    here = source.lines[line]
    before = here[: offset - source.starts[line]]
    if cursor.cut == "whole" and not before.strip():
        before = here[: len(here) - len(here.lstrip())]
        if here.strip() and not here.strip().startswith("#"):
            first = source.starts[line] + len(before)
            return [node for node in source.enclosing(first) if source.start(node) < first]
    ended = [n for n in source.enclosing(begin) if begin < source.start(n.body[0]) <= end]
    blocks = [node for node in source.enclosing(begin) if node not in ended]
    above = source.lines[bisect_right(source.starts, end) : line]
    column = len(before.expandtabs()) - len(before.expandtabs().lstrip())
    if not column and sum(not text.strip() for text in above) < 2:
        return blocks
    return [node for node in blocks if source.column(node) < column]


def _expect_in_function(source: Source, node: Function, offset: int) -> Expected:
    """What a cursor in this function should find, as far as it is written before the cursor."""
    first = node.body[0]
    header_end = next(end for begin, end in source.code if begin == source.start(node))
    is_inline = source.start(first) < header_end
    written = source.text[source.start(node) : offset]
    past_header = offset >= (source.start(first) if is_inline else header_end)
    past_docstring = past_header and (not _has_docstring(node) or offset >= source.end(first))
    return Expected(
        kind="function",
        name=node.name if "(" in written else None,
        arguments=ast.unparse(node.args) if past_header else None,
        docstring=_docstring(node) if past_docstring else None,
        prefix=_inline_prefix(source, node, offset)
        if is_inline
        else _mined_prefix(source, node, header_end, offset),
    )


def _inline_prefix(source: Source, node: Function, offset: int) -> str:
    """The statements after the colon, up to the cursor."""
    statements = node.body[_has_docstring(node) :]
    return source.text[source.start(statements[0]) : offset] if statements else ""


def _mined_prefix(source: Source, node: Function, header_end: int, offset: int) -> str | None:
    """What mining would make of the lines up to the cursor."""
    statements = node.body[_has_docstring(node) :]
    if _has_docstring(node):
        begin = node.body[0].end_lineno or 0
        if statements and statements[0].lineno == begin:
            return None  # a statement on the docstring's line: mining passes such a function over
    else:
        begin = bisect_right(source.starts, header_end)
    line = bisect_right(source.starts, offset) - 1
    if line < begin:
        return ""
    column = offset - source.starts[line]
    first = source.lines[(statements or node.body)[0].lineno - 1].lstrip("\f")
    indentation = first[: len(first) - len(first.lstrip())]
    own = source.lines[line][:column].lstrip("\f")
    body = [text.lstrip("\f").removeprefix(indentation) for text in source.lines[begin:line]]
    whole = source.lines[line].lstrip("\f").removeprefix(indentation)
    removed = len(source.lines[line].lstrip("\f")) - len(whole)
    prefix = "\n".join([*body, own[removed:]]).lstrip("\n")
    mined = body_after_docstring(node, source.lines) if _has_docstring(node) else ""
    if mined and offset <= source.end(node) and not mined.startswith(prefix):
        raise AssertionError(f"{source.path}: {prefix!r} does not begin {mined!r}")
    return prefix


def _has_docstring(node: Block) -> bool:
    return ast.get_docstring(node, clean=False) is not None


def _docstring(node: Block) -> str:
    return (ast.get_docstring(node) or "").encode(errors="replace").decode()
