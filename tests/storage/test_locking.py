"""Locks keep a second writer out, name their holder, and end with its process."""

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from redraft.errors import LockedError, ModelError
from redraft.storage.locking import LOCK, exclusive, is_abandoned, own_directory

HOLDER = """
import sys
from pathlib import Path
from redraft.storage.locking import exclusive
with exclusive(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""

OWNER = """
import sys
from pathlib import Path
from redraft.storage.locking import own_directory
own_directory(Path(sys.argv[1]))
print("owned", flush=True)
sys.stdin.read()
"""


@contextmanager
def process(code: str, folder: Path) -> "Iterator[subprocess.Popen[str]]":
    """A process that has got as far as its first line."""
    with subprocess.Popen(
        [sys.executable, "-c", code, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as started:
        assert started.stdout is not None
        started.stdout.readline()
        yield started
        if started.poll() is None:
            started.kill()


def test_a_second_writer_is_refused_with_the_name_of_the_first(tmp_path: Path) -> None:
    with process(HOLDER, tmp_path) as holder:
        expected = rf"locked by process {holder.pid} on \S+ \(-c {tmp_path}, since .*waited 0\.1 s"
        with pytest.raises(LockedError, match=expected), exclusive(tmp_path, timeout=0.1):
            pass


def test_a_killed_holder_frees_its_lock(tmp_path: Path) -> None:
    with process(HOLDER, tmp_path) as holder:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        assert (tmp_path / LOCK).exists()
        with exclusive(tmp_path, timeout=0):
            pass
    assert not (tmp_path / LOCK).exists()


def test_a_writer_waits_for_another_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "redraft")
    with process(HOLDER, tmp_path) as holder:
        timer = threading.Timer(1.2, holder.kill)
        timer.start()
        with exclusive(tmp_path, timeout=30):
            pass
    assert f"{tmp_path}: waiting for process {holder.pid}" in caplog.text


def test_threads_of_one_process_exclude_each_other(tmp_path: Path) -> None:
    inside, most = 0, 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(20):
            with exclusive(tmp_path / "model"):
                inside += 1
                most = max(most, inside)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_a_thread_may_lock_again_what_it_holds(tmp_path: Path) -> None:
    with exclusive(tmp_path), exclusive(tmp_path / "." / ".", timeout=0):
        assert (tmp_path / LOCK).exists()
    assert not (tmp_path / LOCK).exists()


def test_a_folder_made_for_the_lock_goes_with_it_unless_something_was_written(
    tmp_path: Path,
) -> None:
    with exclusive(tmp_path / "a" / "empty"):
        pass
    with exclusive(tmp_path / "a" / "used"):
        (tmp_path / "a" / "used" / "file").touch()
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["used"]


def test_a_lock_file_that_is_a_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / LOCK).symlink_to(tmp_path / "thesis.txt")
    with pytest.raises(ModelError, match="cannot be written"), exclusive(tmp_path / "model"):
        pass
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_a_file_cannot_be_locked_as_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ModelError, match="cannot be written"), exclusive(tmp_path / "file"):
        pass


def test_a_lock_file_of_anything_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / LOCK).write_bytes(b"\xff[[[")
    with exclusive(tmp_path, timeout=0):
        pass


def test_a_directory_is_abandoned_once_its_owner_is_dead(tmp_path: Path) -> None:
    with process(OWNER, tmp_path) as owner:
        os.utime(tmp_path, (0, 0))
        assert not is_abandoned(tmp_path)
        owner.kill()
        owner.wait()
        assert is_abandoned(tmp_path)
    os.utime(tmp_path)
    assert not is_abandoned(tmp_path)  # too young: its owner may be about to lock it


def test_an_owner_can_give_a_directory_up(tmp_path: Path) -> None:
    descriptor = own_directory(tmp_path)
    assert descriptor is not None
    os.utime(tmp_path, (0, 0))
    assert not is_abandoned(tmp_path)
    os.close(descriptor)
    assert is_abandoned(tmp_path)
    assert not is_abandoned(tmp_path / "missing")
