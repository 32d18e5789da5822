"""Result rows from answers: right suggestions, what is shown, its precision, latency."""

from collections.abc import Sequence

import numpy as np

from experiments.completion.measurement import Answer
from experiments.completion.typing import TypedFunction
from experiments.lib.intervals import mean_interval, paired_interval
from experiments.lib.results import ALL_SEEDS, Row
from experiments.lib.tables import Table

LIMITS = (50, 150, 300)
"""Milliseconds after which a suggestion is late."""

METRICS = {
    "right": "right, 10 characters or more, %",
    "line": "line exact %",
    "line_similarity": "line similarity %",
    "shown": "shown %",
    "precision": "right of what is shown %",
}

TYPING = {
    "keys_saved": "keys saved %",
    "avg_1": "avg 1",
    "avg_5": "avg 5",
    "avg_10": "avg 10",
    "longest_1": "longest 1",
    "longest_10": "longest 10",
}

TABLES = {"completion": Table(METRICS)}
"""By their names in the page."""


def rows_of(answers: Sequence[Answer], split: str, seed: int, *, variant: str = "") -> list[Row]:
    """Return a row for each system and cursor, and the paired lead of the product."""
    rows: list[Row] = []
    systems = list(dict.fromkeys(answer.system for answer in answers))
    for cursor in dict.fromkeys(answer.cursor for answer in answers):
        right: dict[str, list[float]] = {}
        packages: list[str] = []
        for system in systems:
            chosen = [a for a in answers if a.cursor == cursor and a.system == system]
            packages = [answer.package for answer in chosen]
            right[system] = [100.0 * (answer.is_right and answer.is_long) for answer in chosen]
            rows.append(
                Row(
                    system,
                    cursor,
                    split,
                    seed,
                    len(chosen),
                    _metrics(chosen, right[system]),
                    {"right": _rounded(mean_interval(right[system], clusters=packages))},
                    variant=variant,
                )
            )
        first, *others = systems
        for other in others:
            interval = paired_interval(right[first], right[other], clusters=packages)
            lead = float(np.mean(right[first]) - np.mean(right[other]))
            rows.append(
                Row(
                    first,
                    cursor,
                    split,
                    ALL_SEEDS,
                    len(packages),
                    {"right": round(lead, 2)},
                    {"right": _rounded(interval)},
                    baseline=other,
                    variant=variant,
                    baseline_variant=variant,
                )
            )
    return rows


def typing_rows(functions: Sequence[TypedFunction], split: str, seed: int) -> list[Row]:
    """Return a row for each system, and the paired lead of the product in keys saved."""
    rows: list[Row] = []
    systems = list(dict.fromkeys(one.system for one in functions))
    saved: dict[str, list[float]] = {}
    packages: list[str] = []
    for system in systems:
        own = [one for one in functions if one.system == system]
        packages = [one.package for one in own]
        saved[system] = [one.keys_saved for one in own]
        names = own[0].lengths
        columns = {name: [one.lengths[name] for one in own] for name in names if name in TYPING}
        columns = {"keys_saved": saved[system], **columns}
        rows.append(
            Row(
                system,
                "typed",
                split,
                seed,
                len(own),
                {name: round(float(np.mean(values)), 2) for name, values in columns.items()},
                {
                    name: _rounded(mean_interval(values, clusters=packages))
                    for name, values in columns.items()
                },
            )
        )
    first, *others = systems
    for other in others:
        lead = float(np.mean(saved[first]) - np.mean(saved[other]))
        interval = paired_interval(saved[first], saved[other], clusters=packages)
        rows.append(
            Row(
                first,
                "typed",
                split,
                ALL_SEEDS,
                len(packages),
                {"keys_saved": round(lead, 2)},
                {"keys_saved": _rounded(interval)},
                baseline=other,
            )
        )
    return rows


def _metrics(answers: Sequence[Answer], right: Sequence[float]) -> dict[str, float]:
    shown = [answer for answer in answers if answer.text.strip()]
    times = [answer.milliseconds for answer in answers]
    in_time = {
        f"right_{limit}": round(float(np.mean(np.where(np.asarray(times) <= limit, right, 0.0))), 2)
        for limit in LIMITS
    }
    return {
        "right": round(float(np.mean(right)), 2),
        **in_time,
        "line": round(100 * float(np.mean([answer.is_line for answer in answers])), 2),
        "line_similarity": round(float(np.mean([a.line_similarity for a in answers])), 2),
        "shown": round(100 * len(shown) / len(answers), 2),
        "precision": round(100 * float(np.mean([a.is_right for a in shown])) if shown else 0.0, 2),
        "median_ms": round(float(np.median(times)), 1),
        "p99_ms": round(float(np.percentile(times, 99)), 1),
    }


def _rounded(interval: tuple[float, float]) -> tuple[float, float]:
    return round(interval[0], 2), round(interval[1], 2)


def summary(answers: Sequence[Answer], cursors: Sequence[str]) -> str:
    """Return a few lines for the terminal."""
    lines = []
    for system in dict.fromkeys(answer.system for answer in answers):
        own = [answer for answer in answers if answer.system == system]
        shown = [answer for answer in own if answer.text.strip()]
        cells = [
            f"{cursor} {_share([a.is_right and a.is_long for a in own if a.cursor == cursor]):.1f}"
            for cursor in cursors
        ]
        false = sum(answer.is_false_source for answer in shown)
        precision = _share([answer.is_right for answer in shown])
        lines.append(
            f"{system}: {', '.join(cells)}; precision {precision:.1f}, {false} false sources of "
            f"{sum(answer.has_source for answer in shown)}"
        )
    return "\n".join(lines)


def _share(values: Sequence[bool]) -> float:
    return 100 * sum(values) / max(1, len(values))
