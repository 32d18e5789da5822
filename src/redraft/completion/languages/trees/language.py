"""A language with braces that has a tree-sitter grammar, described by one value."""

import re
import textwrap
from dataclasses import dataclass
from functools import cached_property

from redraft.completion.languages.base import Context
from redraft.completion.languages.trees.cursor_context import ContextFinder
from redraft.completion.languages.trees.functions import body_of, input_of
from redraft.completion.languages.trees.grammar import Grammar
from redraft.completion.languages.trees.open_brackets import Lexis
from redraft.data.rows import BadRow
from redraft.errors import MissingExtraError
from redraft.mining.python_functions import MAX_FILE_BYTES, normalised
from redraft.types import Example, Input

MAX_LINE = 5_000
"""Characters of the longest line: files with longer ones are minified or hold data."""

_NESTED = re.compile(r"\[[^\[\]]*\]|\([^()]*\)|\{[^{}]*\}|<[^<>]*>")


@dataclass(frozen=True)
class TreeLanguage:
    """A language: its names, its grammar, and what the grammar does not tell.

    `header` matches a line within the header of a function. `argument` has a group `name` and
    matches one argument. `opening` is the format of the first line of a function, for reading.
    If `is_script`, statements may stand outside of functions.
    """

    name: str
    suffixes: tuple[str, ...]
    family: str
    grammar: Grammar
    lexis: Lexis
    keywords: frozenset[str]
    no_statement: tuple[str, ...]
    header: re.Pattern[str]
    argument: re.Pattern[str]
    opening: str
    indent: str = " " * 4
    is_script: bool = False

    @cached_property
    def _finder(self) -> ContextFinder:
        return ContextFinder(self.grammar, self.lexis, self.indent, self.header, self.is_script)

    def mine(self, content: bytes | str, *, name: str, package: str) -> list[Example] | BadRow:
        """Return the functions with a body, in order; BadRow if the file cannot be read."""
        if len(content) > MAX_FILE_BYTES:
            return BadRow(name, 1, f"larger than {MAX_FILE_BYTES:,} bytes")
        try:
            text = normalised(content if isinstance(content, str) else content.decode())
        except UnicodeDecodeError:
            return BadRow(name, 1, "not utf-8")
        lines = text.split("\n")
        for number, line in enumerate(lines, start=1):
            if len(line) > MAX_LINE:
                return BadRow(name, number, f"minified: a line of {len(line):,} characters")
        try:
            parsed = self.grammar.parse(text.encode())
        except MissingExtraError as error:
            return BadRow(name, 1, str(error))
        if parsed is None:
            return BadRow(name, 1, f"cannot be parsed as {self.name}")
        examples: list[Example] = []
        for function in self.grammar.functions(parsed):
            if body := body_of(function):
                start = function.whole.start_point.row + 1
                meta = {"file": name, "line": start, "package": package, "language": self.family}
                examples.append(Example(input_of(function), body, meta))
        return sorted(examples, key=lambda example: int(example.meta["line"]))

    def find_context(self, text: str, offset: int) -> Context:
        """Return the context of the cursor at `offset`."""
        return self._finder.find(text, offset)

    def is_in_brackets(self, body: str) -> bool:
        """Return True if a body ends within brackets or a string, where no statement begins."""
        parts = self.lexis.open_parts(body)
        return parts.is_string or (bool(parts.brackets) and parts.brackets[-1].mark in "([")

    def argument_names(self, arguments: str) -> list[str]:
        """Return the names of the arguments of a function."""
        flat = _NESTED.sub("", arguments)
        while flat != arguments:
            arguments, flat = flat, _NESTED.sub("", flat)
        found = (self.argument.match(one) for one in flat.split(","))
        return [match["name"] for match in found if match]

    def as_source(self, x: Input, body: str) -> str:
        """Return the source code of a mined function, for reading."""
        comment = textwrap.indent(x["docstring"], "// ") + "\n" if x["docstring"] else ""
        return f"{comment}{self.opening.format(**x)}\n{textwrap.indent(body, self.indent)}\n}}"
