"""How long a user waits before anything happens."""

import subprocess
import sys
from collections.abc import Callable, Iterator

from benchmarks.measurement import Measurement, best_seconds


def start(code: str) -> Callable[[], object]:
    """A task that runs the code in a fresh interpreter."""
    return lambda: subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def run() -> Iterator[Measurement]:
    """Import and help, beside an interpreter that does nothing."""
    help_code = (
        "import sys; sys.argv = ['redraft', '--help']; import redraft.cli.app as a; a.main()"
    )
    tasks = {"bare": start("pass"), "import": start("import redraft"), "help": start(help_code)}
    seconds = best_seconds(tasks, rounds=7)
    for name, label in (("import", "import redraft"), ("help", "redraft --help")):
        ratio = seconds[name] / seconds["bare"]
        yield Measurement(label, 1000 * seconds[name], "ms", ratio, "bare interpreter")
