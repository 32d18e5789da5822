"""Extract examples from Python sources: input is docstring, name and arguments, output the body.

Parses sources with `ast`; never runs or imports them.
"""

import ast
import io
import os
import sysconfig
import tokenize
import warnings
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from pathlib import Path

from redraft.data.rows import BadRow
from redraft.errors import PairsError
from redraft.types import Example, Input

MAX_FILE_BYTES = 2 << 20
"""Larger sources are data tables or generated code; they are reported and skipped."""

SKIPPED_FOLDERS = frozenset({"__pycache__", "site-packages", "node_modules", "venv", ".venv"})

TEST_FOLDERS = ("test", "tests", "testing", "_vendor", "idlelib", "lib2to3")
"""Folders of the standard library and of installed packages that hold tests, tools and copies."""

RULES = 1
"""Version of the mining rules; increase it with every change: older bulk jobs are not resumed."""

FIELDS = ("docstring", "name", "arguments")
"""Fields of the input of a mined function."""

Function = ast.FunctionDef | ast.AsyncFunctionDef

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
"""Attributes of syntax tree nodes that hold statements, directly or nested."""


@dataclass(frozen=True)
class Source:
    """A Python file, with the name of its top-level package or module."""

    path: Path
    package: str
    name: str


def find_sources(
    paths: Iterable[Path], *, without: Iterable[str] = (), suffixes: tuple[str, ...] = (".py",)
) -> list[Source]:
    """Return every file under `paths` with one of the suffixes, in order.

    Skips folders named in `without`.

    Symbolic links out of a folder are not followed: an untrusted project could otherwise expose
    any file of this machine.
    """
    skipped = SKIPPED_FOLDERS | set(without)
    sources = []
    for path in paths:
        if not path.exists():
            raise PairsError(f"{path}: no such file or folder; name sources to mine")
        if path.is_file():
            sources.append(Source(path, _text(path.stem), _text(path.name)))
            continue
        root = path.resolve()
        for file in sorted(_files(path, suffixes, skipped)):
            inside = file.relative_to(path)
            folders = inside.parts[:-1]
            if file.is_file() and _is_within(file, root):
                package = folders[0] if folders else inside.stem
                sources.append(Source(file, _text(package), _text(inside.as_posix())))
    return sources


def _files(root: Path, suffixes: tuple[str, ...], skipped: Set[str]) -> Iterator[Path]:
    """Yield the files with one of the suffixes; hidden and skipped folders are not entered."""
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in skipped and name[0] != "."]
        yield from (Path(folder, name) for name in names if name.endswith(suffixes))


def standard_library() -> list[Source]:
    """Return the source files of this Python's standard library, without its tests."""
    return find_sources([Path(sysconfig.get_paths()["stdlib"])], without=TEST_FOLDERS)


def _is_within(file: Path, root: Path) -> bool:
    try:
        return file.resolve(strict=True).is_relative_to(root)
    except (OSError, RuntimeError):  # a link to itself
        return False


def _text(name: str) -> str:
    """Return a file name as text, with bytes that are not UTF-8 escaped."""
    return os.fsencode(name).decode(errors="backslashreplace")


def mine(source: Source, *, documented_only: bool = True) -> list[Example] | BadRow:
    """Return the documented functions of a file (or all), in order; BadRow if it is unreadable."""
    content = read_content(source)
    if isinstance(content, BadRow):
        return content
    return mine_content(
        content, name=source.name, package=source.package, documented_only=documented_only
    )


def read_content(source: Source) -> bytes | BadRow:
    """Return the bytes of a file, at most one more than allowed; BadRow if it is unreadable."""
    try:
        with source.path.open("rb") as stream:
            return stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        return BadRow(source.name, 1, f"cannot be read: {error.strerror}")


