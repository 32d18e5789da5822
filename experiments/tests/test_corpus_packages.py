"""A list names packages, and each is downloaded once, whole or not at all."""

import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from experiments.corpus import packages
from experiments.corpus.packages import SIDES, Fetched, Pinned, fetch, find_archive, read_list
from experiments.corpus.rules import SHARES
from experiments.tests.wheels import write_wheel
from redraft.errors import PairsError


def test_a_list_is_read_with_comments_and_in_the_order_of_names(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text("# a list\nZope.Event==1.0  # old\n\n  a_b==2.0.post1\n")
    assert read_list(path) == [Pinned("a-b", "2.0.post1"), Pinned("zope-event", "1.0")]


def test_a_line_may_name_the_side_of_the_split(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text("a==1 dev\nb==1  \t test# last\nc==1 train  # a comment\nd==1 # dev\n")
    found = read_list(path)
    assert [each.side for each in found] == ["dev", "test", "train", None]
    assert [str(each) for each in found] == ["a==1", "b==1", "c==1", "d==1"]


def test_the_sides_that_a_list_may_name_are_those_of_the_corpus() -> None:
    assert tuple(SHARES) == SIDES


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a==1\nb\n", ":2: expected NAME==VERSION or NAME==VERSION SPLIT, got 'b'"),
        ("a>=1\n", ":1: expected NAME==VERSION or NAME==VERSION SPLIT, got 'a>=1'"),
        (
            "--index-url=x==1\n",
            ":1: expected NAME==VERSION or NAME==VERSION SPLIT, got '--index-url=x==1'",
        ),
        ("-r==1\n", ":1: expected NAME==VERSION or NAME==VERSION SPLIT, got '-r==1'"),
        ("a==1 b==2\n", ":1: expected NAME==VERSION or NAME==VERSION SPLIT, got 'a==1 b==2'"),
        (
            "a==1 dev test\n",
            ":1: expected NAME==VERSION or NAME==VERSION SPLIT, got 'a==1 dev test'",
        ),
        ("a dev\n", ":1: expected NAME==VERSION or NAME==VERSION SPLIT, got 'a dev'"),
        (
            "a==1\nA.b==1 Dev\n",
            ":2: a-b has the unknown split 'Dev'; write train, dev or test, or leave it out",
        ),
        ("a==1 dev\na==1 test\n", ":2: a is named twice; keep one line"),
        ("a-b==1\na_B==2\n", ":2: a-b is named twice; keep one line"),
        ("# nothing\n", ": names no package; a line is NAME==VERSION"),
    ],
)
def test_a_bad_list_is_an_error_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text(text)
    with pytest.raises(PairsError) as caught:
        read_list(path)
    assert str(caught.value) == f"{path}{message}"


def test_the_shipped_lists_are_fine_and_the_short_one_is_part_of_the_long_one() -> None:
    folder = Path(__file__).parents[2] / "experiments" / "autocomplete"
    long, short = (read_list(folder / f"{name}.txt") for name in ("packages", "packages_demo"))
    assert (len(long), len(short)) == (400, 20)
    assert set(short) < set(long)


def test_the_small_list_names_sides_of_packages_of_the_long_one() -> None:
    folder = Path(__file__).parents[2] / "experiments" / "autocomplete"
    long, small = (read_list(folder / f"{name}.txt") for name in ("packages", "packages_small"))
    assert {str(each) for each in small} < {str(each) for each in long}
    assert all(each.side is None for each in long)
    assert Counter(each.side for each in small) == {"train": 25, "dev": 10, "test": 20}


def test_a_list_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for name in ("none", "binary", "."):
        with pytest.raises(PairsError, match="name a list of packages"):
            read_list(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("a_b-1.0-py3-none-any.whl", True),
        ("A.B-1.0.0-py2.py3-none-any.whl", True),
        ("a_b-1.0-1-py3-none-any.whl", True),
        ("a-b-1.0.tar.gz", True),
        ("a_b-1.zip", True),
        ("a_b-1.0.1-py3-none-any.whl", False),
        ("a_b-10-py3-none-any.whl", False),
        ("a_b_c-1.0-py3-none-any.whl", False),
        ("b-1.0-py3-none-any.whl", False),
        ("a-b-1.0.exe", False),
    ],
)
def test_an_archive_is_known_by_its_name(name: str, found: bool, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    expected = tmp_path / name if found else None
    assert find_archive(Pinned("a-b", "1.0"), tmp_path) == expected


def test_a_wheel_goes_before_a_source_archive(tmp_path: Path) -> None:
    for name in ("a-1.tar.gz", "a-1.zip", "a-1-py3-none-any.whl"):
        (tmp_path / name).touch()
    found = find_archive(Pinned("a", "1"), tmp_path)
    assert found == tmp_path / "a-1-py3-none-any.whl"


class Index:
    """Stands for pip: writes wheels of the packages it has, and fails for any other."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.calls: list[list[str]] = []

    def run(self, command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        at = command.index("--dest")
        wanted = command[at + 2 :]
        self.calls.append(wanted)
        for package in wanted:
            name, _equals, version = package.partition("==")
            if name not in self.names:
                error = f"WARNING: slow\nERROR: No matching distribution found for {package}\n"
                return subprocess.CompletedProcess(command, 1, "", error)
            write_wheel(Path(command[at + 1]), f"{name}-{version}", {f"{name}.py": ""})
        return subprocess.CompletedProcess(command, 0, "", "")


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Index:
    found = Index("a", "b", "c")
    monkeypatch.setattr(subprocess, "run", found.run)
    return found


def test_a_package_that_cannot_be_had_costs_no_other(index: Index, tmp_path: Path) -> None:
    wanted = [Pinned(name, "1") for name in ("a", "b", "none")]
    *fetched, missing = fetch(wanted, tmp_path / "archives")
    assert [each.archive and each.archive.name for each in fetched] == [
        "a-1-py3-none-any.whl",
        "b-1-py3-none-any.whl",
    ]
    assert missing == Fetched(wanted[2], None, "No matching distribution found for none==1")
    assert index.calls == [["a==1", "b==1", "none==1"], ["a==1"], ["b==1"], ["none==1"]]
    assert {path.name for path in (tmp_path / "archives").iterdir()} == {
        "a-1-py3-none-any.whl",
        "b-1-py3-none-any.whl",
    }


def test_a_side_is_not_told_to_pip(index: Index, tmp_path: Path) -> None:
    (found,) = fetch([Pinned("a", "1", "dev")], tmp_path)
    assert found.archive == tmp_path / "a-1-py3-none-any.whl"
    assert index.calls == [["a==1"]]


def test_what_is_there_is_not_downloaded_again(index: Index, tmp_path: Path) -> None:
    write_wheel(tmp_path, "b-1", {})
    wanted = [Pinned(name, "1") for name in ("a", "b")]
    assert all(each.archive for each in fetch(wanted, tmp_path))
    assert index.calls == [["a==1"]]
    assert all(each.archive for each in fetch(wanted, tmp_path))
    assert index.calls == [["a==1"]]


def test_packages_are_downloaded_in_batches(index: Index, tmp_path: Path) -> None:
    index.names = tuple(f"p{number}" for number in range(20))
    fetched = list(fetch([Pinned(name, "1") for name in index.names], tmp_path))
    assert all(each.archive for each in fetched)
    assert [len(call) for call in index.calls] == [packages.BATCH, 20 - packages.BATCH]


def test_a_pip_that_says_nothing_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    done = subprocess.CompletedProcess([], 3, "", "")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    (missing,) = fetch([Pinned("a", "1")], tmp_path)
    assert missing.reason == "pip exited with 3"
