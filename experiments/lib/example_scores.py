"""The metrics of every example, in one file, so that seeds of several runs are compared as one.

A line per system, setting and seed. A line that is measured again is appended and takes the place
of the earlier one.
"""

import json
import math
from collections.abc import Collection
from pathlib import Path
from typing import Any

from experiments.lib.results import Measured, Row


def append_scores(measured: Measured, path: Path, *, metrics: Collection[str] = ()) -> None:
    """Append the metrics of every example to `path`: those of `metrics`, or all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    row = measured.row
    identity = Row(
        row.system, row.setting, row.split, row.seed, row.n, {}, variant=row.variant
    ).to_json()
    names = ("system", "setting", "split", "seed", "n", "parts")
    line: dict[str, Any] = {name: identity[name] for name in names if name in identity}
    line["values"] = {
        name: [None if math.isnan(value) else round(value, 4) for value in values]
        for name, values in measured.values.items()
        if not metrics or name in metrics
    }
    if list(measured.packages) != _one_each(row.n):
        line["packages"] = list(measured.packages)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")


def read_scores(path: Path) -> list[Measured]:
    """Return all that was kept in `path`, ordered by seed, system and setting."""
    if not path.exists():
        return []
    found: dict[tuple[str, str, str, str], Measured] = {}
    for text in path.read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        values = {
            name: [math.nan if value is None else value for value in each]
            for name, each in line.pop("values").items()
        }
        packages = line.pop("packages", None) or _one_each(line["n"])
        row = Row.from_json({**line, "metrics": {}})
        key = (str(row.seed), row.system, row.setting, row.variant)
        found[key] = Measured(row, values, packages)
    return [found[key] for key in sorted(found)]


def _one_each(count: int) -> list[str]:
    """Every example is a cluster of its own."""
    return [str(number) for number in range(count)]
