"""Conversion of LSP positions, in the editor's position encoding, to offsets in a text.

As in the protocol, lines end at \\n, \\r\\n and \\r; a form feed does not end a line.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lsprotocol import types
from pygls.workspace import PositionCodec, ServerTextPosition, TextDocument

_LINE_START = re.compile(r"(?<=\n)|(?<=\r)(?!\n)")
_WORD = re.compile(r"\w*\Z")


class Positions(PositionCodec):
    """A position codec that clamps positions past the end of a line to its end."""

    def position_from_client_units(
        self, lines: Sequence[str], position: types.Position
    ) -> ServerTextPosition:
        """Return the line and the character in it."""
        if position.line >= len(lines):
            return ServerTextPosition(len(lines) - 1, len(lines[-1]))
        line = lines[position.line].rstrip("\r\n")
        units = 0
        for column, character in enumerate(line):
            if units >= position.character:
                return ServerTextPosition(position.line, column)
            units += self.impl.code_units_for_char(character)
        return ServerTextPosition(position.line, len(line))


class Buffer(TextDocument):
    """An open document; the text after the last line end is a line, even if empty."""

    @property
    def lines(self) -> Sequence[str]:
        """Return the lines with their line ends."""
        if "\r" in self.source:
            return tuple(_LINE_START.split(self.source))
        *ended, last = self.source.split("\n")
        return (*(f"{line}\n" for line in ended), last)


@dataclass(frozen=True)
class Cursor:
    """An offset in a text, and the part of a word before it."""

    offset: int
    word: str
    word_range: types.Range

    @property
    def position(self) -> types.Position:
        """Return the position in the editor's units."""
        return self.word_range.end


def find_cursor(buffer: Buffer, position: types.Position) -> Cursor:
    """Return the cursor at an editor's position, clamped to the end of the line."""
    lines = buffer.lines
    place = buffer.position_codec.position_from_client_units(lines, position)
    before = lines[place.line][: place.character]
    match = _WORD.search(before)
    word = match[0] if match else ""
    units = buffer.position_codec.client_num_units
    end, start = units(before), units(before[: len(before) - len(word)])
    return Cursor(
        offset=sum(map(len, lines[: place.line])) + place.character,
        word=word,
        word_range=types.Range(
            types.Position(place.line, start),
            types.Position(place.line, end),
        ),
    )
