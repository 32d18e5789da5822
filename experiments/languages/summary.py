"""Result rows: suggested lines, contexts of cursors, and what an index costs."""

from collections.abc import Sequence

import numpy as np

from experiments.languages.contexts import ContextAnswer
from experiments.languages.lines import LineAnswer
from experiments.lib.intervals import mean_interval, paired_interval
from experiments.lib.results import ALL_SEEDS, Row
from experiments.lib.tables import Table

LINES = {
    "exact": "exact match %",
    "similarity": "edit similarity %",
    "begun": "begins right, 10 characters or more, %",
    "shown": "shown %",
    "precision": "exact or begun, of what is shown, %",
    "median_ms": "median CPU ms",
    "p99_ms": "99 % CPU ms",
}
CONTEXTS = {
    "right": "right %",
    "functions": "in a function %",
    "median_ms": "median CPU ms",
    "p99_ms": "99 % CPU ms",
}
COSTS = {
    "megabytes": "MB per 10,000 functions",
    "mining_seconds": "mining, CPU s per 10,000",
    "index_seconds": "indexing, CPU s per 10,000",
}
SYSTEMS = ("redraft", "n-gram cache")

TABLES = {
    "languages, lines": Table(LINES, lambda row: row.system in SYSTEMS),
    "languages, contexts": Table(CONTEXTS, lambda row: row.system == "context"),
    "languages, costs": Table(COSTS, lambda row: row.system == "index"),
}
"""By their names in the page."""


def line_rows(language: str, answers: Sequence[LineAnswer], split: str, seed: int) -> list[Row]:
    """Return a row for each system, and the paired lead of the product."""
    own = {name: [one for one in answers if one.system == name] for name in SYSTEMS}
    rows = []
    packages = [answer.package for answer in own[SYSTEMS[0]]]
    scores = {
        name: {
            "exact": [100.0 * one.is_exact for one in chosen],
            "similarity": [100 * one.similarity for one in chosen],
        }
        for name, chosen in own.items()
    }
    for name, chosen in own.items():
        shown = [one for one in chosen if one.text]
        right = [one.is_exact or one.is_begun_right for one in shown]
        metrics = {metric: _mean(values) for metric, values in scores[name].items()} | {
            "begun": _mean([100.0 * one.is_begun_right for one in chosen]),
            "shown": 100 * len(shown) / len(chosen),
            "precision": 100 * _mean(right),
            **_times([one.milliseconds for one in chosen]),
        }
        intervals = {
            metric: _rounded(mean_interval(values, clusters=packages))
            for metric, values in scores[name].items()
        }
        rows.append(Row(name, language, split, seed, len(chosen), _round(metrics), intervals))
    first, second = SYSTEMS
    pairs = {metric: (scores[first][metric], scores[second][metric]) for metric in scores[first]}
    lead = {metric: _mean(left) - _mean(right) for metric, (left, right) in pairs.items()}
    intervals = {
        metric: _rounded(paired_interval(left, right, clusters=packages))
        for metric, (left, right) in pairs.items()
    }
    count = len(own[first])
    row = Row(first, language, split, ALL_SEEDS, count, _round(lead), intervals, baseline=second)
    return [*rows, row]


def context_rows(
    language: str, answers: Sequence[ContextAnswer], split: str, seed: int
) -> list[Row]:
    """Return a row for whole files and one for those that end at the cursor."""
    rows = []
    for is_cut, label in ((False, "whole files"), (True, "cut files")):
        chosen = [answer for answer in answers if answer.is_cut == is_cut]
        metrics = {
            "right": _mean([100.0 * one.is_right for one in chosen]),
            "functions": _mean([100.0 * one.is_function for one in chosen]),
            **_times([one.milliseconds for one in chosen]),
        }
        setting = f"{language}, {label}"
        rows.append(Row("context", setting, split, seed, len(chosen), _round(metrics)))
    return rows


def _times(times: Sequence[float]) -> dict[str, float]:
    return {
        "median_ms": float(np.median(times)),
        "p99_ms": float(np.percentile(times, 99)),
    }


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else 0.0


def _round(metrics: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 2) for name, value in metrics.items()}


def _rounded(interval: tuple[float, float]) -> tuple[float, float]:
    return round(interval[0], 2), round(interval[1], 2)
