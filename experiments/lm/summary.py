"""Result rows from answers: words under teacher forcing, and suggestions at cursors."""

from collections.abc import Callable, Sequence

import numpy as np

from experiments.completion.measurement import LONG
from experiments.completion.projects import is_right
from experiments.lib.intervals import mean_interval, paired_interval
from experiments.lib.results import ALL_SEEDS, Row
from experiments.lib.tables import Table
from experiments.lm.collection import CursorAnswer, ForcedAnswer
from experiments.lm.mixture import copied_of, generated_of
from redraft.completion.mixing import SuggestionMixture
from redraft.metrics.calibration import Calibration
from redraft.metrics.completion import completion_lengths
from redraft.types import Completion

WORDS = {"accuracy": "next word %", "average": "average completion", "longest": "longest"}
RIGHT = {
    "right": "right, 10 characters or more, %",
    "characters": "right characters per cursor",
    "shown": "shown %",
    "precision": "right of what is shown %",
    "calibration": "calibration error, points",
    "chance": "of perfect probabilities",
}
TIMES = {"first_s": "first in a function, median s", "next_s": "next, median s", "p90_s": "90 % s"}

ALL_WORDS, CURSORS, SECONDS = "all words", "cursors", "seconds"
"""The settings of the rows."""

TABLES = {
    "language model, words": Table(WORDS, lambda row: row.setting == ALL_WORDS),
    "language model, cursors": Table(RIGHT, lambda row: row.setting == CURSORS),
    "language model, times": Table(TIMES, lambda row: row.setting == SECONDS),
}
"""By their names in the page."""

LIMITS = (0.5, 1.0, 2.0, 5.0)
"""Seconds after which a suggestion comes too late."""

OURS, MIXED = "redraft", "mixed"


def forced_rows(answers: Sequence[ForcedAnswer], split: str, seed: int) -> list[Row]:
    """Return a row for each number of retrieved functions, and the ratios to none.

    Only functions that were asked with all numbers are compared.
    """
    by_shots: dict[int, dict[str, ForcedAnswer]] = {}
    for answer in answers:
        by_shots.setdefault(answer.shots, {})[f"{answer.package} {answer.function}"] = answer
    rows: list[Row] = []
    shared = sorted(set.intersection(*map(set, by_shots.values()))) if by_shots else []
    for shots, own in sorted(by_shots.items()):
        values = [_word_metrics(own[name]) for name in shared]
        packages = [own[name].package for name in shared]
        rows.append(_forced_row(shots, values, packages, split, seed))
        if shots and 0 in by_shots:
            alone = [_word_metrics(by_shots[0][name]) for name in shared]
            rows.append(_lead(shots, values, alone, packages, split))
    return rows


def _word_metrics(answer: ForcedAnswer) -> dict[str, float]:
    hits = np.asarray(answer.hits, np.bool_)
    lengths = completion_lengths(hits)
    return {
        "accuracy": 100 * float(hits.mean()),
        "average": float(lengths.mean()),
        "longest": float(lengths.max(initial=0)),
    }


def _name(shots: int) -> str:
    if not shots:
        return "SmolLM2 alone"
    return f"SmolLM2, {shots} functions" if shots > 1 else "SmolLM2, 1 function"


def _forced_row(
    shots: int, values: Sequence[dict[str, float]], packages: Sequence[str], split: str, seed: int
) -> Row:
    columns = {name: [value[name] for value in values] for name in WORDS}
    return Row(
        _name(shots),
        ALL_WORDS,
        split,
        seed,
        len(values),
        {name: round(float(np.mean(column)), 2) for name, column in columns.items()},
        {
            name: _interval(mean_interval(column, clusters=packages))
            for name, column in columns.items()
        },
    )


def _lead(
    shots: int,
    values: Sequence[dict[str, float]],
    alone: Sequence[dict[str, float]],
    packages: Sequence[str],
    split: str,
) -> Row:
    metrics, intervals = {}, {}
    for name in WORDS:
        own, other = [value[name] for value in values], [value[name] for value in alone]
        metrics[name] = round(float(np.mean(own) - np.mean(other)), 2)
        intervals[name] = _interval(paired_interval(own, other, clusters=packages))
    return Row(
        _name(shots), ALL_WORDS, split, ALL_SEEDS, len(values), metrics, intervals,
        baseline=_name(0),
    )  # fmt: skip


Suggest = Callable[[CursorAnswer], Completion | None]


