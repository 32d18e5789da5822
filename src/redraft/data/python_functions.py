"""Python sources to examples: docstring, name and arguments are the input, the body is the output.

Reads sources with `ast` and never runs or imports them.
"""

import ast
import io
import tokenize
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from redraft.data.example import Example, Input
from redraft.data.rows import BadRow
from redraft.errors import PairsError

MAX_FILE_BYTES = 2 << 20
"""Larger sources are tables or generated code; they are reported and passed over."""

SKIPPED_FOLDERS = frozenset({"__pycache__", "site-packages", "node_modules", "venv", ".venv"})

FIELDS = ("docstring", "name", "arguments")
"""Of the input of a function that was mined."""

Function = ast.FunctionDef | ast.AsyncFunctionDef

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
"""Where a node of the syntax tree keeps statements, or what keeps statements."""


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


def mine(source: Source, *, documented_only: bool = True) -> list[Example] | BadRow:
    """The documented functions of one file, or all, in order; or why it cannot be read."""
    try:
        with source.path.open("rb") as stream:
            content = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        return BadRow(source.name, 1, f"cannot be read: {error.strerror}")
    return mine_content(
        content, name=source.name, package=source.package, documented_only=documented_only
    )


def mine_content(
    content: bytes | str, *, name: str, package: str, documented_only: bool = True
) -> list[Example] | BadRow:
    """The functions of a source, wherever its bytes or text lay; or why there are none."""
    if len(content) > MAX_FILE_BYTES:
        return BadRow(name, 1, f"larger than {MAX_FILE_BYTES:,} bytes")
    try:
        functions = _functions(text := _decode(content), documented_only=documented_only)
        return list(_examples(functions, text, name=name, package=package))
    except UnicodeDecodeError as error:
        return BadRow(name, 1, f"not {error.encoding}")
    except SyntaxError as error:
        return BadRow(name, error.lineno or 1, f"not Python 3: {error.msg}")
    except (ValueError, LookupError, RecursionError, MemoryError) as error:
        return BadRow(name, 1, f"not Python 3: {error or type(error).__name__}")


def _decode(content: bytes | str) -> str:
    """The text in the encoding that it declares, its line ends as newlines."""
    if isinstance(content, str):  # decoded already, whatever it declares
        text = content.removeprefix("\ufeff").encode(errors="replace").decode()
        return io.StringIO(text, newline=None).read()
    encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
    return io.TextIOWrapper(io.BytesIO(content), encoding).read()


def _functions(text: str, *, documented_only: bool) -> list[Function]:
    """Functions and methods in the order of their first lines."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the mined code, such as "\d" in a plain string
        tree = ast.parse(text)
    found: list[Function] = []
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Function) and (_docstring(node) or not documented_only):
            found.append(node)
        for block in _BLOCKS:  # a definition stands among statements, never inside an expression
            waiting.extend(getattr(node, block, ()))
    return sorted(found, key=lambda node: node.lineno)


def _examples(
    functions: Iterable[Function], text: str, *, name: str, package: str
) -> Iterator[Example]:
    """The functions that have a body besides their docstring."""
    lines = text.split("\n")
    for node in functions:
        docstring = _docstring(node)
        body = body_after_docstring(node, lines) if docstring else whole_body(node, lines)
        if body:
            arguments = ast.unparse(node.args)
            yield Example(
                dict(zip(FIELDS, (docstring, node.name, arguments), strict=True)),
                body,
                {"file": name, "line": node.lineno, "package": package},
            )


def _docstring(node: Function) -> str:
    """The docstring, cleaned; half a character, which an escape can spell, becomes a `?`."""
    return (ast.get_docstring(node) or "").encode(errors="replace").decode()


def body_after_docstring(node: Function, lines: list[str]) -> str:
    """The body as it is written, without docstring and indentation; empty if that was all."""
    docstring, *statements = node.body
    if not statements or statements[0].lineno <= (docstring.end_lineno or docstring.lineno):
        return ""
    return _dedented(
        lines[docstring.end_lineno : node.end_lineno], _indentation(statements[0], lines)
    )


def whole_body(node: Function, lines: list[str]) -> str:
    """The body of a function without a docstring; empty if it stands in the header's line."""
    first = node.body[0]
    decorators = getattr(first, "decorator_list", [])
    start = min(each.lineno for each in (first, *decorators))
    indentation = _indentation(first, lines)
    if len(indentation.encode()) < first.col_offset:
        return ""
    return _dedented(lines[start - 1 : node.end_lineno], indentation)


def as_source(x: Input, body: str) -> str:
    """A mined function as it stood in its file, as far as its body is given."""
    docstring = x["docstring"].replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    header = f"def {x['name']}({x['arguments']}):"
    return f'{header}\n"""{docstring}\n"""\n{body}'.replace("\n", "\n    ")


def _dedented(lines: Iterable[str], indentation: str) -> str:
    # a form feed ends a page and is no part of an indentation
    body = [line.lstrip("\f") for line in lines]
    return "\n".join(line.removeprefix(indentation) for line in body).strip("\n")


def _indentation(statement: ast.stmt, lines: list[str]) -> str:
    """The white space before a statement."""
    line = lines[statement.lineno - 1].lstrip("\f")
    return line[: len(line) - len(line.lstrip())]
