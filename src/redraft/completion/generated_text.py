"""The generated continuation of a cursor: where a suggestion may end, and when to stop."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from redraft.completion.continuations import MAX_LINES, MIN_WIDTH
from redraft.completion.lm_prompt import CursorText
from redraft.lm.stream import LmPiece

MAX_TOKENS = 64
"""Tokens to generate at most."""

LEAST_LOG_PROB = math.log(0.02)
"""A generation stops when it is less probable, since nothing more will be shown of it."""

LEAST_LINE_LOG_PROB = math.log(0.3)
"""A generation stops at the end of a line when it is less probable."""

UNKNOWN = math.log(0.8)
"""Of a token whose probability the endpoint does not give."""


@dataclass(frozen=True)
class GeneratedEnd:
    """A beginning of a generation that may be suggested, with the probability of its tokens."""

    text: str
    log_prob: float
    least: float  # log-probability of the least probable token
    tokens: int
    ends_line: bool

    @property
    def width(self) -> int:
        """The number of characters without white space around."""
        return len(self.text.strip())


def generated_ends(cursor: CursorText, pieces: Sequence[LmPiece]) -> list[GeneratedEnd]:
    """Return the beginnings of a generation that end with a word, shortest first."""
    whole = "".join(piece.text for piece in pieces)
    ends: list[GeneratedEnd] = []
    size, log_prob, least = 0, 0.0, 0.0
    for count, piece in enumerate(pieces, start=1):
        size += len(piece.text)
        value = UNKNOWN if piece.log_prob is None else piece.log_prob
        log_prob, least = log_prob + value, min(least, value)
        if size < len(whole) and _splits_word(whole, size):
            continue
        text = cursor.continuation(whole[:size])
        if text is None:
            return ends
        text = text.rstrip()
        if not text or (ends and len(text) <= len(ends[-1].text)):
            continue  # white space, or a line outside of the function
        ends_line = whole[:size].endswith("\n") or whole[size : size + 1] == "\n"
        if text.count("\n") < MAX_LINES:
            ends.append(GeneratedEnd(text, log_prob, least, count, ends_line))
    return ends


def is_enough(pieces: Sequence[LmPiece]) -> bool:
    """Return True if a generation needs not go on."""
    text = "".join(piece.text for piece in pieces)
    log_prob = sum(UNKNOWN if piece.log_prob is None else piece.log_prob for piece in pieces)
    written = text.lstrip()
    if len(written) >= MIN_WIDTH and log_prob < LEAST_LOG_PROB:
        return True
    lines = written.count("\n")
    is_unlikely = log_prob < LEAST_LINE_LOG_PROB and len(written) >= MIN_WIDTH
    return bool(lines) and (lines >= MAX_LINES or is_unlikely)


def _splits_word(text: str, size: int) -> bool:
    """Return True if `size` is within a word."""
    return all(one.isalnum() or one == "_" for one in text[size - 1 : size + 1])