def cursor_rows(
    answers: Sequence[CursorAnswer], mixture: SuggestionMixture, split: str, seed: int
) -> list[Row]:
    """Return the rows of the product, the language model and both, over all cursors together."""
    by_place: dict[tuple[str, str, str], dict[bool, CursorAnswer]] = {}
    for answer in answers:
        place = (answer.package, answer.function, answer.cursor)
        by_place.setdefault(place, {})[bool(answer.shots)] = answer
    complete = [one for one in by_place.values() if len(one) == 2]  # the last may have been cut off
    shown, alone = [one[True] for one in complete], [one[False] for one in complete]

    def copied(answer: CursorAnswer) -> Completion | None:
        return next(iter(copied_of(answer)), None)

    def generated(answer: CursorAnswer) -> Completion | None:
        return next(iter(mixture.rank([], generated_of(answer))), None)

    def mixed_within(seconds: float) -> Suggest:
        def mixed(answer: CursorAnswer) -> Completion | None:
            ends = generated_of(answer) if answer.seconds <= seconds else []
            return next(iter(mixture.rank(copied_of(answer), ends)), None)

        return mixed

    systems: list[tuple[str, Suggest, Sequence[CursorAnswer]]] = [
        (OURS, copied, shown),
        (_name(0), generated, alone),
        (_name(shown[0].shots), generated, shown),
        *((f"{MIXED}, within {limit:g} s", mixed_within(limit), shown) for limit in LIMITS),
        (MIXED, mixed_within(float("inf")), shown),
    ]
    rows = [_cursor_row(*system, split, seed) for system in systems]
    for name, suggest, asked in systems[:3]:
        rows.append(_cursor_lead(systems[-1][1], shown, name, suggest, asked, split))
    return [*rows, *(_time_row(group, split, seed) for group in (alone, shown))]


def _hits(suggest: Suggest, answers: Sequence[CursorAnswer]) -> list[float]:
    return [100.0 * _is_hit(suggest(answer), answer) for answer in answers]


def _characters(suggest: Suggest, answers: Sequence[CursorAnswer]) -> list[float]:
    """Return the characters of each first suggestion that is right, 0 for the others."""
    firsts = [(suggest(answer), answer) for answer in answers]
    return [
        float(len(first.text.strip())) if first and is_right(first.text, answer.rest) else 0.0
        for first, answer in firsts
    ]


def _is_hit(first: Completion | None, answer: CursorAnswer) -> bool:
    return (
        first is not None and len(first.text.strip()) >= LONG and is_right(first.text, answer.rest)
    )


def _cursor_row(
    name: str, suggest: Suggest, answers: Sequence[CursorAnswer], split: str, seed: int
) -> Row:
    firsts = [(suggest(answer), answer) for answer in answers]
    shown = [(first, is_right(first.text, answer.rest)) for first, answer in firsts if first]
    right, characters = _hits(suggest, answers), _characters(suggest, answers)
    packages = [answer.package for answer in answers]
    outcomes = sorted((first.probability or 0.0, is_so) for first, is_so in shown)
    columns = np.asarray([one[0] for one in outcomes]), np.asarray([one[1] for one in outcomes])
    calibration = Calibration(*columns, len(outcomes))
    return Row(
        name,
        CURSORS,
        split,
        seed,
        len(answers),
        {
            "right": round(float(np.mean(right)), 2),
            "characters": round(float(np.mean(characters)), 2),
            "shown": round(100 * len(shown) / len(answers), 2),
            **(
                {
                    "precision": round(100 * calibration.share.rate, 2),
                    "calibration": round(100 * calibration.expected_error, 2),
                    "chance": round(100 * calibration.chance_error, 2),
                }
                if shown
                else {}
            ),
        },
        {
            "right": _interval(mean_interval(right, clusters=packages)),
            "characters": _interval(mean_interval(characters, clusters=packages)),
        },
    )


def _cursor_lead(
    mixed: Suggest,
    shown: Sequence[CursorAnswer],
    name: str,
    suggest: Suggest,
    answers: Sequence[CursorAnswer],
    split: str,
) -> Row:
    packages = [answer.package for answer in shown]
    metrics, intervals = {}, {}
    for metric, values in (("right", _hits), ("characters", _characters)):
        own, other = values(mixed, shown), values(suggest, answers)
        metrics[metric] = round(float(np.mean(own) - np.mean(other)), 2)
        intervals[metric] = _interval(paired_interval(own, other, clusters=packages))
    return Row(MIXED, CURSORS, split, ALL_SEEDS, len(shown), metrics, intervals, baseline=name)


def _time_row(answers: Sequence[CursorAnswer], split: str, seed: int) -> Row:
    first = [answer.seconds for answer in answers if answer.is_first]
    later = [answer.seconds for answer in answers if not answer.is_first]
    metrics = {
        "first_s": round(float(np.median(first)), 2),
        "next_s": round(float(np.median(later)), 2),
        "p90_s": round(float(np.percentile([*first, *later], 90)), 2),
    }
    return Row(_name(answers[0].shots), SECONDS, split, seed, len(answers), metrics)


def _interval(interval: tuple[float, float]) -> tuple[float, float]:
    return round(interval[0], 2), round(interval[1], 2)
