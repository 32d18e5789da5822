"""Cursors in real files: is the context of a cursor the function that the whole file's tree has?"""

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from redraft.completion.languages.trees.functions import dedented, first_indentation, input_of
from redraft.completion.languages.trees.language import TreeLanguage
from redraft.types import Input


@dataclass(frozen=True)
class ContextAnswer:
    """Whether a context was right, in a whole file or one that ends at the cursor."""

    package: str
    is_cut: bool
    is_function: bool
    is_right: bool
    milliseconds: float
    where: str


def measure_contexts(
    package: str,
    sources: dict[str, str],
    language: TreeLanguage,
    count: int,
    rng: random.Random,
) -> Iterator[ContextAnswer]:
    """Yield the answers at `count` cursors, every second one in a file that ends there."""
    files = [name for name, text in sources.items() if text.strip() and _parses(language, text)]
    weights = [len(sources[name]) for name in files]
    for i, name in enumerate(rng.choices(files, weights, k=count)):
        text = sources[name]
        offset = rng.randrange(len(text) + 1)
        truth = true_context(text, offset, language)
        is_cut = i % 2 == 1
        start = time.process_time()
        found = language.find_context(text[:offset] if is_cut else text, offset)
        milliseconds = 1000 * (time.process_time() - start)
        answer = (found.x, found.prefix) if found.kind == "function" else None
        yield ContextAnswer(
            package, is_cut, truth is not None, answer == truth, milliseconds, f"{name}:{offset}"
        )


def true_context(text: str, offset: int, language: TreeLanguage) -> tuple[Input, str] | None:
    """Return the input and the prefix of the innermost function, from the tree of all the text."""
    content = text.encode()
    parsed = language.grammar.parse(content)
    position = len(text[:offset].encode())
    around = [
        function
        for function in (language.grammar.functions(parsed) if parsed else ())
        if function.body.start_byte < position < function.body.end_byte
    ]
    if not around:
        return None
    function = max(around, key=lambda one: one.body.start_byte)
    inside = content[function.body.start_byte + 1 : function.body.end_byte - 1].decode()
    typed = content[function.body.start_byte + 1 : position].decode()
    indentation = first_indentation(inside) or ""
    return input_of(function), _prefix(typed, indentation)


def _prefix(typed: str, indentation: str) -> str:
    lines = dedented(typed, indentation)
    if lines and indentation.startswith(typed.rpartition("\n")[2]):
        lines[-1] = ""
    return "\n".join(lines).lstrip("\n")


def _parses(language: TreeLanguage, text: str) -> bool:
    parsed = language.grammar.parse(text.encode())
    return parsed is not None and not parsed.tree.root_node.has_error


def share_right(answers: Sequence[ContextAnswer]) -> float:
    """Return the percentage of right contexts."""
    return 100 * sum(answer.is_right for answer in answers) / len(answers)
