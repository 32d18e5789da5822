"""Constrained decoding: syntaxes that every output must satisfy.

A syntax validates prefixes and whole outputs as text; it knows no tokens and no network. Any object
with its two methods can be passed to `NeuralEditor.with_syntax`. `SYNTAXES` lists the built-in
ones, and `find_syntax` detects the syntax of training outputs.
"""

import ast
import json
import re
import warnings
from collections.abc import Sequence
from typing import Protocol

from redraft.config.ranges import shown
from redraft.errors import ConfigError

_INCOMPLETE = 0x4000
"""The compiler flag PyCF_ALLOW_INCOMPLETE_INPUT: an unexpected end gets its own message."""


class Syntax(Protocol):
    """Decides which texts are valid outputs, and which are prefixes of one."""

    def begins(self, text: str) -> bool:
        """Return True if `text` may be a prefix of a valid output; when in doubt, True."""

    def accepts(self, text: str) -> bool:
        """Return True if `text` is a valid output."""


class AnySyntax:
    """Accepts every text."""

    def begins(self, text: str) -> bool:  # noqa: ARG002
        """Return True."""
        return True

    def accepts(self, text: str) -> bool:  # noqa: ARG002
        """Return True."""
        return True


class PythonSyntax:
    """Python source code, as parsed by the running interpreter."""

    def begins(self, text: str) -> bool:
        """Return True if the text parses, or fails only because it ends too early."""
        line = text[text.rfind("\n") + 1 :]
        if not line or line.isspace():
            return _fault(text) in (None, _UNFINISHED)
        # the backslash continues the line, so that an error lies in the text before it
        fault = _fault(text + "\\\n")
        if fault is not None and fault.startswith("unterminated"):  # string or f-string
            fault = _fault_of_open_string(text)
        return fault in (None, _UNFINISHED)

    def accepts(self, text: str) -> bool:
        """Return True if the text parses."""
        return _fault(text) is None


_UNFINISHED = "incomplete input"


def _fault(text: str) -> str | None:
    """Return the message of the syntax error in `text`, or None if it parses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about invalid escapes in the text
        try:
            compile(text, "<output>", "exec", ast.PyCF_ONLY_AST | _INCOMPLETE)
        except SyntaxError as error:
            return error.msg
        # a null character, or too deep nesting
        except (ValueError, RecursionError, MemoryError) as error:
            return str(error)
    return None


def _fault_of_open_string(text: str) -> str | None:
    """Return the syntax error that remains if the open string of the last line is closed."""
    quotes = [quote for quote in "\"'" if quote in text[text.rfind("\n") + 1 :]]
    faults = [_fault(f"{text}{quote}\\\n") for quote in quotes]
    return next((fault for fault in faults if fault in (None, _UNFINISHED)), "no string is open")


class JsonSyntax:
    """A single JSON value."""

    def begins(self, text: str) -> bool:
        """Return True if the text is JSON, or is invalid only because it ends too early."""
        try:
            json.loads(text)
        except json.JSONDecodeError as error:
            rest = text[error.pos :]
            if error.msg.startswith("Invalid control character"):
                return False
            is_code = error.msg.startswith("Invalid \\uXXXX")
            return rest.isspace() or bool((_CODE if is_code else _OPEN).fullmatch(rest))
        except RecursionError:
            return False
        return True

    def accepts(self, text: str) -> bool:
        """Return True if the text is JSON."""
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            return False
        return True


_STARTS = [word[:end] for word in ("true", "false", "null") for end in range(1, len(word))]
_OPEN = re.compile(rf"""|"[^"\\]*(?:\\.[^"\\]*)*\\?|-|\.|[eE][-+]?|{"|".join(_STARTS)}""")
_CODE = re.compile(r"\\?u?[0-9a-fA-F]{0,4}")
"""Match an unfinished string, number or keyword (`_OPEN`) or \\u escape (`_CODE`) at the end."""


SYNTAXES: dict[str, type[Syntax]] = {
    "any": AnySyntax,
    "python": PythonSyntax,
    "json": JsonSyntax,
}


AUTO = "auto"
"""The setting that selects the syntax of the training outputs by `find_syntax`."""


def named_syntax(name: str) -> Syntax:
    """Return the syntax called `name`; raise a ConfigError that lists the names otherwise."""
    if name not in SYNTAXES:
        names = ", ".join(SYNTAXES)
        raise ConfigError(
            f"no syntax is called {shown(name)} here; choose one of: {names} "
            f"(when fitting, also {AUTO})"
        )
    return SYNTAXES[name]()


_SAMPLE_SIZE = 1_000
"""The number of outputs that are checked to detect a syntax."""

_MAX_INVALID = 0.01
"""The share of outputs that may be invalid: training data has errors."""


def find_syntax(outputs: Sequence[str]) -> str:
    """Return the name of the syntax that nearly all outputs satisfy, or "any".

    Most of them must also have structure typical of it: plain words, numbers, ranges such as 10-12
    and settings such as "port: 80" parse by chance.
    """
    sample = outputs[:: max(1, len(outputs) // _SAMPLE_SIZE)]
    for name, is_typical in _IS_TYPICAL.items():
        valid = [output for output in sample if named_syntax(name).accepts(output)]
        is_valid = len(valid) >= (1 - _MAX_INVALID) * len(sample)
        if is_valid and 2 * sum(map(is_typical, valid)) > len(sample):
            return name
    return "any"


def _is_typical_json(text: str) -> bool:
    return isinstance(json.loads(text), dict | list)


def _is_typical_python(text: str) -> bool:
    """Return True if the text has a statement or a call, which do not parse by chance."""
    typical = (ast.Call, ast.Assign, ast.AugAssign, ast.FunctionDef, ast.ClassDef, ast.Return)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return any(isinstance(node, typical) for node in ast.walk(ast.parse(text)))


_IS_TYPICAL = {"json": _is_typical_json, "python": _is_typical_python}
"""Tests whether a valid output was meant to be of the syntax."""
