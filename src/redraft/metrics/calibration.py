"""Calibration of confidences: reliability bins, calibration error, Brier score and abstention.

Knows confidences and correctness; knows no HTML and no plots.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from redraft.metrics.bootstrap import Interval
from redraft.metrics.evaluation import Evaluation

MAX_BINS = 10
ANSWERS_A_BIN = 10
"""Minimum size of a bin, unless there are fewer answers in total."""

_NORMAL = 1.959963984540054
"""The 97.5 % quantile of the standard normal distribution."""

_DRAWS = 200
_SEED = 2018


@dataclass(frozen=True)
class Share:
    """The number of exactly right answers among `n`."""

    right: int
    n: int

    @property
    def rate(self) -> float:
        """The share, 0 to 1."""
        return self.right / self.n

    @property
    def interval(self) -> Interval:
        """The Wilson 95 % interval of the rate."""
        squared = _NORMAL**2
        middle = (self.right + squared / 2) / (self.n + squared)
        spread = self.rate * (1 - self.rate) * self.n + squared / 4
        half = _NORMAL * math.sqrt(spread) / (self.n + squared)
        # rounding must not exclude the rate itself at 0 or 1
        low, high = min(self.rate, middle - half), max(self.rate, middle + half)
        return max(0.0, low), min(1.0, high)


def answers_needed(precision: float) -> int:
    """Return how many answers, all right, show with 95 % certainty that `precision` is reached."""
    return math.ceil(math.log(0.05) / math.log(precision)) if 0 < precision < 1 else 1


@dataclass(frozen=True)
class Bin:
    """A bin of answers with similar confidences: their mean confidence and accuracy."""

    confidence: float
    share: Share


@dataclass(frozen=True)
class Abstention:
    """The effect of abstaining below a confidence threshold.

    `coverage` is the answered share of all examples; the rate of `share` is the precision.
    """

    threshold: float
    coverage: float
    share: Share


@dataclass(frozen=True, eq=False)
class Calibration:
    """The confidences of an evaluation, ascending, and the correctness of the answers."""

    confidences: NDArray[np.float64]
    is_right: NDArray[np.bool_]
    examples: int

    @classmethod
    def of(cls, evaluation: Evaluation) -> "Calibration | None":
        """Return the calibration of the answers with a confidence, or None if there are none."""
        outcomes = [
            (answer.confidence, exact == 1)
            for answer, exact in zip(
                evaluation.answers, evaluation.scores.per_example["exact"], strict=True
            )
            if answer is not None and answer.confidence is not None
        ]
        if not outcomes:
            return None
        confidences, is_right = (np.array(column) for column in zip(*outcomes, strict=True))
        order = np.argsort(confidences, kind="stable")
        return cls(confidences[order], is_right[order], len(evaluation.examples))

    @property
    def n(self) -> int:
        """The number of answers with a confidence."""
        return len(self.confidences)

    @property
    def share(self) -> Share:
        """The number of right answers among them."""
        return Share(int(self.is_right.sum()), self.n)

    @cached_property
    def bins(self) -> tuple[Bin, ...]:
        """At most ten bins of about equal size; equal confidences share a bin."""
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
        """The expected calibration error over the bins."""
        return self._error(self.is_right)

    @cached_property
    def chance_error(self) -> float:
        """The mean calibration error of perfectly calibrated confidences, by simulation."""
        generator = np.random.default_rng(_SEED)
        draws = (generator.random(self.n) < self.confidences for _ in range(_DRAWS))
        return float(np.mean([self._error(drawn) for drawn in draws]))

    @property
    def brier(self) -> float:
        """The Brier score: the mean squared difference of confidence and correctness."""
        return float(((self.confidences - self.is_right) ** 2).mean())

    @property
    def brier_of_rate(self) -> float:
        """The Brier score of a constant confidence equal to the accuracy."""
        return self.share.rate * (1 - self.share.rate)

    @cached_property
    def curve(self) -> tuple[Abstention, ...]:
        """Precision and coverage at every distinct threshold, ascending."""
        thresholds, starts = np.unique(self.confidences, return_index=True)
        right = np.cumsum(self.is_right[::-1])[::-1]
        return tuple(
            Abstention(
                threshold,
                (self.n - start) / self.examples,
                Share(int(right[start]), self.n - start),
            )
            for threshold, start in zip(thresholds.tolist(), starts.tolist(), strict=True)
        )

    def at(self, threshold: float) -> Abstention | None:
        """Return precision and coverage at `threshold`, or None if no answer reaches it."""
        start = int(np.searchsorted(self.confidences, threshold, side="left"))
        answered = self.n - start
        share = Share(int(self.is_right[start:].sum()), answered)
        return Abstention(threshold, answered / self.examples, share) if answered else None

    @cached_property
    def _starts(self) -> list[int]:
        """The first index of each bin."""
        wanted = max(1, min(MAX_BINS, self.n // ANSWERS_A_BIN))
        starts = [0]
        for number in range(1, wanted):
            last = self.confidences[round(number * self.n / wanted) - 1]
            start = int(np.searchsorted(self.confidences, last, side="right"))
            # ties can leave a bin too small
            if min(start - starts[-1], self.n - start) >= ANSWERS_A_BIN:
                starts.append(start)
        return starts

    def _error(self, is_right: NDArray[np.bool_]) -> float:
        gaps = np.add.reduceat(self.confidences - is_right, self._starts)
        return float(np.abs(gaps).sum() / self.n)
