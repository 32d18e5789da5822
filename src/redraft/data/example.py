"""What everything learns from: an input made of named fields, an output, and notes about both."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

Input = Mapping[str, str]

TEXT_FIELD = "text"
"""The one field of an input that was given as plain text."""


def as_input(x: str | Input) -> Input:
    """The input as named fields, whichever way it was written."""
    return {TEXT_FIELD: x} if isinstance(x, str) else x


def input_text(x: Input) -> str:
    """All fields of an input as one text, in their own order."""
    return "\n".join(x.values())


@dataclass(frozen=True)
class Example:
    """An input x, the output y that belongs to it, and what else is known of the pair."""

    x: Input
    y: str
    meta: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def identity(self) -> str:
        """A digest of x and y: equal for duplicates, whatever their notes."""
        content = json.dumps([sorted(self.x.items()), self.y], ensure_ascii=False)
        return hashlib.blake2b(content.encode(errors="surrogatepass"), digest_size=16).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """The example as a row of a JSON-lines file."""
        plain = list(self.x) == [TEXT_FIELD]
        row: dict[str, Any] = {"x": self.x[TEXT_FIELD] if plain else dict(self.x), "y": self.y}
        return row | {"meta": dict(self.meta)} if self.meta else row

    def to_line(self) -> bytes:
        """The example as a whole line of a JSON-lines file."""
        line = json.dumps(self.to_json(), ensure_ascii=False, default=str) + "\n"
        # half a character, which UTF-8 cannot spell, becomes the escape JSON has for it
        return line.encode(errors="backslashreplace")

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> "Example":
        """The example that `to_json` wrote."""
        return cls(as_input(row["x"]), row["y"], row.get("meta", {}))
