"""Whether a confidence of 90 % is right nine times out of ten, and what abstaining would gain.

Knows confidences and which answers are exactly right; knows no page and no drawing.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from redraft.evaluation.bootstrap import Interval
from redraft.evaluation.evaluation import Evaluation

MAX_BINS = 10
ANSWERS_A_BIN = 10
"""The fewest, unless there are fewer in all: less would not say how often they are right."""

_NORMAL = 1.959963984540054
"""How many standard deviations either side hold 95 %."""

_DRAWS = 200
_SEED = 2018


@dataclass(frozen=True)
class Share:
    """How many of some answers are exactly right."""

    right: int
    n: int

    @property
    def rate(self) -> float:
        """The share, 0 to 1."""
        return self.right / self.n

    @property
    def interval(self) -> Interval:
        """Wilson's 95 % interval of the share."""
        squared = _NORMAL**2
        middle = (self.right + squared / 2) / (self.n + squared)
        spread = self.rate * (1 - self.rate) * self.n + squared / 4
        half = _NORMAL * math.sqrt(spread) / (self.n + squared)
        # the share lies within; rounding must not put 0 or 1 beyond the ends
        low, high = min(self.rate, middle - half), max(self.rate, middle + half)
        return max(0.0, low), min(1.0, high)


@dataclass(frozen=True)
class Bin:
    """Answers of about the same confidence."""

    confidence: float
    share: Share


@dataclass(frozen=True)
class Abstention:
    """What is left when only answers of at least some confidence are given.

    The coverage is of all examples; the precision is the rate of the share.
    """

    threshold: float
    coverage: float
    share: Share


@dataclass(frozen=True, eq=False)
class Calibration:
    """The confidences of an evaluation, ascending, and which of these answers are right."""

    confidences: NDArray[np.float64]
    is_right: NDArray[np.bool_]
    examples: int

    @classmethod
    def of(cls, evaluation: Evaluation) -> "Calibration | None":
        """The calibration of the answers that have a confidence; none where no answer has."""
        known = [
            (answer.confidence, exact == 1)
            for answer, exact in zip(
                evaluation.answers, evaluation.scores.per_example["exact"], strict=True
            )
            if answer is not None and answer.confidence is not None
        ]
        if not known:
            return None
        confidences, is_right = (np.array(column) for column in zip(*known, strict=True))
        order = np.argsort(confidences, kind="stable")
        return cls(confidences[order], is_right[order], len(evaluation.examples))

    @property
    def n(self) -> int:
        """How many answers have a confidence."""
        return len(self.confidences)

    @property
    def share(self) -> Share:
        """How many of them all are right."""
        return Share(int(self.is_right.sum()), self.n)

    @cached_property
    def bins(self) -> tuple[Bin, ...]:
        """At most ten bins of about as many answers each; equal confidences share one."""
        ends = [*self._starts[1:], self.n]
        return tuple(
            Bin(
                float(self.confidences[start:end].mean()),
                Share(int(self.is_right[start:end].sum()), end - start),
            )
            for start, end in zip(self._starts, ends, strict=True)
        )

    @property
    def expected_error(self) -> float:
        """By how much confidence and share of right answers differ, as a mean over the bins."""
        return self._error(self.is_right)

    @cached_property
    def chance_error(self) -> float:
        """The same error, had each answer been right with the chance that its confidence says."""
        generator = np.random.default_rng(_SEED)
        draws = (generator.random(self.n) < self.confidences for _ in range(_DRAWS))
        return float(np.mean([self._error(drawn) for drawn in draws]))

    @property
    def brier(self) -> float:
        """The mean squared difference of confidence and truth."""
        return float(((self.confidences - self.is_right) ** 2).mean())

    @property
    def brier_of_rate(self) -> float:
        """The Brier score of giving every answer the share of right ones as its confidence."""
        return self.share.rate * (1 - self.share.rate)

    @cached_property
    def curve(self) -> tuple[Abstention, ...]:
        """Precision and coverage at every threshold that makes a difference, ascending."""
        thresholds, starts = np.unique(self.confidences, return_index=True)
        right = np.cumsum(self.is_right[::-1])[::-1]
        return tuple(
            Abstention(threshold, (self.n - at) / self.examples, Share(int(right[at]), self.n - at))
            for threshold, at in zip(thresholds.tolist(), starts.tolist(), strict=True)
        )

    def at(self, threshold: float) -> Abstention | None:
        """What is left at a threshold; none where no answer reaches it."""
        at = int(np.searchsorted(self.confidences, threshold, side="left"))
        left = self.n - at
        share = Share(int(self.is_right[at:].sum()), left)
        return Abstention(threshold, left / self.examples, share) if left else None

    @cached_property
    def _starts(self) -> list[int]:
        """Where each bin begins."""
        wanted = max(1, min(MAX_BINS, self.n // ANSWERS_A_BIN))
        starts = [0]
        for number in range(1, wanted):
            last = self.confidences[round(number * self.n / wanted) - 1]
            start = int(np.searchsorted(self.confidences, last, side="right"))
            # ties may have eaten up what a bin would have held
            if min(start - starts[-1], self.n - start) >= ANSWERS_A_BIN:
                starts.append(start)
        return starts

    def _error(self, is_right: NDArray[np.bool_]) -> float:
        gaps = np.add.reduceat(self.confidences - is_right, self._starts)
        return float(np.abs(gaps).sum() / self.n)
