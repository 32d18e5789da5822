"""Exact match: by syntax tree for Python, by text otherwise."""

import ast
import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from redraft.data.rows import NEWLINE_MARK
from redraft.metrics.bleu import paper_tokens

Language = Literal["python", "text"]


@lru_cache(maxsize=8192)
def normal_form(code: str) -> str | None:
    """Return the code as formatted by `ast.unparse`; None if it does not parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            return ast.unparse(ast.parse(code.replace(NEWLINE_MARK, "\n")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def parses(code: str | None) -> bool:
    """Return True if the output parses as Python."""
    return code is not None and normal_form(code) is not None


def detect_language(references: Sequence[str]) -> Language:
    """Return "python" if at least 95 % of the references parse as Python."""
    parsed = sum(parses(reference) for reference in references)
    return "python" if parsed >= 0.95 * len(references) else "text"


def is_exact(reference: str, output: str | None, language: Language) -> bool:
    """Return True if both have the same syntax tree, or for text the same stripped text."""
    if output is None:
        return False
    if language == "text":
        return output.strip() == reference.strip()
    form = normal_form(output)
    return form is not None and form == normal_form(reference)


def is_exact_paper(reference: str, output: str | None) -> bool:
    """Return True if both have the same tokens and newlines, ignoring quotes and indentation."""
    return output is not None and paper_tokens(reference) == paper_tokens(output)


def is_same_output(output: str, reference: str) -> bool:
    """Return True if two outputs differ at most in case, white space and a final semicolon."""
    return _plain(output) == _plain(reference)


def _plain(output: str) -> str:
    return " ".join(output.casefold().split()).rstrip("; ")