def mine_content(
    content: bytes | str, *, name: str, package: str, documented_only: bool = True
) -> list[Example] | BadRow:
    """Return the functions of a source given as bytes or text; BadRow if it cannot be parsed."""
    if len(content) > MAX_FILE_BYTES:
        return BadRow(name, 1, f"larger than {MAX_FILE_BYTES:,} bytes")
    try:
        functions = _functions(text := decoded(content), documented_only=documented_only)
        return list(_examples(functions, text, name=name, package=package))
    except UnicodeDecodeError as error:
        return BadRow(name, 1, f"not {error.encoding}")
    except SyntaxError as error:
        return BadRow(name, error.lineno or 1, f"not Python 3: {error.msg}")
    except (ValueError, LookupError, RecursionError, MemoryError) as error:
        return BadRow(name, 1, f"not Python 3: {error or type(error).__name__}")


def decoded(content: bytes | str) -> str:
    """Decode a source by its declared encoding, with line ends normalised to newlines."""
    if isinstance(content, str):  # decoded already, whatever it declares
        return normalised(content)
    encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
    return io.TextIOWrapper(io.BytesIO(content), encoding).read()


def normalised(text: str) -> str:
    """Return a source without byte order mark and lone surrogates, its line ends as newlines."""
    text = without_surrogates(text.removeprefix("\ufeff"))
    return io.StringIO(text, newline=None).read()


def without_surrogates(text: str) -> str:
    """Return the text with lone surrogates, which an escape can produce, replaced by `?`."""
    return text.encode(errors="replace").decode()


def parse_quietly(text: str) -> ast.Module:
    """Parse a source, ignoring warnings about it, such as of "\\d" in a plain string."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def _functions(text: str, *, documented_only: bool) -> list[Function]:
    """Return the functions and methods, sorted by line."""
    functions: list[Function] = []
    waiting: list[ast.AST] = [parse_quietly(text)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Function) and (_docstring(node) or not documented_only):
            functions.append(node)
        for block in _BLOCKS:  # definitions are statements, never part of an expression
            waiting.extend(getattr(node, block, ()))
    return sorted(functions, key=lambda node: node.lineno)


def _examples(
    functions: Iterable[Function], text: str, *, name: str, package: str
) -> Iterator[Example]:
    """Yield an example for each function that has a body besides its docstring."""
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
    """Return the cleaned docstring, or an empty text."""
    return without_surrogates(ast.get_docstring(node) or "")


def body_after_docstring(node: Function, lines: list[str]) -> str:
    """Return the source of the body without docstring and indentation; may be empty."""
    docstring, *statements = node.body
    if not statements or statements[0].lineno <= (docstring.end_lineno or docstring.lineno):
        return ""
    return _dedented(
        lines[docstring.end_lineno : node.end_lineno], _indentation(statements[0], lines)
    )


def whole_body(node: Function, lines: list[str]) -> str:
    """Return the body of a function without docstring; empty if it is on the header's line."""
    first = node.body[0]
    decorators = getattr(first, "decorator_list", [])
    start = min(node.lineno for node in (first, *decorators))
    indentation = _indentation(first, lines)
    if len(indentation.encode()) < first.col_offset:
        return ""
    return _dedented(lines[start - 1 : node.end_lineno], indentation)


def as_source(x: Input, body: str) -> str:
    """Return the source code of a mined function with the given `body`, possibly a prefix."""
    docstring = x["docstring"].replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    header = f"def {x['name']}({x['arguments']}):"
    return f'{header}\n"""{docstring}\n"""\n{body}'.replace("\n", "\n    ")


def _dedented(lines: Iterable[str], indentation: str) -> str:
    # a form feed is a page break, not part of the indentation
    body = [line.lstrip("\f") for line in lines]
    return "\n".join(line.removeprefix(indentation) for line in body).strip("\n")


def _indentation(statement: ast.stmt, lines: list[str]) -> str:
    """Return the white space before a statement."""
    line = lines[statement.lineno - 1].lstrip("\f")
    return line[: len(line) - len(line.lstrip())]
