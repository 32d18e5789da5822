"""What the repository promises runs: every example, every command of the README, fast start-up."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def commands() -> list[str]:
    """The README's `redraft` commands."""
    return [line for line in "\n".join(blocks("sh")).splitlines() if line.startswith("redraft ")]


@pytest.mark.parametrize(
    "path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name
)
def test_every_example_runs(path: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, path], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_every_command_of_the_readme_runs_in_order(tmp_path: Path) -> None:
    (tmp_path / "src").symlink_to(ROOT / "src")
    assert len(commands()) >= 8
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for command in commands():
        done = subprocess.run(
            command,
            shell=True,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PATH": path},
        )
        # `check` leaves with 1 when it has found something
        fine = (0, 1) if command.startswith("redraft check ") else (0,)
        assert done.returncode in fine, f"{command}\n{done.stderr}"
        assert "Traceback" not in done.stderr
    for code in blocks("python"):
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


def test_the_readmes_client_asks_a_real_server(tmp_path: Path) -> None:
    from redraft import Example, RetrieveAndEdit
    from tests.serving.http.servers import running

    pair = Example({"text": "sum the first 3 items of decks"}, "sum(decks[:3])")
    RetrieveAndEdit.fit([pair], retriever="lexical", editor="verbatim").save(tmp_path / "model")
    [code] = blocks("py")
    with running(tmp_path / "model") as server:
        code = code.replace("http://127.0.0.1:8000", server.url)
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "sum(decks[:3]) sum(decks[:3])\n"
    assert len(RetrieveAndEdit.load(tmp_path / "model").retriever.examples) == 2


def test_every_shipped_config_loads() -> None:
    from redraft.config import read_toml
    from redraft.fitting import FitOptions, editor_config, retriever_config
    from redraft.training import train_editor, train_retriever

    found = sorted((ROOT / "experiments").glob("*/*.toml"))
    options = {path.relative_to(ROOT).as_posix(): FitOptions(read_toml(path)) for path in found}
    for each in options.values():
        retriever_config(533, each), editor_config(533, each)  # an unknown setting is an error
    paper = "experiments/{}/paper.toml"
    assert retriever_config(533, options[paper.format("retrieval")]) == (
        train_retriever.paper_config()
    )
    assert editor_config(533, options[paper.format("hearthstone")]) == train_editor.paper_config()


def assert_shown(mark: str, table: str, page: Path) -> None:
    assert f"<!-- table: {mark} -->\n{table}<!-- end of table -->" in page.read_text()


def test_tables_of_the_retrieval_page_are_those_of_the_results() -> None:
    from redraft.studies.results import Table
    from redraft.studies.retrieval import METRICS

    folder = ROOT / "experiments" / "retrieval"
    rows, table = json.loads((folder / "results.json").read_text())["rows"], Table(METRICS)
    assert_shown("retrieval", table.markdown(rows), folder / "README.md")
    assert_shown("retrieval", table.markdown(rows, is_brief=True), ROOT / "README.md")


def test_tables_of_the_hearthstone_page_are_those_of_the_results() -> None:
    from redraft.studies.hearthstone import SETTING, TABLES

    folder = ROOT / "experiments" / "hearthstone"
    rows = json.loads((folder / "results.json").read_text())["rows"]
    for mark, table in TABLES.items():
        assert_shown(mark, table.markdown(rows), folder / "README.md")
    assert_shown(SETTING, TABLES[SETTING].markdown(rows, is_brief=True), ROOT / "README.md")


@pytest.mark.parametrize("size", ["small", "full"])
def test_tables_of_the_autocomplete_page_are_those_of_the_results(size: str) -> None:
    from redraft.studies.completion_tables import TABLES

    folder = ROOT / "experiments" / "python_autocomplete"
    results = folder / "results.json" if size == "small" else folder / size / "results.json"
    rows = json.loads(results.read_text())["rows"]
    page = (folder / "README.md").read_text()
    shown = re.findall(rf"<!-- table: autocomplete {size}, (.*) -->", page)
    assert len(shown) >= 4
    for name in shown:
        mark = f"<!-- table: autocomplete {size}, {name} -->"
        assert f"{mark}\n{TABLES[name].markdown(rows)}<!-- end of table -->" in page
        brief = TABLES[name].markdown(rows, is_brief=True)
        assert f"{mark}\n{brief}<!-- end of table -->" in README or mark not in README


def test_tables_of_the_pairs_page_are_those_of_the_results() -> None:
    from redraft.studies.pairs import KINDS, tables

    folder = ROOT / "experiments" / "pairs"
    results = folder / "results.json"
    rows = json.loads(results.read_text())["rows"] if results.exists() else []
    for mark, table in tables(list(KINDS)).items():
        assert_shown(mark, table.markdown(rows), folder / "README.md")


def seconds(*arguments: str) -> float:
    """The best of three runs of a fresh interpreter."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return min(times)


def test_importing_the_library_is_quick_and_brings_no_heavy_package() -> None:
    heavy = ["torch", "numpy", "scipy", "faiss", "nltk", "bm25s", "plotly", "rich", "typer"]
    code = f"import redraft, sys; assert not set({heavy}) & set(sys.modules), sys.modules"
    # a third of a second is promised on an idle machine; tests share it
    assert seconds("-c", code) < 0.6


def test_help_is_quick() -> None:
    code = "import sys; sys.argv = ['redraft', '--help']; from redraft.cli.app import main; main()"
    assert seconds("-c", code) < 1.0


def test_every_public_name_is_there() -> None:
    import redraft

    assert len(redraft.__all__) <= 10
    for name in redraft.__all__:
        assert getattr(redraft, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = redraft.nonsense


def test_the_changelog_tells_of_this_version() -> None:
    from redraft import __version__

    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text()
