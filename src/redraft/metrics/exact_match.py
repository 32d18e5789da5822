"""Exact match, by the language of the outputs: a function per language returns a normal form."""

import ast
import json
import re
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal

from redraft.data.rows import NEWLINE_MARK
from redraft.metrics.bleu import paper_tokens

Language = Literal["text", "sql", "python", "json"]

DETECTED_SHARE = 0.95
"""Share of the references that must be of a language for it to be detected."""


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


_SQL_TOKEN = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|\w+|\S""", re.DOTALL)
_SQL_QUOTES = "'\"`["
_SQL_START = re.compile(
    r"\s*\(*\s*(select|with|insert|update|delete|create|alter|drop|merge|replace)\b", re.IGNORECASE
)


@lru_cache(maxsize=8192)
def sql_form(query: str) -> str:
    """Return the tokens of a query, in lower case outside of quotes, without final semicolons."""
    tokens = [
        token if token[0] in _SQL_QUOTES else token.casefold()
        for token in _SQL_TOKEN.findall(query.replace(NEWLINE_MARK, "\n"))
    ]
    while tokens and tokens[-1] == ";":
        tokens.pop()
    return " ".join(tokens)


@lru_cache(maxsize=8192)
def json_form(text: str) -> str | None:
    """Return the JSON value with sorted keys; None if the text is not JSON."""
    try:
        return json.dumps(json.loads(text.replace(NEWLINE_MARK, "\n")), sort_keys=True)
    except (ValueError, RecursionError):
        return None


FORMS: dict[Language, Callable[[str], str | None]] = {
    "text": str.strip,
    "sql": sql_form,
    "python": normal_form,
    "json": json_form,
}
"""The normal form of an output by language: equal outputs have the same; None equals nothing."""

_DETECTORS: dict[Language, Callable[[str], bool]] = {
    "sql": lambda reference: _SQL_START.match(reference) is not None,
    # first: an object of JSON parses as Python too, and a number as both
    "json": lambda reference: (
        reference.lstrip().startswith(("{", "[")) and json_form(reference) is not None
    ),
    "python": parses,
}


def detect_language(references: Sequence[str]) -> Language:
    """Return the first language that nearly all references are of, otherwise "text"."""
    for language, is_of in _DETECTORS.items():
        if sum(map(is_of, references)) >= DETECTED_SHARE * len(references):
            return language
    return "text"


def is_exact(reference: str, output: str | None, language: Language) -> bool:
    """Return True if both have the same normal form in the language."""
    form = None if output is None else FORMS[language](output)
    return form is not None and form == FORMS[language](reference)


def is_exact_paper(reference: str, output: str | None) -> bool:
    """Return True if both have the same tokens and newlines, ignoring quotes and indentation."""
    return output is not None and paper_tokens(reference) == paper_tokens(output)


def is_same_output(output: str, reference: str) -> bool:
    """Return True if two outputs differ at most in case, white space and a final semicolon.

    Editors are fitted by this rule, whatever the language: it ignores case in quotes as well.
    """
    return _plain(output) == _plain(reference)


def _plain(output: str) -> str:
    return " ".join(output.casefold().split()).rstrip("; ")
