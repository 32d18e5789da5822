"""The context of a cursor in a language with braces, also in code that does not parse.

Reads the text before the cursor. The open brackets tell where the blocks around the cursor begin.
The text up to the innermost of them, with all brackets closed, is parsed: what is being typed
cannot disturb the parser.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from redraft.completion.languages.base import MAX_BLOCK_LINES, Context
from redraft.completion.languages.trees.functions import (
    dedented,
    first_indentation,
    indentation_of,
    input_of,
)
from redraft.completion.languages.trees.grammar import FunctionNode, Grammar, ParsedText
from redraft.completion.languages.trees.open_brackets import Bracket, Lexis, OpenParts, closing
from redraft.mining.python_functions import normalised

MAX_PARSED = 400_000
"""Characters before the cursor that are read: of a longer text the last ones."""

MAX_DEPTH = 300
"""Open braces around a cursor: code has fewer."""

_TOP_LEVEL = re.compile(r"\n(?=[^\s)}\]/*])")
_DECLARATIONS = ("class_body", "interface_body", "enum_body", "object_type")
_INDENTED = re.compile(r"^(?:\t| {2,8})(?=\S)", re.MULTILINE)


@dataclass(frozen=True)
class ContextFinder:
    """Finds the function around a cursor with a grammar.

    `header` matches the current line within the header of a function. If `is_script`, statements
    may stand outside of functions.
    """

    grammar: Grammar
    lexis: Lexis
    indent: str
    header: re.Pattern[str]
    is_script: bool

    def find(self, text: str, offset: int) -> Context:
        """Return the context of the cursor at `offset`; text after it is ignored."""
        before = _last_part(normalised(text[:offset]))
        parts = self.lexis.open_parts(before)
        block = self._parse(before, parts.brackets)
        function = self._enclosing(before, block) if block else None
        if function is None:
            return self._outside(before, parts, block)
        brace, node = function
        inside = before[brace + 1 :]
        indentation = self._indentation(before, brace)
        is_header = not parts.is_comment and self._is_header(before)
        return Context(
            x=input_of(node),
            prefix=_prefix(dedented(inside, indentation), inside, indentation),
            indentation=indentation,
            kind="function",
            place="header" if is_header else "body",
        )

    def _parse(self, before: str, brackets: Sequence[Bracket]) -> "_Blocks | None":
        """Parse the text up to the innermost open brace; None without one, or with too many."""
        braces = [i for i, bracket in enumerate(brackets) if bracket.mark == "{"]
        if not 0 < len(braces) <= MAX_DEPTH:
            return None
        content = before[: brackets[braces[-1]].offset + 1].encode()
        parsed = self.grammar.parse(content + closing(brackets[: braces[-1] + 1]).encode())
        if parsed is None:
            return None
        return _Blocks(parsed, len(content) - 1, [brackets[i].offset for i in braces])

    def _enclosing(self, before: str, blocks: "_Blocks") -> tuple[int, FunctionNode] | None:
        """Return the innermost function whose body is open, with the offset of its brace."""
        offsets = {len(before[:offset].encode()): offset for offset in blocks.braces}
        around = self.grammar.functions(blocks.parsed, around=blocks.end)
        found = [
            (offsets[function.body.start_byte], function)
            for function in around
            if function.body.start_byte in offsets
        ]
        return max(found, key=lambda one: one[0], default=None)

    def _outside(self, before: str, parts: OpenParts, blocks: "_Blocks | None") -> Context:
        """Return the context outside of all functions."""
        is_body = self.is_script and not (
            self._is_header(before) or (blocks and blocks.is_declaration)
        )
        lines = before.split("\n")[-MAX_BLOCK_LINES:]
        indentation = indentation_of(next((x for x in reversed(lines[:-1]) if x.strip()), ""))
        return Context(
            x={"docstring": "", "name": "", "arguments": ""},
            prefix=_prefix([x.removeprefix(indentation) for x in lines], before, indentation),
            indentation=indentation,
            kind="class" if parts.brackets else "module",
            place="docstring" if parts.is_comment else "body" if is_body else "header",
        )

    def _is_header(self, before: str) -> bool:
        return bool(self.header.search(before[before.rfind("\n") + 1 :]))

    def _indentation(self, before: str, brace: int) -> str:
        """Return the indentation of a body, guessed if it has no line yet."""
        inside = before[brace + 1 :]
        found = first_indentation(inside)
        if found is not None:
            return found
        outer = indentation_of(before[before.rfind("\n", 0, brace) + 1 : brace])
        last = inside.rpartition("\n")[2] if "\n" in inside else ""
        if last.startswith(outer) and len(last) > len(outer):
            return last
        unit = _INDENTED.search(before)
        return outer + (unit[0] if unit else self.indent)


@dataclass(frozen=True)
class _Blocks:
    """A tree that ends with the innermost open brace, at byte `end`, and all open braces."""

    parsed: ParsedText
    end: int
    braces: list[int]

    @property
    def is_declaration(self) -> bool:
        """True if the innermost brace opens a class or a type."""
        node = self.parsed.tree.root_node.descendant_for_byte_range(self.end, self.end + 1)
        return bool(node and node.parent and node.parent.type.endswith(_DECLARATIONS))


def _last_part(before: str) -> str:
    """Return the last part of a long text, beginning with a top-level declaration if possible."""
    if len(before) <= MAX_PARSED:
        return before
    start = len(before) - MAX_PARSED
    match = _TOP_LEVEL.search(before, start, len(before) - MAX_PARSED // 2)
    return before[match.end() if match else before.find("\n", start) + 1 :]


def _prefix(lines: list[str], inside: str, indentation: str) -> str:
    """Return lines as a text, without white space that is part of the cursor's indentation."""
    if lines and indentation.startswith(inside.rpartition("\n")[2]):
        lines = [*lines[:-1], ""]
    return "\n".join(lines).lstrip("\n")
