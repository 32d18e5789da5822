"""A list of packages becomes a corpus: the same bytes, despite bad archives and interruptions."""

import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.corpus.__main__ import main
from experiments.tables import ROOT
from experiments.tests.wheels import function, source, truncate, write_bomb, write_wheel
from redraft.data.pairs import read_pairs

PACKAGES = 20
COMMAND = [sys.executable, "-m", "experiments.corpus"]
SIDES = ("train", "dev", "test")


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("COLUMNS", "120")


def write_packages(folder: Path, *, functions: int = 5) -> Path:
    """Small packages in the archive folder of a corpus, and their list beside it."""
    names = [f"p{number}x" for number in range(PACKAGES)]
    for number, name in enumerate(names):
        numbers = range(functions * number, functions * (number + 1))
        write_wheel(folder / "archives", f"{name}-1.0", {f"{name}/code.py": source(*numbers)})
    path = folder.with_name("packages.txt")
    path.write_text("# little ones\n" + "".join(f"{name}==1.0\n" for name in names))
    return path


def outputs(folder: Path) -> dict[str, bytes]:
    """All files of a corpus that are results."""
    paths = [*folder.glob("*/*.jsonl"), folder / "statistics.json"]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def build(packages: Path, out: Path, *, jobs: int = 1, seed: int = 0) -> None:
    main([str(packages), "-o", str(out), "--jobs", str(jobs), "--seed", str(seed)])


