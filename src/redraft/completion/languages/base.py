"""The interface of a programming language to completion.

An implementation mines the functions of a file and finds the context of a cursor in code that need
not parse. Knows no index, no ranking and no protocol.
"""

import re
from dataclasses import dataclass
from typing import Literal, Protocol

from redraft.data.rows import BadRow
from redraft.errors import ConfigError
from redraft.types import Example, Input

MAX_BLOCK_LINES = 50
"""Lines of the prefix in a class or a module."""

_AFTER_LINE = re.compile(r"(?<=\n)|(?<=\r)(?!\n)")

Kind = Literal["function", "class", "module"]
Place = Literal["header", "docstring", "body"]


@dataclass(frozen=True)
class Context:
    """The innermost function around a cursor, or else the class or the module.

    `prefix` is its body up to the cursor in the format of mining, without the docstring and
    without `indentation`, which further lines of a completion need again. It is empty before the
    body (see `place`). The prefix of a class or module is its last lines, without the bodies of
    the definitions in it. In a header, `block` is the context of what is around the definition.
    """

    x: Input
    prefix: str
    indentation: str
    kind: Kind
    place: Place
    block: "Context | None" = None


def kind_of(x: Input) -> Kind:
    """Return the kind of a mined example by its input: a class is named `class NAME`."""
    name = x["name"]
    return "class" if " " in name else "function" if name else "module"


class Language(Protocol):
    """A programming language. `name` is the identifier that editors use for it."""

    @property
    def name(self) -> str:
        """The identifier of the language in the Language Server Protocol."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The endings of its files."""

    @property
    def family(self) -> str:
        """The languages whose code it borrows: those of the same family."""

    @property
    def keywords(self) -> frozenset[str]:
        """The words that are no names."""

    @property
    def no_statement(self) -> tuple[str, ...]:
        """The characters that no statement begins with."""

    def mine(self, content: bytes | str, *, name: str, package: str) -> list[Example] | BadRow:
        """Return the functions with a body, in order; BadRow if the file cannot be read."""

    def find_context(self, text: str, offset: int) -> Context:
        """Return the context of the cursor at `offset`."""

    def is_in_brackets(self, body: str) -> bool:
        """Return True if a body ends within brackets or a string, where no statement begins."""

    def argument_names(self, arguments: str) -> list[str]:
        """Return the names of the arguments of a function."""

    def as_source(self, x: Input, body: str) -> str:
        """Return the source code of a mined function, for reading."""


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
