"""Renames the identifiers of a retrieved function to those of the function at the cursor.

What differs between the two headers is carried over into the body: an argument in place of another,
a part of the name in place of another (`get_user` becomes `get_order`, `UserCard` `OrderCard`).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from redraft.completion.languages.base import Language
from redraft.completion.languages.python.language import PYTHON
from redraft.text.tokenizer import split_identifier
from redraft.types import Input

_IDENTIFIER = re.compile(r"[^\W\d]\w*")


def name_parts(name: str) -> list[str]:
    """Return the words of an identifier in lower case."""
    return [part.lower() for part in split_identifier(name) if part.isalnum()]


@dataclass(frozen=True)
class Renaming:
    """Identifiers to replace, and parts of identifiers to replace in all others."""

    identifiers: dict[str, str]
    parts: dict[str, str]

    @classmethod
    def between(cls, source: Input, target: Input, language: Language = PYTHON) -> "Renaming":
        """Return the renaming that turns the header of `source` into that of `target`."""
        arguments = [language.argument_names(x["arguments"]) for x in (source, target)]
        names = name_parts(source["name"]), name_parts(target["name"])
        return cls(dict(_replaced(*arguments)), dict(_replaced(*names)))

    def apply(self, body: str) -> str:
        """Return the body with its identifiers renamed."""
        if not (self.identifiers or self.parts):
            return body
        return _IDENTIFIER.sub(lambda match: self._renamed(match[0]), body)

    def _renamed(self, word: str) -> str:
        if word in self.identifiers:
            return self.identifiers[word]
        return "".join(
            _in_case_of(part, self.parts[part.lower()]) if part.lower() in self.parts else part
            for part in split_identifier(word)
        )


def _replaced(source: list[str], target: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the words that stand opposite each other where two lists differ."""
    matcher = SequenceMatcher(None, source, target, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "replace" and b - a == d - c:
            yield from zip(source[a:b], target[c:d], strict=True)


def _in_case_of(part: str, word: str) -> str:
    """Return the lower-case `word` in the case of `part`."""
    if part.isupper() and len(part) > 1:
        return word.upper()
    return word.capitalize() if part[:1].isupper() else word
