"""Format errors as one line: user errors, and system errors such as a full disk.

Every command is a `Verb`, which records its output path for errors that do not name it.
"""

import errno
import os
import re
from typing import Any

from typer.core import TyperCommand

from redraft.cli._streams import naming_stdout
from redraft.config.ranges import shorten

LONGEST = 1_000
LONGEST_PATH = 200

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_OUTPUT = "redraft.written"
_OS_ERROR = re.compile(r"\(os error (\d+)\)")
"""The format of system errors in libraries written in Rust, such as safetensors."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_WRITTEN, _USED, _REACHED = "cannot be written", "cannot be used", "cannot be read or written"
_SYSTEM = {
    errno.ENOSPC: (_WRITTEN, "free some space and try again"),
    errno.EDQUOT: (_WRITTEN, "free some space and try again"),
    errno.EFBIG: (_WRITTEN, "raise the limit on file sizes with `ulimit -f`"),
    errno.EROFS: (_WRITTEN, "name a folder that can be written to"),
    errno.EACCES: (_REACHED, "check its owner and permissions"),
    errno.EPERM: (_REACHED, "check its owner and permissions"),
    errno.EIO: (_REACHED, "check the disk"),
    errno.EMFILE: (_USED, "raise the limit on open files with `ulimit -n`"),
    errno.ENFILE: (_USED, "close other programs"),
    errno.ENAMETOOLONG: (_USED, "choose a shorter name"),
}


def describe(error: BaseException, *, written: str | None = None) -> str | None:
    """Return a one-line description of a system error, or None for any other error.

    `written` names the output, for errors that do not: a full disk shows only when a file is
    flushed, without the file's name.
    """
    if isinstance(error, MemoryError) or _is_allocation(error):
        return "not enough memory; use fewer candidates, a smaller beam or a smaller batch"
    number = _system_number(error)
    if not isinstance(error, OSError) and number is None:
        return None
    path = getattr(error, "filename", None)
    path = written if path is None else os.fsdecode(path) if isinstance(path, bytes) else str(path)
    reason = os.strerror(number) if number else str(error) or type(error).__name__
    verb, advice = _SYSTEM.get(number or 0, (_USED, "check the path"))
    name = shorten(path, LONGEST_PATH) if path else "a file or connection"
    return one_line(f"{name}: {verb} ({reason}); {advice}")


def _is_allocation(error: BaseException) -> bool:
    """Return True if PyTorch failed to allocate a tensor; it raises a plain RuntimeError."""
    text = str(error)
    return isinstance(error, RuntimeError) and (
        "can't allocate memory" in text or "out of memory" in text
    )


def _system_number(error: BaseException) -> int | None:
    """Return the errno of a system error, including errors wrapped by a library."""
    if isinstance(error, OSError):
        return error.errno
    if not isinstance(error, Exception):
        return None
    text = str(error)
    if match := _OS_ERROR.search(text):
        return int(match[1])
    # FAISS raises RuntimeError for everything
    return next((number for number in _FULL if f"({os.strerror(number)})" in text), None)


def is_interrupt(error: BaseException | None) -> bool:
    """Return True if an error is Ctrl-C, or was caused by it.

    Extension modules that are interrupted during their import raise ImportError.
    """
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def one_line(text: str) -> str:
    """Return `text` as one line of at most LONGEST characters, control characters escaped."""
    joined = " ".join(text.splitlines())
    return shorten(escaped(joined), LONGEST)


def escaped(text: str) -> str:
    """Return `text` with control characters escaped, except tabs and newlines.

    Otherwise text from a file could send control sequences to the terminal.
    """
    return _CONTROLS.sub(lambda match: repr(match[0])[1:-1], text)


class Verb(TyperCommand):
    """A command that stores its output path, `--out` or the model, in its context."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        path = ctx.params.get("out") or ctx.params.get("model")
        ctx.meta[_OUTPUT] = None if path is None else str(path)
        return super().invoke(ctx)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help, for a narrow terminal as a list and not as a table."""
        from redraft.cli._console import stdout  # which imports this module
        from redraft.cli._help import WIDE, narrow_help

        console = stdout()
        if console.width >= WIDE:
            super().format_help(ctx, formatter)
        else:
            console.print(narrow_help(self, ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, or print the help: only that writes here, and to stdout."""
        with naming_stdout():
            rest: list[str] = super().parse_args(ctx, args)
        return rest


def written(ctx: Any) -> str | None:
    """Return the output path of the command run in `ctx`; None if it has not started."""
    path: str | None = ctx.meta.get(_OUTPUT)
    return path
