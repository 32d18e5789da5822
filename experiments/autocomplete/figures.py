"""The plots of the autocomplete tables: completions against the list's size and the distance."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from experiments.autocomplete.settings import IN_PROJECT, SETTINGS
from experiments.lib.plots import Estimate, completion_plot, distance_plot
from experiments.lib.results import DISTANCE, Measured
from redraft.metrics.completion import LIST_SIZES

COMPARED = (
    "retrieve+edit",
    "seq2seq + suffix",
    "seq2seq + cache",
    "cache",
    "seq2seq",
    "decoder-only",
)
BY_DISTANCE = ("retrieve+edit", "seq2seq")


def write_plots(measured: Sequence[Measured], folder: Path) -> list[Path]:
    """Write what was measured, the mean over its seeds, as pictures."""
    groups: dict[tuple[str, str], list[Measured]] = defaultdict(list)
    for each in measured:
        if not each.row.variant:
            groups[each.row.setting, each.row.system].append(each)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for setting in SETTINGS:
        found = {name: groups[setting, name] for name in COMPARED if (setting, name) in groups}
        if len(found) > 1:
            page = folder / f"{setting}.svg"
            page.write_text(completion_plot(_estimates(found)), encoding="utf-8")
            written.append(page)
    found = {name: groups[IN_PROJECT, name] for name in BY_DISTANCE if (IN_PROJECT, name) in groups}
    if len(found) == len(BY_DISTANCE):
        page = folder / "distance.svg"
        page.write_text(_by_distance(found), encoding="utf-8")
        written.append(page)
    return written


def _estimates(found: dict[str, list[Measured]]) -> dict[str, dict[int, Estimate]]:
    return {
        name: {
            size: Estimate.of(_mean(seeds, f"avg_{size}"), clusters=seeds[0].packages)
            for size in LIST_SIZES
        }
        for name, seeds in found.items()
    }


def _by_distance(found: dict[str, list[Measured]]) -> str:
    first = found[BY_DISTANCE[0]][0]
    return distance_plot(
        first.values[DISTANCE],
        {name: _mean(seeds, "avg_1") for name, seeds in found.items()},
        metric="average completion, k = 1",
        clusters=first.packages,
    )


def _mean(seeds: Sequence[Measured], metric: str) -> list[float]:
    """The mean over the seeds for each function."""
    means: list[float] = np.mean([each.values[metric] for each in seeds], axis=0).tolist()
    return means
