"""The surroundings of a cursor: the names of the buffer, and the code after the cursor.

Reads lines and names only, in any language. Knows no model.
"""

import builtins
import re
from dataclasses import dataclass

MAX_FOLLOWING = 400
"""Characters after the cursor that count."""

_NAME = re.compile(r"[^\W\d]\w*")
_VISIBLE = re.compile(r"^(?:\S.*|\s+\w+(?:\s+as\s+\w+)?,?)$", re.MULTILINE)

BUILTINS = frozenset(dir(builtins))


@dataclass(frozen=True)
class Surroundings:
    """The names of a buffer and the line of the cursor in it.

    `visible` are the names of lines without indentation, such as imports and definitions, and of
    lines with a single name, such as those of an import in brackets.
    """

    visible: frozenset[str] = BUILTINS
    names: frozenset[str] = frozenset()
    line: int | None = None

    @classmethod
    def of(cls, text: str, offset: int) -> "Surroundings":
        """Read the surroundings of the cursor at `offset`."""
        visible = " ".join(_VISIBLE.findall(text))
        names = frozenset(_NAME.findall(text))
        return cls(BUILTINS.union(_NAME.findall(visible)), names, 1 + text.count("\n", 0, offset))


def code_after(text: str, offset: int, indentation: str) -> str:
    """Return the lines of the same block after the line of the cursor, without indentation."""
    _, _, below = text[offset : offset + MAX_FOLLOWING].partition("\n")
    lines = []
    for line in below.split("\n"):
        if line.strip() and len(line) - len(line.lstrip()) < len(indentation):
            break
        lines.append(line.removeprefix(indentation))
    return "\n".join(lines).strip("\n")
