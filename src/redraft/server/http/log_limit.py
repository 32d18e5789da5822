"""Rate limit for log messages that clients can trigger: each a few times per minute."""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Sequence

MAX_RECORDS = 5
"""Records per line of code and period."""

PERIOD = 60.0
"""Seconds."""


class LogLimit(logging.Filter):
    """Passes at most `MAX_RECORDS` records per line of code and period."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._started: dict[tuple[str, int], float] = {}
        self._counts: dict[tuple[str, int], int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True if the record is logged; the last one says that more are suppressed."""
        line, now = (record.pathname, record.lineno), self._clock()
        if now - self._started.get(line, -PERIOD) >= PERIOD:
            self._started[line], self._counts[line] = now, 0
        self._counts[line] += 1
        if self._counts[line] == MAX_RECORDS:
            record.msg = f"{record.getMessage()} (further messages suppressed for a minute)"
            record.args = ()
        return self._counts[line] <= MAX_RECORDS


@contextlib.contextmanager
def limited_logs(names: Sequence[str]) -> Iterator[None]:
    """Limit the loggers with these names within the block."""
    limit = LogLimit()
    loggers = [logging.getLogger(name) for name in names]
    for logger in loggers:
        logger.addFilter(limit)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(limit)
