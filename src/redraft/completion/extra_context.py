"""Code that a request brings along: its functions are indexed for that request.

Editors send excerpts of other files, which begin and end anywhere: of Python, every function is cut
out and parsed alone; other parsers accept parts. Knows no protocol.
"""

import heapq
import re
import textwrap
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from redraft.completion.engine import CompletionEngine
from redraft.completion.languages.python.language import PYTHON
from redraft.completion.languages.registry import language_of
from redraft.completion.project import empty_model
from redraft.data.rows import BadRow
from redraft.mining.python_functions import normalised
from redraft.model import RetrieveAndEdit
from redraft.types import Completion, Example

MAX_CHARACTERS = 200_000
"""Characters of all excerpts together that are read: the last ones, which editors add last."""

MAX_ENGINES = 4
"""Cached engines, one per list of excerpts."""

MAX_CUT_LINES = 8
"""Lines at the end of an excerpt that may be dropped until its last function parses."""

MAX_PARSED = 5
"""Times that each character of an excerpt may be parsed, for code that never parses."""

_HEADER = re.compile(r"([ \t]*)(?:async[ \t]+)?def[ \t]")
_CLOSING = (")", "]", "}")


@dataclass(frozen=True)
class Excerpt:
    """A part of a file, and the name of the file if it is known."""

    text: str
    file: str | None = None


class ExtraContext:
    """Completes from excerpts; an LRU cache keeps the engine of the last lists of excerpts."""

    def __init__(self) -> None:
        self._engines: OrderedDict[tuple[Excerpt, ...], CompletionEngine] = OrderedDict()

    def engine(self, excerpts: Sequence[Excerpt]) -> CompletionEngine:
        """Return a completion engine over the functions of the excerpts."""
        key = tuple(excerpts)
        if key not in self._engines:
            model = empty_model()
            examples = [example for excerpt in _last(key) for example in mine_excerpt(excerpt)]
            if examples:
                model = RetrieveAndEdit(model.retriever.add(examples), model.editor)
            self._engines[key] = CompletionEngine(model)
        self._engines.move_to_end(key)
        while len(self._engines) > MAX_ENGINES:
            self._engines.popitem(last=False)
        return self._engines[key]


def merged(ranked: Sequence[Sequence[Completion]], k: int) -> list[Completion]:
    """Return the `k` most probable of ranked lists of completions; each list keeps its order."""
    distinct: dict[str, Completion] = {}
    for completion in heapq.merge(*ranked, key=lambda one: -one.log_prob):
        distinct.setdefault(completion.text, completion)
    return list(distinct.values())[:k]


def mine_excerpt(excerpt: Excerpt) -> list[Example]:
    """Return the functions of an excerpt; parts of functions may be left out."""
    language = language_of(excerpt.file)
    if language is PYTHON:
        examples = _mine_python(excerpt.text)
    else:
        mined = language.mine(excerpt.text, name="", package="")
        examples = [] if isinstance(mined, BadRow) else mined
    return [replace(example, meta=_meta(example, excerpt)) for example in examples]


def _meta(example: Example, excerpt: Excerpt) -> dict[str, Any]:
    """Return the meta data of a function without its line, which an excerpt does not tell."""
    meta = {key: value for key, value in example.meta.items() if key == "language"}
    return meta if excerpt.file is None else {"file": excerpt.file, **meta}


def _mine_python(text: str) -> list[Example]:
    lines = normalised(text).split("\n")
    examples: list[Example] = []
    start, left = 0, MAX_PARSED * len(text)
    while start < len(lines) and left > 0:
        end = start + 1
        mined: list[Example] = []
        if header := _HEADER.match(lines[start]):
            end = _block_end(lines, start, len(header[1]))
            tries = MAX_CUT_LINES if end == len(lines) else 1
            mined, parsed = _mine_block(lines[start:end], tries)
            left -= parsed
        examples += mined
        start = end if mined else start + 1
    return examples


def _mine_block(lines: Sequence[str], tries: int) -> tuple[list[Example], int]:
    """Return the functions of a block, and how many characters were parsed."""
    parsed = 0
    for dropped in range(tries):
        source = textwrap.dedent("\n".join(lines[: len(lines) - dropped]))
        parsed += len(source)
        mined = PYTHON.mine(source, name="", package="")
        if not isinstance(mined, BadRow):
            return mined, parsed
    return [], parsed


def _block_end(lines: Sequence[str], start: int, indentation: int) -> int:
    """Return the first line after the block that begins at `start`."""
    for i in range(start + 1, len(lines)):
        stripped = lines[i].lstrip()
        is_outside = stripped and len(lines[i]) - len(stripped) <= indentation
        if is_outside and not stripped.startswith(_CLOSING):
            return i
    return len(lines)


def _last(excerpts: Sequence[Excerpt]) -> Iterator[Excerpt]:
    """Yield the last excerpts that fit into the limit, the last one first."""
    left = MAX_CHARACTERS
    for excerpt in reversed(excerpts):
        if not excerpt.text.strip() or left <= 0:
            continue
        yield replace(excerpt, text=excerpt.text[:left])
        left -= len(excerpt.text)
