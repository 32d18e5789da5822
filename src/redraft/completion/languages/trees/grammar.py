"""Grammars of tree-sitter: parse a text, and find its functions by a query.

The only module that imports tree-sitter.
"""

import importlib
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from redraft.errors import MissingExtraError

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Query, Tree


SECONDS = 1.0
"""Time limit of parsing: XML read as TypeScript takes minutes."""

MAX_STRAY = 5_000
"""Tokens that do not fit together: a query of more takes time in proportion to their square."""

_CHUNK = 1 << 12

_CHAIN = re.compile(rb"(?:<\s{0,9}+[\w.]{0,80}+\s{0,9}+){64}")
"""Type arguments nested this deep: Java's parser takes memory in proportion to their square."""


@dataclass(frozen=True)
class FunctionNode:
    """The nodes of a function: all of it, its name, its lists of arguments, and its body."""

    content: bytes
    whole: "Node"
    name: "Node"
    arguments: tuple["Node", ...]
    body: "Node"

    def text(self, node: "Node") -> str:
        """Return the text of a node."""
        return self.content[node.start_byte : node.end_byte].decode(errors="replace")


@dataclass(frozen=True)
class ParsedText:
    """A text and its syntax tree."""

    content: bytes
    tree: "Tree"


@dataclass(frozen=True)
class Grammar:
    """A grammar: the `package` with the function `symbol` that loads it, and a query.

    The query captures `@function`, `@name`, any number of `@arguments`, and `@body`.
    """

    package: str
    query: str
    symbol: str = "language"

    @cached_property
    def _loaded(self) -> "tuple[Language, Query]":
        try:
            from tree_sitter import Language, Query

            module = importlib.import_module(self.package)
        except ModuleNotFoundError as error:
            raise MissingExtraError(
                self.package, extra="languages", purpose="reading other languages than Python"
            ) from error
        language = Language(getattr(module, self.symbol)())
        return language, Query(language, self.query)

    def parse(self, content: bytes) -> "ParsedText | None":
        """Parse a text, correct or not; None if it takes too long or is another language.

        Thread-safe: an editor completes while the workspace is read.
        """
        language, _ = self._loaded
        from tree_sitter import Parser

        if _CHAIN.search(content):
            return None
        deadline = time.monotonic() + SECONDS
        is_late = False

        def read(offset: int, _: object) -> bytes:
            # the end of the text stops the parser; the binding's progress callback crashes
            nonlocal is_late
            is_late = is_late or time.monotonic() > deadline
            return b"" if is_late else content[offset : offset + _CHUNK]

        # a parser of its own, in a microsecond: a shared one crashes where `read` lets others run
        tree = Parser(language).parse(read)
        root = tree.root_node
        is_other = root.type == "ERROR" and root.child_count > MAX_STRAY
        return None if is_late or is_other else ParsedText(content, tree)

    def functions(self, parsed: "ParsedText", around: int | None = None) -> Iterator[FunctionNode]:
        """Yield the functions of a text, or only those `around` an offset in bytes, in order."""
        from tree_sitter import QueryCursor

        _, query = self._loaded
        cursor = QueryCursor(query)
        if around is not None:
            cursor.set_byte_range(around, around + 1)
        bodies: set[int] = set()
        for _, captures in cursor.matches(parsed.tree.root_node):
            body = captures["body"][0]
            if body.start_byte not in bodies:  # two patterns may fit one function
                bodies.add(body.start_byte)
                yield FunctionNode(
                    parsed.content,
                    captures["function"][0],
                    captures["name"][0],
                    tuple(captures.get("arguments", ())),
                    body,
                )
