"""What the repository promises runs: every example, every command of the pages, fast start-up."""

import csv
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from redraft import Example, RetrieveAndEdit, read_pairs

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
MOST_LINES = 150
MOST_BYTES = 2_000_000


def blocks(language: str, *pages: str) -> list[str]:
    """Return the code blocks of a language in these pages of docs/."""
    text = "".join((ROOT / "docs" / page).read_text() for page in pages)
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def run(command: str, folder: Path) -> str:
    """Run a command of a page in a folder and return its output."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": path},
    )
    # `check` leaves with 1 when it has found something
    fine = (0, 1) if command.startswith("redraft check ") else (0,)
    assert done.returncode in fine, f"{command}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name
)
def test_every_example_runs(path: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, path], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= MOST_LINES


def test_the_pictures_of_the_readme_are_small_and_one_moves() -> None:
    paths = [ROOT / name for name in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README)]
    assert {path.suffix for path in paths} == {".gif", ".png"}
    assert all(path.stat().st_size <= MOST_BYTES for path in paths)
    [moving] = [path.read_bytes() for path in paths if path.suffix == ".gif"]
    # one graphic control extension per frame, and the extension that repeats them
    assert moving.count(b"\x21\xf9\x04") >= 20
    assert b"NETSCAPE2.0" in moving


def test_the_examples_of_the_readme_print_what_it_shows(tmp_path: Path) -> None:
    (tmp_path / "src").symlink_to(ROOT / "src")
    for name, code in re.findall(r'```python title="(.*?)"\n(.*?)```', README, flags=re.DOTALL):
        (tmp_path / name).write_text(code)
    examples = re.findall(r"```sh\n(.*?)```\n\n```text\n(.*?)```", README, flags=re.DOTALL)
    assert len(examples) == README.count("```sh\n") == 2
    for commands, shown in examples:
        outputs = [run(command, tmp_path) for command in commands.splitlines()]
        # probabilities differ a little between machines, and functions move within their files
        number = r"[\d.]+ ?%|:\d+$"
        assert re.sub(number, "", outputs[-1], flags=re.M) == re.sub(number, "", shown, flags=re.M)


def write_tickets(path: Path) -> None:
    """Write the messy export of docs/quickstart.md: `;`, a byte-order mark, empty cells."""
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        table = csv.writer(file, delimiter=";")
        table.writerow(["Ticket", "Question asked", "Answer SQL", "Agent", "Date"])
        pairs = read_pairs(ROOT / "src/redraft/data/support/pairs.jsonl")
        for row, pair in enumerate(pairs):
            question = "  " if row % 55 == 3 else pair.x["text"]
            answer = "" if row % 40 == 7 else pair.y
            table.writerow(
                [1000 + row, question, answer, pair.meta.get("author"), pair.meta.get("date")]
            )


def without_figures(text: str) -> list[str]:
    """Return the words of a text without figures, which differ a little between machines."""
    return re.sub(r"[\d.]+|─+", " ", text).split()


def test_the_quickstart_prints_what_it_shows(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "quickstart.md").read_text()
    write_tickets(tmp_path / "tickets.csv")
    [shown] = re.findall(r'```text title="tickets.csv"\n(.*?)```', page, flags=re.DOTALL)
    exported = (tmp_path / "tickets.csv").read_text(encoding="utf-8-sig")
    assert exported.startswith(shown)
    for name, text in re.findall(r'```json title="(.*?)"\n(.*?)```', page, flags=re.DOTALL):
        (tmp_path / name).write_text(text)
    blocks = re.findall(r"```sh\n(.*?)```(?:\n\n```text\n(.*?)```)?", page, flags=re.DOTALL)
    assert [bool(shown) for _, shown in blocks] == [False, True, False, True, True]
    for commands, shown in blocks:
        lines = commands.replace("\\\n", " ").splitlines()
        outputs = [run(command, tmp_path) for command in lines]
        if shown:
            assert without_figures(outputs[-1]) == without_figures(shown)


def test_every_command_of_the_docs_runs_in_order(tmp_path: Path) -> None:
    for name in ("errors.py", "types.py", "cli/demo.py", "cli/_panels.py"):  # the rest takes longer
        (tmp_path / "src" / "redraft" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "src" / "redraft" / name, tmp_path / "src" / "redraft" / name)
    pages = ("pairs.md", "completion.md")
    commands = "".join(blocks("sh", *pages)).splitlines()
    assert len(commands) >= 16
    for command in commands:
        run(command, tmp_path)
    for code in blocks("python", *pages):
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


def test_the_client_of_the_docs_asks_a_real_server(tmp_path: Path) -> None:
    from tests.server.http.servers import running

    pair = Example({"text": "sum the first 3 items of decks"}, "sum(decks[:3])")
    RetrieveAndEdit.fit([pair], retriever="lexical", editor="verbatim").save(tmp_path / "model")
    [code] = blocks("py", "serving.md")
    with running(tmp_path / "model") as server:
        code = code.replace("http://127.0.0.1:8000", server.url)
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "sum(decks[:3]) sum(decks[:3])\n"
    assert len(RetrieveAndEdit.load(tmp_path / "model").retriever.examples) == 2


def test_the_wheel_holds_the_product_and_no_research(tmp_path: Path) -> None:
    from hatchling.builders.wheel import WheelBuilder

    [wheel] = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(wheel) as archive:
        names = [Path(name) for name in archive.namelist()]
    [stated] = re.findall(r"The wheel itself is (\d+) kB", (ROOT / "docs/install.md").read_text())
    assert abs(Path(wheel).stat().st_size / 1000 - int(stated)) < 0.1 * int(stated)
    assert Path("redraft/cli/app.py") in names
    assert {name.parts[0].partition("-")[0] for name in names} == {"redraft"}


def seconds(*arguments: str) -> float:
    """The least CPU seconds of three runs of a fresh interpreter."""
    times = []
    for _ in range(3):
        start = os.times()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
        end = os.times()
        times.append(
            end.children_user + end.children_system - start.children_user - start.children_system
        )
    return min(times)


def test_importing_the_library_is_quick_and_brings_no_heavy_package() -> None:
    heavy = [
        "torch",
        "numpy",
        "scipy",
        "faiss",
        "safetensors",
        "nltk",
        "plotly",
        "rich",
        "typer",
    ]
    code = f"import redraft, sys; assert not set({heavy}) & set(sys.modules), sys.modules"
    assert seconds("-c", code) < 0.2


def test_a_saved_model_answers_without_the_packages_that_only_fitting_needs(
    examples: list[Example], tmp_path: Path
) -> None:
    RetrieveAndEdit.fit(examples).save(tmp_path / "model")
    code = """
import sys
from redraft import RetrieveAndEdit
model = RetrieveAndEdit.load(sys.argv[1])
assert model.predict_one("sum the first 9 items of decks").output == "sum(decks[:9])"
print({"torch", "scipy.optimize"} & set(sys.modules))
"""
    command = [sys.executable, "-c", code, str(tmp_path / "model")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("set()\n", 0), done.stderr


def test_help_is_quick() -> None:
    code = "import sys; sys.argv = ['redraft', '--help']; from redraft.cli.app import main; main()"
    assert seconds("-c", code) < 1.0


def test_every_public_name_is_there() -> None:
    import redraft

    assert len(redraft.__all__) <= 12
    for name in redraft.__all__:
        assert getattr(redraft, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = redraft.nonsense


def test_the_changelog_tells_of_this_version() -> None:
    from redraft import __version__

    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text()
