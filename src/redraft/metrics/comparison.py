"""Compare systems on the same questions: figures, paired intervals, and a recommendation."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from redraft.errors import PairsError
from redraft.metrics.bleu import bleu_yin
from redraft.metrics.bootstrap import Interval, mean_interval
from redraft.metrics.exact_match import is_same_output
from redraft.text.html import emphasized_html, table_html
from redraft.types import Example


@dataclass(frozen=True)
class Answered:
    """The answer of a system to one question, with its time and requests."""

    output: str | None
    seconds: float
    requests: int = 0
    tokens: int = 0


@dataclass(frozen=True)
class SystemResult:
    """The answers of a system to `examples`; `price` is that of a million tokens."""

    name: str
    examples: Sequence[Example]
    answers: Sequence[Answered]
    is_trained: bool = False
    fit_seconds: float = 0.0
    price: float | None = None

    @cached_property
    def exact(self) -> list[float]:
        """100 for each answer that is right up to case, white space and a final semicolon."""
        return [
            100.0 * (answer.output is not None and is_same_output(answer.output, example.y))
            for example, answer in zip(self.examples, self.answers, strict=True)
        ]

    @cached_property
    def similarity(self) -> list[float]:
        """The sentence BLEU of each answer, from 0 to 100."""
        return [
            100.0 * bleu_yin(example.y, answer.output)
            for example, answer in zip(self.examples, self.answers, strict=True)
        ]

    @property
    def seconds(self) -> float:
        """The mean time of an answer."""
        return float(np.mean([answer.seconds for answer in self.answers]))

    @property
    def requests(self) -> float:
        """The mean number of requests to a language model."""
        return float(np.mean([answer.requests for answer in self.answers]))

    @property
    def cost(self) -> float | None:
        """The mean price of an answer; None without a price, or without requests."""
        if self.price is None or not self.requests:
            return None
        return self.price * float(np.mean([answer.tokens for answer in self.answers])) / 1e6


@dataclass(frozen=True)
class SystemComparison:
    """The results of several systems on the same questions."""

    systems: Sequence[SystemResult]

    def __post_init__(self) -> None:
        if not self.systems or not self.systems[0].answers:
            raise PairsError("nothing to compare; ask at least one question")

    @property
    def n(self) -> int:
        """The number of questions."""
        return len(self.systems[0].answers)

    @property
    def measure(self) -> str:
        """The metric that ranks the systems: exact, or similarity if no answer is exact."""
        return "exact" if any(any(system.exact) for system in self.systems) else "similarity"

    @cached_property
    def best(self) -> SystemResult:
        """The system with the highest measure; of equal ones the cheapest."""
        return min(
            self.systems, key=lambda one: (-_mean(self._values(one)), *_needs(one), one.seconds)
        )

    def behind(self, system: SystemResult) -> tuple[float, Interval]:
        """Return how far a system is behind the best one, with its paired 95 % interval."""
        paired = np.array(self._values(self.best)) - np.array(self._values(system))
        return float(paired.mean()), mean_interval(paired)

    @cached_property
    def recommended(self) -> SystemResult:
        """The cheapest of the systems that are not measurably behind the best one."""
        level = [one for one in self.systems if one is self.best or self.behind(one)[1][0] <= 0]
        return min(level, key=lambda one: (*_needs(one), -_mean(self._values(one)), one.seconds))

    @property
    def recommendation(self) -> str:
        """One sentence that follows from the figures."""
        chosen, best = self.recommended, self.best
        share = _mean(self._values(chosen))
        figure = (
            f"right on {share:.0f} % of {self.n:,} held-out questions"
            if self.measure == "exact"
            else f"{share:.0f} % similar on {self.n:,} held-out questions, where nothing is right"
        )
        sentence = f"Use {chosen.name}: {figure}"
        others = [system for system in self.systems if system is not chosen]
        if chosen is not best:
            points, (low, high) = self.behind(chosen)
            return (
                f"{sentence}; {best.name} is ahead by {points:.1f} points, which may be chance "
                f"({low:.1f} to {high:.1f}), and needs more."
            )
        if not others:
            return f"{sentence}."
        second = max(others, key=lambda system: _mean(self._values(system)))
        points, (low, high) = self.behind(second)
        if points == 0:
            return f"{sentence}, as {second.name} is."
        return (
            f"{sentence}, {points:.1f} points ({low:.1f} to {high:.1f}) ahead of {second.name}, "
            "the next best."
        )

    def to_json(self) -> dict[str, Any]:
        """Return all figures as one JSON object."""
        return {
            "n": self.n,
            "measure": self.measure,
            "recommended": self.recommended.name,
            "recommendation": self.recommendation,
            "systems": [self._row(system) for system in self.systems],
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one JSON object per question: the pair, and the answer of each system."""
        return [
            {
                **example.to_json(),
                "answers": {system.name: system.answers[i].output for system in self.systems},
                "right": [system.name for system in self.systems if system.exact[i]],
            }
            for i, example in enumerate(self.systems[0].examples)
        ]

    def _repr_html_(self) -> str:
        """Return the recommendation and the figures of every system for a notebook."""
        header = ("system", "right, %", "similar, %", "behind the best, points", "s", "requests")
        rows = [
            (
                row["system"],
                f"{row['exact']:.1f}",
                f"{row['similarity']:.1f}",
                "–"
                if system is self.best
                else "{:.1f} ({:.1f} to {:.1f})".format(row["behind"], *row["behind_interval"]),
                f"{row['seconds']:.3f}",
                f"{row['requests']:.1f}",
            )
            for system, row in ((system, self._row(system)) for system in self.systems)
        ]
        return emphasized_html(self.recommendation) + table_html(header, rows)

    def _row(self, system: SystemResult) -> dict[str, Any]:
        points, interval = self.behind(system)
        row = {
            "system": system.name,
            "exact": round(_mean(system.exact), 2),
            "exact_interval": [round(end, 2) for end in mean_interval(system.exact)],
            "similarity": round(_mean(system.similarity), 2),
            "behind": round(points, 2),
            "behind_interval": [round(end, 2) for end in interval],
            "seconds": round(system.seconds, 4),
            "requests": round(system.requests, 2),
            "fit_seconds": round(system.fit_seconds, 1),
        }
        return row | ({} if system.cost is None else {"cost": round(system.cost, 6)})

    def _values(self, system: SystemResult) -> list[float]:
        return system.exact if self.measure == "exact" else system.similarity


def first_answers(systems: Sequence[SystemResult], n: int) -> list[SystemResult]:
    """Return the systems with their answers to the first `n` questions only."""
    return [
        replace(system, examples=system.examples[:n], answers=system.answers[:n])
        for system in systems
    ]


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _needs(system: SystemResult) -> tuple[bool, bool]:
    """Return what a system needs, for comparison: a language model, and training."""
    return system.requests > 0, system.is_trained
