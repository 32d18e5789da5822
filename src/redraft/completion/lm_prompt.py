"""The prompt of a language model at a cursor: functions of the project first, the cursor last.

While a function is typed only the end of its prompt changes, so that a server reuses its prefix
cache. Knows the source code of functions, and no HTTP.
"""

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from redraft.completion.languages.base import Context
from redraft.completion.languages.python.cursor_context import find_context
from redraft.lm.fim import FimTemplate
from redraft.lm.prompt import CHARACTERS_PER_TOKEN, Prompt, estimated_tokens
from redraft.types import Example, Input

INDENTATION = " " * 4

MAX_HEAD = 600
"""Characters of the imports of a file."""

MAX_EXAMPLE_LINES = 30
"""Lines of the body of a retrieved function."""

MAX_SUFFIX = 400
"""Characters after the cursor, for models that fill in the middle."""

CUT_LINES = 40
"""Lines that are left out at once of a function that is too long."""

STOP = ("\ndef ", "\nclass ", "\n# file: ")
"""The text after each function of a prompt."""

_IMPORT = re.compile(r"^(?:from [\w.]+ )?import .*$", re.MULTILINE)


@dataclass(frozen=True)
class CursorText:
    """The text around a cursor: its context, the imports above and the text below."""

    context: Context
    head: str
    after: str
    file: str | None

    @classmethod
    def of(cls, text: str, offset: int, file: str | None = None) -> "CursorText":
        """Return the text around the cursor at `offset` of a buffer."""
        context = find_context(text, offset)
        head = "\n".join(_IMPORT.findall(text[:offset])) if context.kind != "module" else ""
        if len(head) > MAX_HEAD:
            head = head[:MAX_HEAD].rpartition("\n")[0]
        return cls(context, head, text[offset : offset + MAX_SUFFIX], file)

    @cached_property
    def before(self) -> str:
        """The function at the cursor up to the cursor, without a single space at its end.

        Tokenizers make that space part of the next word, also after the indentation of a line.
        """
        above, _, line = self.context.prefix.rpartition("\n")
        body = textwrap.indent(above, self._indent) + "\n" if above else ""
        return (self._header + body + self._indent + line).removesuffix(" ")

    @cached_property
    def below(self) -> str:
        """The text after the cursor, indented as `before` is."""
        surplus = self.context.indentation.removeprefix(self._indent)
        return self.after.replace(f"\n{surplus}", "\n") if surplus else self.after

    def continuation(self, generated: str) -> str | None:
        """Return the text to insert of what was generated after `before`, in the body's format.

        It ends where a line leaves the function. None if it contradicts the white space before the
        cursor.
        """
        lines = (self.before[len(self._header) :] + generated).split("\n")
        body: list[str] = []
        for i, line in enumerate(lines):
            if line.strip() and not line.startswith(self._indent) and i >= self._typed_lines:
                break
            body.append(line.removeprefix(self._indent))
        text, prefix = "\n".join(body), self.context.prefix
        if text.startswith(prefix):
            return text[len(prefix) :]
        return "" if prefix.startswith(text) else None  # not more than that space yet

    @cached_property
    def _indent(self) -> str:
        return INDENTATION if self.context.kind == "function" else ""

    @cached_property
    def _typed_lines(self) -> int:
        """Lines before that of the cursor, which may be indented in any way."""
        return self.context.prefix.count("\n")

    @cached_property
    def _header(self) -> str:
        return _header(self.context.x, self.context.x["docstring"]) if self._indent else ""


def cursor_prompt(
    cursor: CursorText,
    examples: Sequence[Example],
    *,
    tokens: int,
    template: FimTemplate | None = None,
) -> Prompt:
    """Return the prompt with as many `examples`, the nearest first, as fit into `tokens`.

    In the prompt the nearest comes last. With a `template` the text after the cursor is shown too.
    """
    after = cursor.below if template else ""
    name = f"# file: {cursor.file}\n" if cursor.file else ""
    head = f"{cursor.head}\n\n\n" if cursor.head else ""
    own = _last_lines(f"{name}{head}{cursor.before}", tokens - estimated_tokens(after))
    left = tokens - estimated_tokens(own + after)
    shown: list[str] = []
    for example in examples:
        source = f"{function_source(example)}\n\n\n"
        left -= estimated_tokens(source)
        if left < 0:
            break
        shown.insert(0, source)
    before = "".join(shown) + own
    return Prompt(template.fill(before, after) if template else before, (), STOP)


def function_source(example: Example) -> str:
    """Return a retrieved function: its file, header, first line of the docstring and body."""
    x, file = example.x, example.meta.get("file")
    body = "\n".join(example.y.split("\n")[:MAX_EXAMPLE_LINES])
    header = _header(x, x.get("docstring", "").strip().partition("\n")[0])
    name = f"# file: {file}\n" if file else ""
    return f"{name}{header}{textwrap.indent(body, INDENTATION)}"


def _header(x: Input, docstring: str) -> str:
    """Return the first lines of a function, up to its body."""
    header = f"def {x['name']}({x['arguments']}):\n"
    if not docstring.strip():
        return header
    quoted = docstring.strip().replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    return header + textwrap.indent(f'"""{quoted}"""\n', INDENTATION)


def _last_lines(text: str, tokens: int) -> str:
    """Return the end of a text that fits into `tokens`, cut in steps: each cut empties a cache."""
    lines = text.split("\n")
    characters = int(tokens * CHARACTERS_PER_TOKEN)
    start, left = 0, len(text)
    while start < len(lines) - 1 and left > characters:
        end = min(start + CUT_LINES, len(lines) - 1)
        left -= sum(len(line) + 1 for line in lines[start:end])
        start = end
    return "\n".join(lines[start:])[-max(1, characters) :]
