"""`redraft compare` with a language model on pair sets: every system, the same questions."""

import random
from collections.abc import Sequence

import numpy as np

from experiments.lib.intervals import mean_interval, paired_interval
from experiments.lib.results import ALL_SEEDS, DECIMALS, Row
from experiments.lib.tables import Table
from experiments.public_pairs.sets import PairSet
from redraft.comparison import CompareOptions, compare
from redraft.editing.lm_editor import LmEditor
from redraft.lm.client import LmClient
from redraft.lm.settings import LmSettings

COMPARED = "compare, "
"""The beginning of the settings of the rows."""

ALL_SETS = f"{COMPARED}all sets"

SYSTEMS = {
    "nearest": "the nearest example",
    "substitution": "substitution",
    "untrained": "Redraft untrained",
    "alone": "language model alone",
    "random": "language model with random examples",
    "bm25": "language model with BM25's examples",
    "ours": "language model with Redraft's examples",
}
"""Metrics, and the names of the systems that `compare` gives them to."""

TABLES = {
    "language model, pair sets": Table(
        {
            "nearest": "nearest",
            "substitution": "substitution",
            "untrained": "Redraft untrained",
            "alone": "SmolLM2 alone",
            "random": "random examples",
            "bm25": "BM25's",
            "ours": "Redraft's",
            "seconds": "s per question",
        },
        lambda row: row.setting.startswith(COMPARED),
    )
}
"""By their names in the page."""


def set_row(pairs: PairSet, client: LmClient, *, questions: int, shots: int, seed: int) -> Row:
    """Compare all systems on `questions` pairs of a set, drawn by `seed`."""
    asked = random.Random(seed).sample(list(pairs.asked), min(questions, len(pairs.asked)))
    settings = LmSettings.of(pairs.train, model=client.find_model(None), shots=shots)
    compared = compare(pairs.train, asked, CompareOptions(lm=LmEditor(settings, client)))
    seconds = sum(system.seconds for system in compared.systems)
    by_name = {system.name: system.exact for system in compared.systems}
    exact = {metric: by_name[name] for metric, name in SYSTEMS.items()}
    return Row(
        "all systems",
        f"{COMPARED}{pairs.name}",
        pairs.split,
        seed,
        compared.n,
        {
            **{metric: round(float(np.mean(values)), DECIMALS) for metric, values in exact.items()},
            "seconds": round(seconds, DECIMALS),
        },
        config={
            "shots": settings.shots,
            "recommended": compared.recommended.name,
            "exact": {
                metric: [int(value > 0) for value in column] for metric, column in exact.items()
            },
        },
    )


def all_sets_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the means over the questions of all sets, and two paired differences."""
    exact = {
        metric: [100.0 * value for row in rows for value in row.config["exact"][metric]]
        for metric in SYSTEMS
    }
    n = len(exact["nearest"])
    mean = Row(
        "all systems",
        ALL_SETS,
        rows[0].split,
        ALL_SEEDS,
        n,
        {metric: round(float(np.mean(values)), DECIMALS) for metric, values in exact.items()},
        {metric: _rounded(mean_interval(values)) for metric, values in exact.items()},
    )
    return [mean, *(_lead(exact, ours, n, rows[0].split) for ours in ("untrained", "ours"))]


def _lead(exact: dict[str, list[float]], ours: str, n: int, split: str) -> Row:
    """Return how far one system is ahead of each other one."""
    others = [metric for metric in exact if metric != ours]
    own = np.asarray(exact[ours])
    return Row(
        SYSTEMS[ours],
        ALL_SETS,
        split,
        ALL_SEEDS,
        n,
        {one: round(float((own - exact[one]).mean()), DECIMALS) for one in others},
        {one: _rounded(paired_interval(exact[ours], exact[one])) for one in others},
        baseline="each other",
    )


def _rounded(interval: tuple[float, float]) -> tuple[float, float]:
    return round(interval[0], DECIMALS), round(interval[1], DECIMALS)
