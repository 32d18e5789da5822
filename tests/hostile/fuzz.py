"""Loads altered models and asks them, each in a child process: `make fuzz`.

A case is a number: it says which model, which file and which change. Every model must either be
refused by a ModelError of one line that names it, or answer. Nothing else may happen: no other
error, no signal, no more than a second or so of work, no gigabyte of memory.
"""

import argparse
import contextlib
import multiprocessing
import os
import random
import resource
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from redraft import RetrieveAndEdit
from redraft.errors import ModelError, RedraftError
from tests.hostile.models import INPUT, KINDS, save
from tests.hostile.mutations import mutate
from tests.hostile.seal import seal, stored

SECONDS = 5.0
"""Of processor time that a case may take."""
PATIENCE = 60.0
"""Seconds after which a case that has not ended is killed: the machine may be busy."""
HEADROOM = 4 << 30
"""Bytes of address space beyond what a worker begins with."""
MOST_MEMORY = 1 << 30


@dataclass
class Report:
    """How cases ended, and what the dearest of them took."""

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    slowest: tuple[float, int] = (0.0, -1)
    peak: int = 0

    def note(self, case: int, outcome: str, seconds: float, peak: int) -> None:
        """Count a case that ended; what is neither refused nor answered is a failure."""
        self.outcomes[outcome.partition(":")[0]] += 1
        if outcome.startswith("failed") or seconds > SECONDS:
            self.failures.append(f"case {case} ({seconds:.1f} s): {outcome}")
        self.slowest = max(self.slowest, (seconds, case))
        self.peak = max(self.peak, peak)


def save_models(folder: Path, kinds: tuple[str, ...] = KINDS) -> None:
    """Write a model of each kind into the folder."""
    for kind in kinds:
        save(kind, folder / kind)


def run_case(seed: int, case: int, models: Path, scratch: Path) -> str:
    """Return what became of a case: refused, answered, or failed and how."""
    rng = random.Random(f"{seed}-{case}")
    kinds = sorted(each.name for each in models.iterdir())
    folder = scratch / "model"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(models / kinds[case % len(kinds)], folder)
    files = stored(folder)
    for name in rng.sample(sorted(files), rng.choice((1, 1, 1, 1, 2))):
        files[name].write_bytes(mutate(name, files[name].read_bytes(), rng))
    seal(folder)
    try:
        model = RetrieveAndEdit.load(folder)
    except ModelError as error:
        message = str(error)
        is_line = message.startswith(str(folder)) and message.isprintable() and len(message) < 1_000
        return "refused" if is_line else f"failed: a message that is not one line: {message!r}"
    except BaseException:
        return f"failed: to load\n{traceback.format_exc()}"
    try:
        model.predict([INPUT], k=3)
        model.complete([INPUT], ["print"], k=2)
    except RedraftError:
        return "answered: with an error"
    except BaseException:
        return f"failed: to answer\n{traceback.format_exc()}"
    return "answered"


Run = Callable[[int, int, Path, Path], str]


def _work(seed: int, cases: range, models: Path, pipe: Connection, run: Run) -> None:
    """Run cases and send what became of each; a signal ends the process and with it the pipe."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + HEADROOM, used + HEADROOM))
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as scratch:
        for case in cases:
            start = time.process_time()
            outcome = run(seed, case, models, Path(scratch))
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            pipe.send((case, outcome, time.process_time() - start, peak))


def fuzz(cases: range, *, seed: int, models: Path, run: Run = run_case) -> Report:
    """Run the cases in child processes, a new one after each that did not survive."""
    report = Report()
    context = multiprocessing.get_context("fork")
    start = cases.start
    while start < cases.stop:
        receiver, sender = context.Pipe(duplex=False)
        left = range(start, cases.stop)
        worker = context.Process(target=_work, args=(seed, left, models, sender, run))
        worker.start()
        sender.close()
        with contextlib.suppress(EOFError):
            while start < cases.stop and receiver.poll(PATIENCE):
                case, outcome, seconds, peak = receiver.recv()
                report.note(case, outcome, seconds, peak)
                start = case + 1
        if start < cases.stop:
            # a worker that was silent for too long is ended; one that died has a code already
            worker.join(1)
            worker.kill()
            worker.join()
            report.note(start, f"failed: exit code {worker.exitcode}", 0.0, 0)
            start += 1
        worker.join()
    return report


def main() -> None:
    """Run cases from the command line; exit code 1 if any failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        save_models(Path(folder))
        start = time.monotonic()
        cases = range(options.first, options.first + options.cases)
        report = fuzz(cases, seed=options.seed, models=Path(folder))
    for failure in report.failures:
        print(failure)
    seconds, case = report.slowest
    print(
        f"seed {options.seed}, {len(cases):,} cases in {time.monotonic() - start:.0f} s: "
        f"{dict(report.outcomes)}, slowest {seconds:.2f} s (case {case}), "
        f"peak memory {report.peak / 1e6:.0f} MB"
    )
    sys.exit(bool(report.failures) or report.peak > MOST_MEMORY)


if __name__ == "__main__":
    main()
