"""The figures of docs/scaling.md: `python -m benchmarks.scaling` after the benchmarks it tells of.

What benchmarks/{scale,store,workers,bulk,bm25}.json hold is kept in docs/scaling.json; every table
and plot of the page is made from that file alone, so that it can be made again without measuring.
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.lib.plots import growth_plot
from experiments.lib.results import current_commit
from experiments.lib.tables import insert_table
from redraft.training.schedule import TrainingConfig

MEASUREMENTS = ("store", "workers", "bulk")
SOURCES = ("scale", *MEASUREMENTS, "bm25")
HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"

Figures = Mapping[str, Any]
Growth = Mapping[int, float]
"""A figure of each number of pairs."""

PLANNED = 10**9
PARTITION = 10**7
"""Pairs of one index, which one machine holds."""

CORES, HOURS = 16, 24.0
"""A machine, and the time in which the pairs are to be ready."""

CORE_HOUR, GIGABYTE_MONTH = 0.05, 0.10
"""Prices that are assumed: put in your own."""


def collect(kept: Path) -> dict[str, Any]:
    """What was kept, with what the benchmarks have measured since."""
    figures: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    for name in SOURCES:
        path = HERE / f"{name}.json"
        if path.exists():
            measured = json.loads(path.read_text(encoding="utf-8"))
            if measured != figures.get(name, {}).get("figures"):
                figures[name] = {"commit": current_commit(), "figures": measured}
    kept.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return figures


class Scale:
    """What `benchmarks.scale` measured, by stage and retriever."""

    def __init__(self, figures: Figures) -> None:
        self.rows: Sequence[Figures] = figures["stages"]
        self.sizes = sorted({row["pairs"] for row in self.rows})

    def growth(self, stage: str, retriever: str, name: str, *, times: float = 1.0) -> Growth:
        """A figure of a stage for each number of pairs, in another unit."""
        return {
            row["pairs"]: times * row[name]
            for row in self.rows
            if (row["stage"], row["retriever"]) == (stage, retriever) and name in row
        }

    def each(self, stage: str, retriever: str, name: str) -> Growth:
        """Seconds of a stage as microseconds a pair."""
        found = self.growth(stage, retriever, name)
        return {size: 1e6 * seconds / size for size, seconds in found.items()}

    def costs(self) -> dict[str, Growth]:
        """Microseconds of one core that every pair takes, once."""
        return {
            "mine it": self.each("mine", "none", "seconds"),
            "read and file it": self.each("index", "bm25", "read_seconds"),
            "index its words (BM25)": self.each("index", "bm25", "count_seconds"),
            "embed it": self.growth("index", "task", "default_embed_us_per_pair"),
            "index its vector": self.each("index", "task", "compress_seconds"),
        }

    def other_costs(self) -> dict[str, Growth]:
        """The same of what some pairs take, or another encoder."""
        return {
            "embed it, encoder without LSTMs": self.each("index", "task", "embed_seconds"),
            "train the editor on it once": self.growth(
                "fit", "bm25", "step_seconds", times=1e6 / TrainingConfig.batch_size
            ),
        }

    def answers(self) -> dict[str, Growth]:
        """Milliseconds of a question, and of pairs that are added."""
        return {
            "nearest ten, BM25": self.growth("predict", "bm25", "retrieve_ms"),
            "nearest ten, learned": self.growth("predict", "task", "retrieve_ms"),
            "suggestion, BM25": self.growth("complete", "bm25", "completion_ms"),
            "suggestion, learned": self.growth("complete", "task", "completion_ms"),
            "first suggestion, BM25": self.growth("complete", "bm25", "first_completion_ms"),
            "first suggestion, learned": self.growth("complete", "task", "first_completion_ms"),
            "100 pairs added, BM25": self.growth("add", "bm25", "seconds", times=1000),
            "100 pairs added, learned": self.growth("add", "task", "seconds", times=1000),
        }

    def memory(self) -> dict[str, Growth]:
        """The most megabytes that a process held."""
        return {
            f"{stage}, {name}": self.growth(stage, retriever, "peak_mb")
            for retriever, name in (("bm25", "BM25"), ("task", "learned"))
            for stage in ("fit", "index", "predict", "complete")
        }

    def disk(self) -> dict[str, Growth]:
        """Bytes of a saved model a pair."""
        return {
            "model with BM25": self.growth("fit", "bm25", "bytes_per_pair"),
            "model with a learned retriever": self.growth("fit", "task", "bytes_per_pair"),
        }


def growth_table(unit: str, figures: Mapping[str, Growth], sizes: Sequence[int]) -> str:
    """A line a figure, a column a size."""
    lines = [
        f"| {unit} | " + " | ".join(f"{size:,} pairs" for size in sizes) + " |",
        "|---|" + "---|" * len(sizes),
    ]
    for name, growth in figures.items():
        cells = [_shown(growth[size]) if size in growth else "–" for size in sizes]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _shown(value: float) -> str:
    digits = 0 if value >= 100 or isinstance(value, int) else 1 if value >= 10 else 2
    return f"{value:,.{digits}f}"


BM25 = {
    "build, seconds": "build_seconds",
    "nearest 30, ms": "search_ms",
    "add one pair, ms": "add_ms",
    "the same, slowest, ms": "slowest_add_ms",
    "nearest 30 after it, ms": "first_search_ms",
    "remove one pair, ms": "remove_ms",
    "most MB of the process": "peak_mb",
}


def bm25_growth(rows: Sequence[Figures]) -> dict[str, Growth]:
    """What `benchmarks.bm25` measured, for each number of pairs."""
    return {name: {row["pairs"]: row[key] for row in rows} for name, key in BM25.items()}


def measurement_table(measured: Figures) -> str:
    """The measurements of a benchmark as they are."""
    lines = ["| measured | figure | beside |", "|---|---|---|"]
    for each in measured["measurements"]:
        ratio, figure = each["ratio"], f"{_shown(each['value'])} {each['unit']}".strip()
        beside = "–" if ratio is None else f"{_shown(ratio)} × {each['yardstick']}"
        lines.append(f"| {each['name']} | {figure} | {beside} |")
    return "\n".join(lines) + "\n"


def plan_table(scale: Scale) -> str:
    """What so many pairs would take if each took as long as at the largest size measured."""
    most = scale.sizes[-1]
    lines = [
        f"| for {PLANNED:,} pairs | µs a pair | core hours | machines of {CORES} cores for "
        f"{HOURS:g} hours | price at {CORE_HOUR:g} a core hour |",
        "|---|---|---|---|---|",
    ]
    total = 0.0
    for name, growth in scale.costs().items():
        if most in growth:
            hours = growth[most] * 1e-6 * PLANNED / 3600
            total += hours
            lines.append(_plan_line(name, _shown(growth[most]), hours))
    lines.append(_plan_line("**all of it**", "", total))
    return "\n".join(lines) + "\n"


def _plan_line(name: str, each: str, hours: float) -> str:
    machines, price = hours / CORES / HOURS, hours * CORE_HOUR
    return f"| {name} | {each} | {hours:,.0f} | {machines:,.2f} | {price:,.0f} |"


def partition_table(scale: Scale) -> str:
    """Memory and disk of one partition, along the line through the two largest sizes."""
    lines = [
        f"| a partition of {PARTITION:,} pairs | at {scale.sizes[-1]:,} | growth a pair | there |",
        "|---|---|---|---|",
    ]
    for name, growth in scale.memory().items():
        if len(growth) > 1:
            (before, low), (after, high) = sorted(growth.items())[-2:]
            slope = max(0.0, (high - low) / (after - before))
            there = (high + slope * (PARTITION - after)) / 1024
            lines.append(
                f"| memory of {name} | {high / 1024:,.2f} GB | {1024 * 1024 * slope:,.0f} bytes | "
                f"{there:,.1f} GB |"
            )
    for name, growth in scale.disk().items():
        size, each = max(growth.items())
        whole, month = PARTITION * each / 1e9, PLANNED * each / 1e9 * GIGABYTE_MONTH
        lines.append(
            f"| disk of a {name} | {size * each / 1e9:,.2f} GB | {each:,.0f} bytes | "
            f"{whole:,.1f} GB; all {PLANNED // PARTITION} of them {month:,.0f} a month |"
        )
    return "\n".join(lines) + "\n"


def plots(scale: Scale) -> dict[str, str]:
    """The pictures of the page, by their names."""
    drawn = {
        "costs": ({**scale.costs(), **scale.other_costs()}, "microseconds of one core a pair"),
        "answers": (scale.answers(), "milliseconds"),
        "memory": (scale.memory(), "most megabytes of a process"),
    }
    return {
        name: growth_plot(
            {what: found for what, growth in figures.items() if (found := _above_nothing(growth))},
            title="pairs",
            metric=metric,
        )
        for name, (figures, metric) in drawn.items()
    }


def _above_nothing(growth: Growth) -> Growth:
    """Without the sizes at which there is nothing to do, which powers of ten have no place for."""
    return {size: value for size, value in growth.items() if value > 0}


def tables(figures: Figures) -> dict[str, str]:
    """The tables of the page, by their marks."""
    found: dict[str, str] = {}
    if "scale" in figures:
        scale = Scale(figures["scale"]["figures"])
        shown: dict[str, tuple[str, Callable[[], Mapping[str, Growth]]]] = {
            "costs": ("µs of one core a pair", lambda: {**scale.costs(), **scale.other_costs()}),
            "answers": ("milliseconds", scale.answers),
            "memory": ("most MB of a process", scale.memory),
            "disk": ("bytes a pair", scale.disk),
        }
        for name, (unit, growth) in shown.items():
            found[name] = growth_table(unit, growth(), scale.sizes)
        found |= {"plan": plan_table(scale), "partition": partition_table(scale)}
    if "bm25" in figures:
        rows = figures["bm25"]["figures"]["rows"]
        sizes = [row["pairs"] for row in rows]
        found["bm25"] = growth_table("CPU of one thread", bm25_growth(rows), sizes)
    for name in MEASUREMENTS:
        if name in figures:
            found[name] = measurement_table(figures[name]["figures"])
    return found


def main() -> None:
    """Collect, and put everything into the page."""
    figures = collect(DOCS / "scaling.json")
    page = DOCS / "scaling.md"
    for name, table in tables(figures).items():
        if not insert_table(page, f"scaling, {name}", table):
            sys.exit(f"{page}: has no place for the table {name!r}")
    if "scale" in figures:
        for name, picture in plots(Scale(figures["scale"]["figures"])).items():
            (DOCS / f"scaling-{name}.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
