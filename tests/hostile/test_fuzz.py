"""A fixed sample of altered models is refused in one line or answers; `make fuzz` goes on."""

import os
import signal
from pathlib import Path

import pytest

from tests.hostile.fuzz import MOST_MEMORY, fuzz, save_models

CASES = 330

# the pool of pytest-xdist has threads of its own, which a child does not use
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def test_altered_models_are_refused_or_answer(tmp_path: Path) -> None:
    save_models(tmp_path)
    # the worker is forked and begins with the memory of this process
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    before = pages * os.sysconf("SC_PAGE_SIZE")
    report = fuzz(range(CASES), seed=2, models=tmp_path)
    assert report.failures == []
    assert sum(report.outcomes.values()) == CASES
    assert report.outcomes["refused"] > CASES // 2
    assert report.outcomes["answered"] > CASES // 20
    assert report.peak - before < MOST_MEMORY


def _dies_at_two(_: int, case: int, __: Path, ___: Path) -> str:
    if case == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return "failed: in another way" if case == 4 else "refused"


def test_a_case_that_kills_its_process_is_a_failure_and_the_rest_go_on(tmp_path: Path) -> None:
    report = fuzz(range(6), seed=0, models=tmp_path, run=_dies_at_two)
    assert report.outcomes == {"refused": 4, "failed": 2}
    assert [each.partition(":")[2].strip() for each in report.failures] == [
        "failed: exit code -9",
        "failed: in another way",
    ]
