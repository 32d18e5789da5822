"""BM25 over more and more pairs: build, search, add and remove one pair, each size in a process.

`python -m benchmarks.bm25 10000 100000 1000000` prints a table and writes benchmarks/bm25.json: CPU
seconds of one thread, and the most memory of the process. A list of pairs is indexed in memory,
as `RetrieveAndEdit.fit` does; above `IN_MEMORY` pairs they are on disk, as `redraft fit` has them.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from benchmarks.generated_pairs import pairs
from benchmarks.measurement import peak
from redraft import RetrieveAndEdit
from redraft.editing.base import VerbatimEditor
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.storage.disk import spool_examples

SIZES = (10_000, 100_000, 1_000_000)
IN_MEMORY = 100_000
ASKED, RETRIEVED = 100, 30
ADDED, ADDED_ON_DISK = 21, 1
RESULTS = Path(__file__).parent / "bm25.json"

Result = TypeVar("Result")


def cpu(work: Callable[[], Result]) -> tuple[float, Result]:
    """Return the CPU seconds of some work, and its result."""
    started = time.process_time()
    result = work()
    return time.process_time() - started, result


def measure(size: int, folder: Path) -> dict[str, Any]:
    """Return the figures of an index of this many pairs."""
    known = islice(pairs(), size)
    in_memory = size <= IN_MEMORY
    examples = list(known) if in_memory else spool_examples([known], folder / "examples")
    seconds, retriever = cpu(lambda: Bm25Retriever.build(examples))
    figures = {"build_seconds": seconds}
    model = RetrieveAndEdit(retriever, VerbatimEditor())
    asked = [example.x for example in islice(pairs(seed=1), ASKED)]
    searched = [cpu(lambda: model.retriever.retrieve([x], RETRIEVED))[0] for x in asked]  # noqa: B023
    figures["search_ms"] = 1000 * median(searched)
    added: list[float] = []
    first: list[float] = []
    removed: list[float] = []
    for example in islice(pairs(seed=3), ADDED if in_memory else ADDED_ON_DISK):
        seconds, model = cpu(lambda: model.add([example]))  # noqa: B023
        added.append(seconds)
        seconds, found = cpu(lambda: model.retriever.retrieve([example.x], RETRIEVED))  # noqa: B023
        first.append(seconds)
        assert found[0][0].example == example
        removed.append(cpu(lambda: model.retriever.remove([size // 2]))[0])  # noqa: B023
    figures |= {"add_ms": 1000 * median(added), "slowest_add_ms": 1000 * max(added)}
    figures |= {"first_search_ms": 1000 * median(first), "remove_ms": 1000 * median(removed)}
    rounded = {name: round(value, 3) for name, value in figures.items()}
    return {"pairs": size, "in_memory": in_memory, **rounded, "peak_mb": peak()}


def main() -> None:
    """Measure every size, print, write; or measure one."""
    if len(sys.argv) == 3 and sys.argv[1] == "one":
        with TemporaryDirectory() as folder:
            print(json.dumps(measure(int(sys.argv[2]), Path(folder))))
        return
    from benchmarks.scaling import bm25_growth, growth_table  # large: not in a measured process

    sizes = [int(size) for size in sys.argv[1:]] or [*SIZES]
    rows = []
    for size in sizes:
        command = [sys.executable, "-m", "benchmarks.bm25", "one", str(size)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        print(done.stdout.strip(), file=sys.stderr)
    print(growth_table("BM25", bm25_growth(rows), sizes))
    results = {"cores": os.cpu_count(), "load": os.getloadavg()[0], "rows": rows}
    RESULTS.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
