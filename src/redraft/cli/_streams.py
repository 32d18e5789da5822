"""Prepare the standard streams: open, and able to encode any text."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

STDOUT = "standard output"


def prepare() -> None:
    """Open streams that the caller closed, and escape characters that their encodings lack.

    With `>&-` Python has no `sys.stdout`, and the next file to be opened would get its
    descriptor. On a terminal whose encoding is not UTF-8, `→` is printed as `\\u2192`.
    """
    _open_descriptors()
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = sys.stdout or _writer(1)
    sys.stderr = sys.stderr or _writer(2)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _writer(descriptor: int) -> io.TextIOWrapper:
    # closefd=False: the last print must not fail on a closed descriptor
    return open(descriptor, "w", encoding="utf-8", closefd=False)


def _open_descriptors() -> None:
    """Open the null device for each of the descriptors 0, 1 and 2 that is closed."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)


@contextmanager
def naming_stdout() -> Iterator[None]:
    """Set the filename of errors raised in this block to stdout."""
    try:
        yield
    except OSError as error:
        error.filename = STDOUT
        raise


def is_reader_gone(error: BaseException) -> bool:
    """Return True if the reader of stdout closed the pipe, as `head` does."""
    return isinstance(error, BrokenPipeError) and error.filename == STDOUT


def finish_stdout() -> OSError | None:
    """Flush stdout and return the error, if any."""
    try:
        with naming_stdout():
            _flush(sys.stdout)
    except OSError as error:
        return error
    return None


def finish_stderr() -> None:
    """Flush stderr, ignoring errors."""
    with suppress(OSError):
        _flush(sys.stderr)


def _flush(stream: TextIO) -> None:
    """Flush `stream`; on failure redirect it to null, or Python would exit with code 120."""
    try:
        stream.flush()
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
        raise
