"""`make bench`: every benchmark, as a table on stdout and as benchmarks/results.json."""

import dataclasses
import json
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import (
    completion,
    context,
    editing,
    infill,
    pairs,
    retrieval,
    serving,
    startup,
    training,
    vectors,
    workers,
)
from benchmarks.measurement import Measurement

BENCHMARKS = (
    *(startup, training, workers, editing, context, completion, serving, infill),
    *(vectors, retrieval, pairs),
)
RESULTS = Path(__file__).parent / "results.json"


def main() -> None:
    """Measure, print, write."""
    measured: list[Measurement] = []
    table = Table("measurement", "value", "unit", "ratio", "to", title="Redraft benchmarks")
    for benchmark in BENCHMARKS:
        print(f"{benchmark.__name__} …", file=sys.stderr)
        for each in benchmark.run():
            measured.append(each)
            ratio = f"{each.ratio:.2f}" if each.ratio is not None else ""
            value = f"{each.value:,.1f}" if each.value >= 10 else f"{each.value:.3g}"
            table.add_row(each.name, value, each.unit, ratio, each.yardstick)
    Console().print(table)
    machine = {"cores": os.cpu_count(), "machine": platform.machine()}
    results = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        **machine,
        "measurements": [dataclasses.asdict(each) for each in measured],
    }
    RESULTS.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
