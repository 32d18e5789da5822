"""Cooperative cancellation of long computations.

The caller sets a condition with `cancelled_when`; long loops poll it with `check_cancelled`. The
code between them needs no argument for it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_is_unwanted: ContextVar[Callable[[], bool]] = ContextVar("is_unwanted", default=lambda: False)


class NoLongerWantedError(Exception):
    """A computation was cancelled because its result is no longer needed."""


@contextmanager
def cancelled_when(is_unwanted: Callable[[], bool]) -> Iterator[None]:
    """Cancel the computations within the block as soon as `is_unwanted()` returns True."""
    token = _is_unwanted.set(is_unwanted)
    try:
        yield
    finally:
        _is_unwanted.reset(token)


def check_cancelled() -> None:
    """Raise `NoLongerWantedError` if the current computation was cancelled."""
    if _is_unwanted.get()():
        raise NoLongerWantedError
