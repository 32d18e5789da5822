"""Reader for Thrift's compact protocol, the format of Parquet's footer and page headers.

Reads integers and skips everything else. Knows no message types.
"""

from collections.abc import Iterator

INTEGERS = (4, 5, 6)
LIST = 9
STRUCT = 12

_BOOLEANS = (1, 2)
_SIZES = {3: 1, 7: 8, 13: 16}
_BINARY = 8
_SET = 10
_MAP = 11
_MAX_DEPTH = 32


class ThriftError(ValueError):
    """Bytes that are not a valid Thrift message."""


class TooShort(Exception):  # noqa: N818 (not always an error: more can be read)
    """The bytes end within a message."""


class Thrift:
    """A reader of `content`; `offset` is the current position.

    Callers that iterate `fields` or `structs` must read or skip each item before the next.
    """

    def __init__(self, content: bytes) -> None:
        self.content, self.offset = content, 0

    def fields(self) -> Iterator[tuple[int, int]]:
        """Yield the number and the type of each field of a struct."""
        number = 0
        while kind := self._byte():
            number = number + (kind >> 4) if kind >> 4 else self.integer()
            yield number, kind & 15

    def integers(self) -> dict[int, int]:
        """Return the integer fields of a struct by number; all other fields are skipped."""
        values: dict[int, int] = {}
        for number, kind in self.fields():
            if kind in INTEGERS:
                values[number] = self.integer()
            else:
                self.skip(kind)
        return values

    def structs(self) -> Iterator[int]:
        """Yield the index of each struct of a list of structs."""
        kind, count = self._list()
        if kind != STRUCT and count:
            raise ThriftError("a list is not of structs")
        yield from range(count)

    def integer(self) -> int:
        """Read a signed integer."""
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)

    def skip(self, kind: int, depth: int = 0) -> None:
        """Skip a value of type `kind`."""
        if depth > _MAX_DEPTH:
            raise ThriftError("nested too deeply")
        if kind in _BOOLEANS:
            return
        if kind in INTEGERS:
            self._unsigned()
        elif kind in _SIZES:
            self._advance(_SIZES[kind])
        elif kind == _BINARY:
            self._advance(self._unsigned())
        elif kind in (LIST, _SET):
            part, count = self._list()
            for _ in range(count):
                self._skip_part(part, depth + 1)
        elif kind == STRUCT:
            for _, part in self.fields():
                self.skip(part, depth + 1)
        elif kind == _MAP:
            self._skip_map(depth)
        else:
            raise ThriftError(f"a field of the unknown type {kind}")

    def _skip_part(self, kind: int, depth: int) -> None:
        """Skip an element of a container, in which even a boolean takes a byte."""
        if kind in _BOOLEANS:
            self._advance(1)
        else:
            self.skip(kind, depth)

    def _skip_map(self, depth: int) -> None:
        count = self._unsigned()
        kinds = self._byte() if count else 0
        for _ in range(count):
            self._skip_part(kinds >> 4, depth + 1)
            self._skip_part(kinds & 15, depth + 1)

    def _list(self) -> tuple[int, int]:
        head = self._byte()
        count = head >> 4
        return head & 15, self._unsigned() if count == 15 else count

    def _byte(self) -> int:
        self._advance(1)
        return self.content[self.offset - 1]

    def _unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise ThriftError("an integer that is too long")

    def _advance(self, count: int) -> None:
        self.offset += count
        if self.offset > len(self.content):
            raise TooShort
