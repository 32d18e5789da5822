"""The events of a streamed completion: its text, log-probabilities and end."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class LmPiece:
    """The text of one event, mostly a token, and its log-probability if the endpoint gives one."""

    text: str
    log_prob: float | None


Enough = Callable[[Sequence[LmPiece]], bool]
"""Called with the pieces after each event; True ends the generation."""


@dataclass(frozen=True)
class LmAnswer:
    """A generated text, its log-probability if the endpoint gives one, and if it came to an end.

    `tokens` are those of prompt and text; 0 if the endpoint does not tell. `pieces` are the events,
    with the white space that `text` is stripped of.
    """

    text: str
    log_prob: float | None
    is_complete: bool
    tokens: int = 0
    pieces: tuple[LmPiece, ...] = field(default=(), compare=False)


class LmStream:
    """Collects the events of a completion, and cuts the text at a stop sequence."""

    def __init__(self, stop: Sequence[str], enough: Enough = lambda _: False) -> None:
        self.is_done = False
        self._stop, self._enough = stop, enough
        self._text = ""
        self._pieces: list[LmPiece] = []
        self._is_complete = False
        self._tokens = 0

    def add(self, event: Any, *, is_whole: bool) -> None:
        """Add an event; raise a LookupError or a TypeError if it is not one."""
        if "error" in event:
            raise LookupError("an error")
        self._tokens = int((event.get("usage") or {}).get("total_tokens") or self._tokens)
        choices = event["choices"]
        if not choices:
            return  # the usage, after the last token
        choice = choices[0]
        message = choice.get("delta" if not is_whole else "message") or {}
        text = choice.get("text") or message.get("content") or ""
        log_probs = _log_probs(choice.get("logprobs"))
        if text or log_probs:
            self._pieces.append(LmPiece(text, _total(log_probs)))
        self._text += text
        ends = [end for stop in self._stop if (end := self._text.lstrip().find(stop)) >= 0]
        if ends:
            self._text = self._text.lstrip()[: min(ends)]
        is_enough = bool(ends) or self._enough(self._pieces)
        if is_enough or is_whole or choice.get("finish_reason"):
            self.is_done = True
            self._is_complete = is_enough or choice.get("finish_reason") != "length"

    def finished(self) -> LmAnswer:
        """Return the text without white space around it."""
        known = [piece.log_prob for piece in self._pieces if piece.log_prob is not None]
        return LmAnswer(
            self._text.strip(),
            sum(known) if known else None,
            self._is_complete,
            self._tokens,
            tuple(self._pieces),
        )


def _total(log_probs: Sequence[float]) -> float | None:
    """Return the sum of log-probabilities, at most 0; None without any, or if it is not finite."""
    total = float(sum(log_probs))
    return min(total, 0.0) if log_probs and math.isfinite(total) else None


def _log_probs(logprobs: Any) -> list[float]:
    """Return the log-probabilities of an event, in the form of chats or of completions."""
    if not logprobs:
        return []
    if logprobs.get("content"):
        return [token["logprob"] for token in logprobs["content"]]
    return [value for value in logprobs.get("token_logprobs") or [] if value is not None]
