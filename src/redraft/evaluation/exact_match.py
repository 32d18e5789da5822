"""Whether an output is exactly right: by syntax tree for Python, by text for anything else."""

import ast
import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from redraft.data.rows import NEWLINE_MARK
from redraft.evaluation.bleu import paper_tokens

Language = Literal["python", "text"]


@lru_cache(maxsize=8192)
def normal_form(code: str) -> str | None:
    """The code as `ast` would write it; None if it does not parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            return ast.unparse(ast.parse(code.replace(NEWLINE_MARK, "\n")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def parses(code: str | None) -> bool:
    """Whether the output is well-formed Python."""
    return code is not None and normal_form(code) is not None


def detect_language(references: Sequence[str]) -> Language:
    """Python if at least nineteen references in twenty parse as such."""
    parsed = sum(parses(reference) for reference in references)
    return "python" if parsed >= 0.95 * len(references) else "text"


def is_exact(reference: str, output: str | None, language: Language) -> bool:
    """The same syntax tree, or for text the same words and spaces; a Python output must parse."""
    if output is None:
        return False
    if language == "text":
        return output.strip() == reference.strip()
    form = normal_form(output)
    return form is not None and form == normal_form(reference)


def is_exact_paper(reference: str, output: str | None) -> bool:
    """The same tokens, newlines among them; quotes and indentation do not matter."""
    return output is not None and paper_tokens(reference) == paper_tokens(output)
