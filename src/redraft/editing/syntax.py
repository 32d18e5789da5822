"""What makes an output a valid one, asked while it is written: outputs that always parse.

A syntax is asked two questions of a text and knows neither tokens nor networks. Anything with
these two methods can be given to `NeuralEditor.with_syntax`; `SYNTAXES` has those with a name, and
`find_syntax` tells which of them the outputs of examples have in common.
"""

import ast
import json
import re
import warnings
from collections.abc import Sequence
from typing import Protocol

from redraft.errors import ConfigError

_INCOMPLETE = 0x4000
"""The compiler's PyCF_ALLOW_INCOMPLETE_INPUT: an error at the end of the text is told apart."""


class Syntax(Protocol):
    """Which texts are valid outputs."""

    def begins(self, text: str) -> bool:
        """Whether a valid output can begin with this text; if in doubt, yes."""

    def accepts(self, text: str) -> bool:
        """Whether the text is a valid output."""


class AnySyntax:
    """Every text is valid."""

    def begins(self, text: str) -> bool:  # noqa: ARG002
        """Always."""
        return True

    def accepts(self, text: str) -> bool:  # noqa: ARG002
        """Always."""
        return True


class PythonSyntax:
    """Statements of Python, by the parser of the Python that runs."""

    def begins(self, text: str) -> bool:
        """Whether only the end of the text is in the way of parsing it."""
        line = text[text.rfind("\n") + 1 :]
        if not line or line.isspace():
            return _fault(text) in (None, _UNFINISHED)
        # a backslash takes the end of the line away: what is left to complain of is the text
        fault = _fault(text + "\\\n")
        if fault is not None and fault.startswith("unterminated"):  # a string, also a formatted one
            fault = _fault_of_open_string(text)
        return fault in (None, _UNFINISHED)

    def accepts(self, text: str) -> bool:
        """Whether the text parses."""
        return _fault(text) is None


_UNFINISHED = "incomplete input"


def _fault(text: str) -> str | None:
    """What the parser has to say against a text, if anything."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of strange escapes in the text
        try:
            compile(text, "<output>", "exec", ast.PyCF_ONLY_AST | _INCOMPLETE)
        except SyntaxError as error:
            return error.msg
        except (ValueError, RecursionError, MemoryError) as error:  # a null character, too deep
            return str(error)
    return None


def _fault_of_open_string(text: str) -> str | None:
    """The same once the string that the last line leaves open is closed, by the likelier quote."""
    quotes = [quote for quote in "\"'" if quote in text[text.rfind("\n") + 1 :]]
    faults = [_fault(f"{text}{quote}\\\n") for quote in quotes]
    return next((fault for fault in faults if fault in (None, _UNFINISHED)), "no string is open")


class JsonSyntax:
    """One JSON value."""

    def begins(self, text: str) -> bool:
        """Whether only the end of the text is in the way of reading it."""
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
        """Whether the text is JSON."""
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            return False
        return True


_STARTS = [word[:end] for word in ("true", "false", "null") for end in range(1, len(word))]
_OPEN = re.compile(rf"""|"[^"\\]*(?:\\.[^"\\]*)*\\?|-|\.|[eE][-+]?|{"|".join(_STARTS)}""")
_CODE = re.compile(r"\\?u?[0-9a-fA-F]{0,4}")
"""What stands at the end of a text when a string, a number or a word has not ended yet."""


SYNTAXES: dict[str, type[Syntax]] = {
    "any": AnySyntax,
    "python": PythonSyntax,
    "json": JsonSyntax,
}


AUTO = "auto"
"""The name that stands for whatever syntax the training outputs turn out to have."""


def named_syntax(name: str) -> Syntax:
    """The syntax with this name, or an error that lists the names there are."""
    if name not in SYNTAXES:
        names = ", ".join(SYNTAXES)
        raise ConfigError(
            f"no syntax is called {name!r} here; choose one of: {names} (when fitting, also {AUTO})"
        )
    return SYNTAXES[name]()


_LOOKED_AT = 1_000
"""Outputs that are enough to tell a syntax by."""

_FAULTY = 0.01
"""The share of outputs that may be at fault: examples are not all well made."""


def find_syntax(outputs: Sequence[str]) -> str:
    """The name of a syntax that outputs have, but for faults, and that most of them show.

    What parses by chance shows nothing: words, numbers, ranges such as 10-12, settings such as
    "port: 80".
    """
    some = outputs[:: max(1, len(outputs) // _LOOKED_AT)]
    for name, shows in _SIGNS.items():
        valid = [output for output in some if named_syntax(name).accepts(output)]
        if len(valid) >= (1 - _FAULTY) * len(some) and 2 * sum(map(shows, valid)) > len(some):
            return name
    return "any"


def _shows_json(text: str) -> bool:
    return isinstance(json.loads(text), dict | list)


def _shows_python(text: str) -> bool:
    """Whether there is a statement or a call: no other kind of text has them by chance."""
    telling = (ast.Call, ast.Assign, ast.AugAssign, ast.FunctionDef, ast.ClassDef, ast.Return)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return any(isinstance(node, telling) for node in ast.walk(ast.parse(text)))


_SIGNS = {"json": _shows_json, "python": _shows_python}
"""What tells that an output is meant to be of a syntax."""
