"""Python as one of the languages."""

import keyword
import re
import textwrap
from dataclasses import dataclass

from redraft.completion.languages.base import Context
from redraft.completion.languages.python.blocks import CLASS, mine_blocks
from redraft.completion.languages.python.cursor_context import find_context
from redraft.completion.languages.python.logical_lines import closing
from redraft.data.rows import BadRow
from redraft.mining.python_functions import as_source, decoded, mine_content
from redraft.types import Example, Input

_BRACKETS = re.compile(r"\[[^\[\]]*\]|\([^()]*\)|\{[^{}]*\}")
_ARGUMENT = re.compile(r"(?:^|,)\s*\**(?P<name>[^\W\d]\w*)")


@dataclass(frozen=True)
class Python:
    """Python 3."""

    name: str = "python"
    suffixes: tuple[str, ...] = (".py",)
    family: str = "python"
    keywords: frozenset[str] = frozenset(keyword.kwlist)
    no_statement: tuple[str, ...] = tuple("=)]},.:;+%/<>|&^!")

    def mine(self, content: bytes | str, *, name: str, package: str) -> list[Example] | BadRow:
        """Return functions with a body, then blocks; BadRow if the file is not Python 3."""
        mined = mine_content(content, name=name, package=package, documented_only=False)
        if isinstance(mined, BadRow):
            return mined
        return mined + mine_blocks(decoded(content), name=name, package=package)

    def find_context(self, text: str, offset: int) -> Context:
        """Return the context of the cursor at `offset`."""
        return find_context(text, offset)

    def is_in_brackets(self, body: str) -> bool:
        """Return True if a body ends within brackets or a string, where no statement begins."""
        return bool(closing(body))

    def argument_names(self, arguments: str) -> list[str]:
        """Return the names of the arguments of a header, without annotations and defaults."""
        flat = _BRACKETS.sub("", arguments)
        while flat != arguments:
            arguments, flat = flat, _BRACKETS.sub("", flat)
        return [match["name"] for match in _ARGUMENT.finditer(flat)]

    def as_source(self, x: Input, body: str) -> str:
        """Return the source code of a mined function."""
        if not x["name"]:
            return body
        if x["name"].startswith(CLASS):
            header = f"{x['name']}({x['arguments']}):" if x["arguments"] else f"{x['name']}:"
            return f"{header}\n" + textwrap.indent(body, " " * 4)
        if x["docstring"]:
            return as_source(x, body)
        return f"def {x['name']}({x['arguments']}):\n" + textwrap.indent(body, " " * 4)


PYTHON = Python()