def refusal(*arguments: object, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the last line on stderr of a command that exits with 2."""
    with pytest.raises(SystemExit) as caught:
        main([*map(str, arguments)])
    assert caught.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


def test_a_list_becomes_two_sets_split_by_package(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packages = write_packages(tmp_path / "corpus")
    build(packages, tmp_path / "corpus")
    printed = capsys.readouterr()
    figures = json.loads((tmp_path / "corpus" / "statistics.json").read_text())
    assert figures["packages mined"] == PACKAGES
    for rule in ("paper", "strict"):
        parts = {side: read_pairs(tmp_path / "corpus" / rule / f"{side}.jsonl") for side in SIDES}
        assert {side: len(part) for side, part in parts.items()} == {
            "train": 90,
            "dev": 5,
            "test": 5,
        }
        assert figures["rules"][rule]["split"]["test"] == {"functions": 5, "packages": 1}
        example = parts["train"][0]
        assert list(example.x) == ["docstring", "name", "arguments"]
        assert sorted(example.meta) == ["file", "line", "package"]
        assert example.y.endswith("]")
    assert "duplicate bodies out" in printed.out
    assert "90 of 18 packages" in printed.out
    assert printed.err == f"the corpus is in {tmp_path / 'corpus'}\n"


def test_two_builds_are_the_same_byte_by_byte_whatever_the_processes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        packages = write_packages(tmp_path / name)
    lines = packages.read_text().splitlines()
    packages.with_name("backwards.txt").write_text("\n".join(reversed(lines)))
    build(packages, tmp_path / "one")
    build(packages.with_name("backwards.txt"), tmp_path / "two", jobs=2)
    found = outputs(tmp_path / "one")
    assert len(found) == 6 + PACKAGES + 1
    assert outputs(tmp_path / "two") == found
    build(packages, tmp_path / "two", seed=1)
    assert outputs(tmp_path / "two") != found


def test_a_list_that_names_the_sides_it_would_get_gives_the_same_bytes(tmp_path: Path) -> None:
    packages = write_packages(tmp_path / "plain")
    write_packages(tmp_path / "named")
    build(packages, tmp_path / "plain")
    sides = {
        example.meta["package"]: side
        for side in SIDES
        for example in read_pairs(tmp_path / "plain" / "strict" / f"{side}.jsonl")
    }
    packages.write_text("".join(f"{name}==1.0 {side}\n" for name, side in sides.items()))
    build(packages, tmp_path / "named")
    assert outputs(tmp_path / "named") == outputs(tmp_path / "plain")


def test_packages_go_to_the_side_that_the_list_names(tmp_path: Path) -> None:
    out = tmp_path / "corpus"
    packages = write_packages(out)
    named = {f"p{number}x": SIDES[number % 3] for number in range(PACKAGES)}
    packages.write_text("".join(f"{name}==1.0 {side}\n" for name, side in named.items()))
    build(packages, out)
    for rule in ("paper", "strict"):
        for side in SIDES:
            found = {e.meta["package"] for e in read_pairs(out / rule / f"{side}.jsonl")}
            assert found == {name for name, wanted in named.items() if wanted == side}


def test_a_group_on_two_sides_ends_with_one_line_and_no_corpus(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "corpus"
    packages = write_packages(out)
    for name in ("twin_a", "twin_b"):
        write_wheel(out / "archives", f"{name}-1.0", {f"{name}.py": source(990)})
    packages.write_text(packages.read_text() + "twin-a==1.0 dev\ntwin-b==1.0 test\n")
    last = refusal(packages, "-o", out, "--jobs", 1, capsys=capsys)
    assert last.startswith(f"error: {packages}: twin-a is assigned to dev and twin-b to test, but")
    assert not (out / "statistics.json").exists()


def test_what_is_malformed_is_named_and_the_rest_is_built(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "corpus"
    packages = write_packages(out)
    archives = out / "archives"
    truncate(write_wheel(archives, "cut-1.0", {"cut.py": source(900)}))
    write_wheel(archives, "outside-1.0", {"../outside.py": source(901)})
    write_bomb(archives / "bomb-1.0-py3-none-any.whl")
    mixed: dict[str, str | bytes] = {
        "old.py": "print 'two'\n",
        "zero.py": b"x = 1\x00\n",
        "line.py": b"x = '" + b"a" * 50_000_000 + b"'\n",
        "good.py": source(902),
    }
    write_wheel(archives, "mixed-1.0", mixed)
    more = ("cut", "outside", "bomb", "mixed", "no-such-package")
    packages.write_text(packages.read_text() + "".join(f"{name}==1.0\n" for name in more))
    build(packages, out)
    wheel = "1.0-py3-none-any.whl"
    remarks = capsys.readouterr().err.splitlines()
    assert remarks == [
        "skipped no-such-package==1.0: cannot be downloaded "
        "(No matching distribution found for no-such-package==1.0)",
        f"skipped bomb-{wheel}: unpacks to more than 536,870,912 bytes; do not trust it",
        f"skipped cut-{wheel}: damaged (File is not a zip file); "
        "delete it and run the same command to download it again",
        remarks[3],
        "skipped mixed: zero.py:1: not Python 3: source code string cannot contain null bytes",
        "skipped mixed: line.py:1: larger than 2,097,152 bytes",
        f"skipped outside-{wheel}: names a file outside of itself ('../outside.py'); "
        "do not trust it",
        f"the corpus is in {out}",
    ]
    assert remarks[3].startswith("skipped mixed: old.py:1: not Python 3: Missing parentheses in")
    figures = json.loads((out / "statistics.json").read_text())
    assert figures["packages mined"] == PACKAGES + 1
    assert figures["files that cannot be read"] == 3
    missing = figures["packages without an archive that can be read"]
    assert missing == ["bomb", "cut", "no-such-package", "outside"]
    assert not (tmp_path / "outside.py").exists()


def test_a_source_archive_that_is_there_is_read(tmp_path: Path) -> None:
    out = tmp_path / "corpus"
    packages = write_packages(out)
    packages.write_text(packages.read_text() + "solo==2.0\n")
    (tmp_path / "solo.py").write_text(source(950))
    with tarfile.open(out / "archives" / "solo-2.0.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "solo.py", "solo-2.0/src/solo.py")
    build(packages, out)
    rows = [e for side in SIDES for e in read_pairs(out / "paper" / f"{side}.jsonl")]
    (example,) = [e for e in rows if e.meta["package"] == "solo"]
    assert example.meta["file"] == "src/solo.py"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.txt", "-o", "out"], "error: none.txt: cannot be read"),
        (["/dev/zero", "-o", "out"], "error: /dev/zero: cannot be read (larger than"),
        (["list.txt", "-o", "list.txt"], "error: list.txt: is a file; name a folder"),
        (["list.txt", "-o", "."], "error: .: holds other files; name a new folder"),
        (["list.txt", "-o", "out"], "error: list.txt: no documented function in 0 mined"),
        (["list.txt", "-o", "out", "--jobs", "0"], "'0' is not a number of at least 1"),
        (["list.txt"], "the following arguments are required: -o/--out"),
    ],
)
def test_mistakes_end_with_one_line_that_says_what_to_do(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "list.txt").write_text("no-such-package==1.0\n")
    monkeypatch.chdir(tmp_path)
    assert message in refusal(*arguments, capsys=capsys)
    assert not (tmp_path / "out" / "statistics.json").exists()


def many_functions(folder: Path) -> Path:
    """Packages that take a while to mine."""
    packages = write_packages(folder)
    for number in range(PACKAGES):
        name = f"p{number}x"
        text = "".join(function(1_000 * (number + 1) + row) for row in range(120))
        write_wheel(folder / "archives", f"{name}-1.0", {f"{name}/code.py": text})
    return packages


def started(packages: Path, out: Path, jobs: int) -> Iterator[subprocess.Popen[str]]:
    """A build that has mined at least two packages, and not all."""
    command = [*COMMAND, str(packages), "-o", str(out), "--jobs", str(jobs)]
    with subprocess.Popen(
        command, cwd=ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        while len(list(out.glob("mined/*.jsonl"))) < 2:
            assert process.poll() is None
            time.sleep(0.005)
        yield process


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_build_goes_on_to_the_same_bytes(jobs: int, tmp_path: Path) -> None:
    packages = many_functions(tmp_path / "whole")
    many_functions(tmp_path / "killed")
    build(packages, tmp_path / "whole")
    for process in started(packages, tmp_path / "killed", jobs):
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert not (tmp_path / "killed" / "statistics.json").exists()
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "killed/mined").glob("*.jsonl")}
    assert 2 <= len(kept) < PACKAGES
    build(packages, tmp_path / "killed")
    assert outputs(tmp_path / "killed") == outputs(tmp_path / "whole")
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_says_how_to_go_on(jobs: int, tmp_path: Path) -> None:
    packages = many_functions(tmp_path / "corpus")
    for process in started(packages, tmp_path / "corpus", jobs):
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
        assert process.stderr is not None
        last = process.stderr.read().strip().splitlines()
    assert process.returncode == 130
    assert last == ["interrupted; run the same command again to resume"]
    assert not (tmp_path / "corpus" / "statistics.json").exists()
    build(packages, tmp_path / "corpus")
