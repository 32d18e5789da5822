"""Where an editor's positions are in a text, in whichever units the editor counts.

Lines end as the protocol says, at \\n, \\r\\n and \\r. A form feed, which code may hold, ends none.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lsprotocol import types
from pygls.workspace import PositionCodec, ServerTextPosition, TextDocument

_LINE_START = re.compile(r"(?<=\n)|(?<=\r)(?!\n)")
_WORD = re.compile(r"\w*\Z")


class Positions(PositionCodec):
    """Editor's units to characters; what is past the end of a line is its end."""

    def position_from_client_units(
        self, lines: Sequence[str], position: types.Position
    ) -> ServerTextPosition:
        """The line and the character in it."""
        if position.line >= len(lines):
            return ServerTextPosition(len(lines) - 1, len(lines[-1]))
        line = lines[position.line].rstrip("\r\n")
        units = 0
        for at, character in enumerate(line):
            if units >= position.character:
                return ServerTextPosition(position.line, at)
            units += self.impl.code_units_for_char(character)
        return ServerTextPosition(position.line, len(line))


class Buffer(TextDocument):
    """A text that an editor holds; its last line is what follows the last line end, if empty."""

    @property
    def lines(self) -> Sequence[str]:
        """The lines with their ends."""
        if "\r" in self.source:
            return tuple(_LINE_START.split(self.source))
        *ended, last = self.source.split("\n")
        return (*(f"{line}\n" for line in ended), last)


@dataclass(frozen=True)
class Cursor:
    """A place in a text, and the part of a word that stands before it."""

    offset: int
    word: str
    word_range: types.Range

    @property
    def position(self) -> types.Position:
        """The place in the editor's units."""
        return self.word_range.end


def find_cursor(buffer: Buffer, position: types.Position) -> Cursor:
    """The cursor at an editor's position, or at the end of a line that is shorter."""
    lines = buffer.lines
    found = buffer.position_codec.position_from_client_units(lines, position)
    before = lines[found.line][: found.character]
    found_word = _WORD.search(before)
    word = found_word[0] if found_word else ""
    units = buffer.position_codec.client_num_units
    end, start = units(before), units(before[: len(before) - len(word)])
    return Cursor(
        offset=sum(map(len, lines[: found.line])) + found.character,
        word=word,
        word_range=types.Range(
            types.Position(found.line, start),
            types.Position(found.line, end),
        ),
    )
