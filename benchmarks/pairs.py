"""`redraft check` on a million generated rows: its rate, and the most memory it held."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measurement import Measurement, best_seconds

ROWS = 1_000_000
CHECK = """
import atexit, resource, sys
from redraft.cli.app import main
def tell():
    # a new process inherits the resource peak of the one that started it; Linux knows better
    try:
        lines = open("/proc/self/status").read().splitlines()
        peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(peak, file=sys.stderr)
atexit.register(tell)
main()
"""


def write_rows(path: Path, rows: int) -> None:
    """Rows of about 100 bytes, one in a thousand a duplicate."""
    with path.open("w", encoding="utf-8") as stream:
        for at in range(rows):
            number = at - 1 if at % 1000 == 999 else at
            x = f"Sum the first {number} elements of column {number % 97} and round them"
            row = {"x": x, "y": f"round(sum(column_{number % 97}[:{number}]))"}
            stream.write(json.dumps(row) + "\n")


def parse(path: Path) -> int:
    """The floor: JSON parsed line by line and thrown away."""
    with path.open("rb") as stream:
        return sum(len(json.loads(line)) for line in stream)


def run() -> Iterator[Measurement]:
    """The rate as a share of bare parsing, and the peak of memory."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "pairs.jsonl"
        write_rows(path, ROWS)
        command = [sys.executable, "-c", CHECK, "check", str(path)]
        peaks: list[float] = []

        def check() -> None:
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            peaks.append(int(done.stderr.split()[-1]) / 1024)

        seconds = best_seconds({"check": check, "parse": lambda: parse(path)}, rounds=2)
    ratio = seconds["parse"] / seconds["check"]
    yield Measurement("check 1M rows", ROWS / seconds["check"], "rows/s", ratio, "json.loads alone")
    yield Measurement("check 1M rows, peak memory", max(peaks), "MB")
