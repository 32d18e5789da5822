"""What the system refuses is one line and exit code 2; streams and signals are no tracebacks."""

import ctypes
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from redraft import Example, RetrieveAndEdit
from redraft.cli.app import app
from redraft.data.pairs import write_pairs

FAST = ("--retriever", "bm25", "--editor", "verbatim")
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 24, 1, 2
LONG = "n" * 300
QUESTION = "sum the first 2 cards → ä"


def obey_permissions() -> None:
    """Take from root, before a program is started, the power to pass over permissions."""
    if os.getuid() == 0:
        library = ctypes.CDLL(None)
        for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
            assert library.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0


@pytest.fixture
def place(examples: list[Example]) -> Iterator[Path]:
    """A folder that every user can reach, with a model and its pairs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        write_pairs(examples, folder / "pairs.jsonl")
        RetrieveAndEdit.fit(examples, retriever="bm25", editor="verbatim").save(folder / "model")
        yield folder


def start(folder: Path, *arguments: object, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "redraft", *map(str, arguments)]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    environment = {**os.environ, **streams.pop("env", {})}
    return subprocess.Popen(command, cwd=folder, text=True, env=environment, **streams)


def run(folder: Path, *arguments: object, **options: Any) -> tuple[int, str, str]:
    """The exit code of the real command, and what it printed."""
    process = start(folder, *arguments, **options)
    stdout, stderr = process.communicate()
    return process.returncode, stdout or "", stderr or ""


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("predict", "model", QUESTION),
        ("predict", "model", QUESTION, "--format", "table"),
        ("info", "model"),
        ("--help",),
    ],
    ids=lambda arguments: " ".join(arguments[::3]),
)
def test_results_that_cannot_be_written_are_told(
    arguments: tuple[str, ...], unbuffered: str, place: Path
) -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123
        code, _, stderr = run(place, *arguments, stdout=full, env={"PYTHONUNBUFFERED": unbuffered})
        assert code == 2
        expected = "error: standard output: cannot be written (No space left on device); free"
        assert stderr.startswith(expected)
        assert len(stderr.splitlines()) == 1
        code, _, _ = run(
            place, *arguments, stdout=full, stderr=full, env={"PYTHONUNBUFFERED": unbuffered}
        )
        assert code == 2


@pytest.mark.parametrize("closed", [(1,), (2,), (1, 2), (0, 1, 2)])
def test_closed_streams_lose_what_is_printed_and_nothing_else(
    closed: tuple[int, ...], place: Path
) -> None:
    arguments = ("fit", "pairs.jsonl", "-o", "new", *FAST)

    def close_streams() -> None:
        for descriptor in closed:
            os.close(descriptor)

    code, _, stderr = run(place, *arguments, preexec_fn=close_streams)
    assert (code, stderr) == (0, "")
    assert len(RetrieveAndEdit.load(place / "new").retriever.examples) == 60


ENCODINGS = [
    {"PYTHONIOENCODING": "ascii"},
    {"PYTHONIOENCODING": "latin-1:strict"},
    {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
]


@pytest.mark.parametrize("environment", ENCODINGS, ids=lambda each: ",".join(each.values()))
def test_a_stream_that_is_not_utf_8_gets_escapes(environment: dict[str, str], place: Path) -> None:
    for arguments in (
        ("predict", "model", '{"text": "sum \\u2192 \\ud800"}'),
        ("predict", "model", '{"text": "sum \\u2192 \\ud800"}', "--format", "table"),
        ("--help",),
    ):
        code, stdout, stderr = run(place, *arguments, env=environment, errors="replace")
        assert (code, stderr) == (0, "")
        assert r"\u2192" in stdout


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("retrieve", "model", "sum the first", "-k", "60", "--format", "json"),
        ("retrieve", "model", "sum the first", "-k", "60", "--format", "table"),
        ("fit", "--help"),
        ("--help",),
    ],
    ids=["json", "table", "help", "help-of-all"],
)
def test_a_reader_that_leaves_is_no_error(
    arguments: tuple[str, ...], unbuffered: str, place: Path
) -> None:
    process = start(place, *arguments, env={"PYTHONUNBUFFERED": unbuffered})
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait() == 141
    process.stderr.close()


@pytest.mark.parametrize("name", ["fit", "compare"])
def test_a_reader_that_leaves_in_the_middle_of_the_help_is_no_error(name: str, place: Path) -> None:
    process = start(place, name, "--help", env={"PYTHONUNBUFFERED": "1"})
    assert process.stdout is not None
    assert process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait() in (0, 141)
    process.stderr.close()


@pytest.mark.parametrize(
    "arguments",
    [
        ("add", "model", "pairs.jsonl"),
        ("remove", "model", "--where", "verb=sum"),
        ("fit", "pairs.jsonl", "-o", "new", *FAST),
        ("fit", "pairs.jsonl", "-o", "model", *FAST),
        ("split", "pairs.jsonl", "-o", "parts"),
        ("evaluate", "model", "pairs.jsonl", "-o", "scores"),
    ],
    ids=lambda arguments: " ".join(arguments[:4:3]),
)
def test_a_folder_that_may_not_be_written_is_named(arguments: tuple[str, ...], place: Path) -> None:
    for folder in (place / "model", place):
        folder.chmod(0o555)
    before = (place / "model" / "manifest.json").read_bytes()
    code, stdout, stderr = run(place, *arguments, preexec_fn=obey_permissions)
    place.chmod(0o755)
    (place / "model").chmod(0o755)
    assert (code, stdout) == (2, "")
    assert stderr.startswith("error: ")
    assert "Permission denied" in stderr
    assert len(stderr.splitlines()) == 1
    assert (place / "model" / "manifest.json").read_bytes() == before


def test_a_file_that_cannot_grow_is_told_with_the_folder(place: Path) -> None:
    arguments = ("fit", "pairs.jsonl", "-o", "new", *FAST)
    code, stdout, stderr = run(
        place,
        *arguments,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)),
        env={"PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert (code, stdout) == (2, "")
    expected = "error: new: cannot be written (File too large); raise the limit on file sizes"
    assert stderr.startswith(expected)
    assert len(stderr.splitlines()) == 1


def refused(*arguments: object) -> str:
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert done.exit_code == 2, done.output
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    return line


@pytest.mark.parametrize("name", [LONG, f"pairs.jsonl/{LONG}", "pairs.jsonl/model"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("fit", "pairs.jsonl", "-o", "?", *FAST),
        ("fit", "pairs.jsonl", "-o", "new", *FAST, "--config", "?"),
        ("fit", "?", "-o", "new", *FAST),
        ("split", "pairs.jsonl", "-o", "?"),
        ("evaluate", "model", "pairs.jsonl", "-o", "?"),
        ("check", "?"),
        ("info", "?"),
        ("add", "?", "pairs.jsonl"),
        ("predict", "?", "x"),
        ("predict", "model", "--file", "?"),
        ("score", "?", "pairs.jsonl"),
        ("complete", "model", "?:1:1"),
        ("mine", "?", "-o", "new"),
    ],
    ids=lambda arguments: " ".join(each for each in arguments if each not in FAST),
)
def test_names_that_cannot_be_are_refused(
    arguments: tuple[str, ...], name: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    refused(*(each.replace("?", name) for each in arguments))
    assert {path.name for path in place.iterdir()} == {"pairs.jsonl", "model"}


def test_a_lack_of_memory_is_one_line(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*_: object, **__: object) -> None:
        bytearray(1 << 62)

    monkeypatch.setattr(RetrieveAndEdit, "load", load)
    assert refused("predict", place / "model", "x").startswith(
        "error: not enough memory; use fewer"
    )


INTERRUPTED = """
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
sys.argv = ["redraft", "predict", "model", "x"]
from redraft.__main__ import main
main()
"""


@pytest.mark.parametrize(
    "name", ["redraft.cli.app", "typer", "redraft.cli.serve", "numpy", "redraft.model"]
)
def test_ctrl_c_while_modules_are_imported_is_one_line(name: str, place: Path) -> None:
    command = [sys.executable, "-c", INTERRUPTED.format(name=name)]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert done.stdout == ""
    assert done.stderr.startswith("interrupted")
    assert len(done.stderr.splitlines()) == 1


def test_an_ignored_ctrl_c_stays_ignored(place: Path) -> None:
    command = [sys.executable, "-c", INTERRUPTED.format(name="typer")]
    done = subprocess.run(
        command,
        cwd=place,
        capture_output=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN) and None,
    )
    assert done.returncode == 0
