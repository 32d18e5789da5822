"""Python sources to examples: docstring, name and arguments are the input, the body is the output.

Reads sources with `ast` and never runs or imports them.
"""

import ast
import tokenize
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from redraft.data.example import Example
from redraft.data.rows import BadRow
from redraft.errors import PairsError

MAX_FILE_BYTES = 2 << 20
"""Larger sources are tables or generated code; they are reported and passed over."""

SKIPPED_FOLDERS = frozenset({"__pycache__", "site-packages", "node_modules", "venv", ".venv"})

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """A Python file, and the name of the package or module at the top of the tree it stands in."""

    path: Path
    package: str
    name: str


def find_sources(paths: Iterable[Path], *, without: Iterable[str] = ()) -> list[Source]:
    """Every Python file under the paths, in order; folders named in `without` are left out."""
    skipped = SKIPPED_FOLDERS | set(without)
    sources = []
    for path in paths:
        if not path.exists():
            raise PairsError(f"{path}: no such file or folder; name Python sources to mine")
        if path.is_file():
            sources.append(Source(path, path.stem, path.name))
            continue
        for file in sorted(path.rglob("*.py")):
            inside = file.relative_to(path)
            folders = inside.parts[:-1]
            if file.is_file() and not any(f in skipped or f.startswith(".") for f in folders):
                package = folders[0] if folders else inside.stem
                sources.append(Source(file, package, inside.as_posix()))
    return sources


def mine(source: Source) -> list[Example] | BadRow:
    """The documented functions of one file, in order; or why it cannot be read."""
    try:
        if source.path.stat().st_size > MAX_FILE_BYTES:
            return BadRow(source.name, 1, f"larger than {MAX_FILE_BYTES:,} bytes")
        with tokenize.open(source.path) as stream:
            return _mine(stream.read(), source)
    except UnicodeDecodeError as error:
        return BadRow(source.name, 1, f"not {error.encoding}")
    except SyntaxError as error:
        return BadRow(source.name, error.lineno or 1, f"not Python 3: {error.msg}")
    except (ValueError, LookupError, RecursionError, MemoryError) as error:
        return BadRow(source.name, 1, f"not Python 3: {error or type(error).__name__}")
    except OSError as error:
        return BadRow(source.name, 1, f"cannot be read: {error.strerror}")


def _mine(text: str, source: Source) -> list[Example]:
    """The documented functions of a source text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the mined code, such as "\d" in a plain string
        tree = ast.parse(text)
    lines = text.split("\n")
    return [
        Example(
            {"docstring": docstring, "name": node.name, "arguments": ast.unparse(node.args)},
            body,
            {"file": source.name, "line": node.lineno, "package": source.package},
        )
        for node in _functions(tree)
        if (docstring := _docstring(node)) and (body := body_after_docstring(node, lines))
    ]


def _functions(tree: ast.AST) -> Iterator[Function]:
    """Functions and methods in the order of their first lines."""
    found = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    return iter(sorted(found, key=lambda node: node.lineno))


def _docstring(node: Function) -> str:
    """The docstring, cleaned; half a character, which an escape can spell, becomes a `?`."""
    return (ast.get_docstring(node) or "").encode(errors="replace").decode()


def body_after_docstring(node: Function, lines: list[str]) -> str:
    """The body as it is written, without docstring and indentation; empty if that was all."""
    docstring, *statements = node.body
    if not statements or statements[0].lineno <= (docstring.end_lineno or docstring.lineno):
        return ""
    # a form feed ends a page and is no part of an indentation
    body = [line.lstrip("\f") for line in lines[docstring.end_lineno : node.end_lineno]]
    indentation = _indentation(statements[0], lines)
    return "\n".join(line.removeprefix(indentation) for line in body).strip("\n")


def _indentation(statement: ast.stmt, lines: list[str]) -> str:
    """The white space before a statement."""
    line = lines[statement.lineno - 1].lstrip("\f")
    return line[: len(line) - len(line.lstrip())]
