"""The code of modules and classes outside functions: imports, constants, fields, headers.

A block is read as its logical lines without the bodies of the definitions in it and without
comments, from a whole file as from the text before a cursor. Its input has the name `class NAME`
for a class and no name for a module.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from redraft.completion.languages.python.header import read_docstring, read_header
from redraft.completion.languages.python.logical_lines import LogicalLine, read_lines, width
from redraft.completion.languages.python.scope import is_class, is_header
from redraft.types import Example, Input

CLASS = "class "
"""Begins the name of a class in an input."""

_DEFINES = ("def ", "async ", "class ", "@")


@dataclass
class _Block:
    """A module or class, or a function, whose lines do not count."""

    line: LogicalLine | None
    is_function: bool = False
    lines: list[LogicalLine] = field(default_factory=list)


def mine_blocks(text: str, *, name: str, package: str) -> list[Example]:
    """Return the blocks of a source that have statements besides definitions, in order."""
    source = "\n" + text
    examples = []
    for block in _blocks(source):
        header, lines = block.line, block.lines
        docstring = read_docstring(source, lines[0]) if lines else None
        lines = lines[1:] if docstring else lines
        if all(source.startswith(_DEFINES, line.start) for line in lines):
            continue
        x = block_input(source, header, docstring.text if docstring else "")
        number = 1 + source.count("\n", 1, header.start) if header else 1
        meta = {"file": name, "line": number, "package": package}
        examples.append(Example(x, skeleton(source, lines), meta))
    return examples


def block_input(text: str, header: LogicalLine | None, docstring: str) -> Input:
    """Return the input of a class, or of a module if there is no header."""
    if header is None:
        return {"docstring": docstring, "name": "", "arguments": ""}
    read = read_header(text, header)
    return {"docstring": docstring, "name": CLASS + read.name, "arguments": read.arguments}


def own_lines(text: str, start: int = 0) -> list[LogicalLine]:
    """Return the lines of the block after `start`, a line end, without those of definitions."""
    block = next(_blocks(text, start), None)
    return block.lines if block else []


def skeleton(text: str, lines: Sequence[LogicalLine]) -> str:
    """Return lines of a block as text, without the indentation of the first."""
    outer = lines[0].indentation if lines else ""
    return "\n".join(
        line.indentation.removeprefix(outer) + text[line.start : line.end].rstrip()
        for line in lines
    )


def _blocks(text: str, start: int = 0) -> Iterator[_Block]:
    """Yield the block that begins after `start` and the classes in it, outermost first."""
    blocks = [_Block(None)]
    stack: list[tuple[int, _Block]] = [(-1, blocks[0])]
    for line in read_lines(text, start):
        column = width(line.indentation)
        while len(stack) > 1 and stack[-1][0] >= column:
            stack.pop()
        owner = stack[-1][1]
        if owner.is_function:
            continue
        owner.lines.append(line)
        if is_header(text, line):
            inner = _Block(line, is_function=not is_class(text, line))
            blocks.append(inner)
            stack.append((column, inner))
    return (block for block in blocks if not block.is_function)
