"""Reader for Thrift's compact protocol, the format of Parquet's footer and page headers.

Knows no message types.
"""

from collections import deque
from collections.abc import Mapping
from typing import Any

Wanted = Mapping[int, Any]
"""The fields of a struct to keep: None for an integer, the wanted fields of a struct, a list of
them for a list of structs. All others are skipped, so that a message cannot fill the memory."""

_BOOLEANS = (1, 2)
_INTEGERS = (4, 5, 6)
_SIZES = {3: 1, 7: 8, 13: 16}
"""Bytes of the types byte, double and UUID."""
_BINARY = 8
_LIST = 9
_STRUCT = 12
_MAX_DEPTH = 32


class ThriftError(ValueError):
    """Bytes that are not a valid Thrift message."""


class TooShortError(ThriftError):
    """The bytes end within a message."""


class Thrift:
    """A reader of `content`; `offset` is the current position."""

    def __init__(self, content: bytes) -> None:
        self.content, self.offset = content, 0

    def struct(self, wanted: Wanted, depth: int = 0) -> dict[int, Any]:
        """Read a struct and return its `wanted` fields by number; None if of another type."""
        fields: dict[int, Any] = {}
        number = 0
        while kind := self._byte():
            number = number + (kind >> 4) if kind >> 4 else self._integer()
            if kind & 15 in _BOOLEANS:  # the type of a field is its value
                continue
            value = self._value(kind & 15, wanted.get(number), depth)
            if number in wanted:
                fields[number] = value
        return fields

    def _value(self, kind: int, wanted: Any, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise ThriftError("nested too deeply")
        if kind in _INTEGERS:
            return self._integer()
        if kind == _STRUCT:
            return self.struct(wanted if isinstance(wanted, Mapping) else {}, depth + 1)
        if kind == _LIST:
            head = self._byte()
            count = self._unsigned() if head >> 4 == 15 else head >> 4
            part = wanted[0] if isinstance(wanted, list) else None
            values = (self._value(head & 15, part, depth + 1) for _ in range(count))
            return list(values) if part else deque(values, maxlen=0)
        if kind == _BINARY:
            self._advance(self._unsigned())
        elif kind in _BOOLEANS:
            self._advance(1)
        elif kind in _SIZES:
            self._advance(_SIZES[kind])
        else:
            raise ThriftError(f"a field of the unknown type {kind}")
        return None

    def _integer(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)

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

    def _byte(self) -> int:
        self._advance(1)
        return self.content[self.offset - 1]

    def _advance(self, count: int) -> None:
        self.offset += count
        if self.offset > len(self.content):
            raise TooShortError("a message is cut off")
