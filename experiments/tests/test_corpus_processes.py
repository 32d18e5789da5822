"""Several processes mine what one would, and a bad archive costs no other."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiments.corpus import processes as mining
from experiments.corpus.processes import ArchiveTask, Refused, mine_all
from experiments.tests.wheels import source, truncate, write_wheel
from redraft.errors import PairsError


@pytest.fixture
def tasks(tmp_path: Path) -> list[ArchiveTask]:
    """Four archives, the third one truncated."""
    wheels = [write_wheel(tmp_path, f"p{n}-1", {"a.py": source(n)}) for n in range(4)]
    truncate(wheels[2])
    return [ArchiveTask(wheel, f"p{n}", tmp_path / f"p{n}.jsonl") for n, wheel in enumerate(wheels)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_archives_are_mined_in_order_and_a_bad_one_is_named(
    tasks: list[ArchiveTask], jobs: int
) -> None:
    found = list(mine_all(tasks, jobs=jobs))
    refused = found.pop(2)
    assert isinstance(refused, Refused)
    assert refused.archive == "p2-1-py3-none-any.whl"
    assert refused.reason.startswith("p2-1-py3-none-any.whl: damaged (")
    assert found == [tasks[row].path for row in (0, 1, 3)]
    assert all(path.is_file() for path in found if isinstance(path, Path))


def test_no_archives_are_mined_at_once() -> None:
    assert list(mine_all([], jobs=2)) == []


def test_a_worker_that_is_killed_is_an_error_that_says_how_to_go_on(
    tasks: list[ArchiveTask], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mining, "_start_worker", os.abort)
    with pytest.raises(PairsError, match="run the same command with --jobs 1 to resume"):
        list(mine_all(tasks, jobs=2))


def test_workers_follow_a_parent_that_is_killed(tmp_path: Path) -> None:
    mark = tmp_path / "worker"
    code = (
        "import os, sys, time\n"
        "from multiprocessing import get_context\n"
        "if __name__ == '__main__':\n"
        "    from tests_worker import stay\n"
        "    worker = get_context('spawn').Process(target=stay, args=(sys.argv[1],))\n"
        "    worker.start()\n"
        "    while not os.path.exists(sys.argv[1]):\n"
        "        time.sleep(0.01)\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    (tmp_path / "parent.py").write_text(code)
    (tmp_path / "tests_worker.py").write_text(
        "import os, time\n"
        "from pathlib import Path\n"
        "from experiments.corpus.processes import _start_worker\n"
        "def stay(path):\n"
        "    _start_worker()\n"
        "    Path(path + '.new').write_text(str(os.getpid()))\n"
        "    Path(path + '.new').replace(path)\n"
        "    time.sleep(60)\n"
    )
    root = str(Path(__file__).parent.parent.parent)
    environment = {**os.environ, "PYTHONPATH": root}
    subprocess.run([sys.executable, "parent.py", mark], cwd=tmp_path, env=environment, check=False)
    worker = Path("/proc") / mark.read_text()
    deadline = time.monotonic() + 20
    while worker.exists() and "Z" not in (worker / "stat").read_text().split()[2]:
        assert time.monotonic() < deadline, "the worker outlived its parent"
        time.sleep(0.05)
