"""Measure what each extra installs: `python -m benchmarks.extras` writes docs/install.md's table.

Builds the wheel and installs it into a new environment with the pinned versions; each extra goes
into a copy of it. Seconds are pip's processor time, since the clock depends on other work.
"""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

from hatchling.builders.wheel import WheelBuilder

from experiments.lib.tables import insert_table

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "install.md"

PURPOSES = {
    "": "everything that needs no training: pairs, evaluation, comparison, completion",
    "neural": "a network beside the editors; learned retrievers: PyTorch, FAISS",
    "encoders": "retrieval by meaning, with a sentence encoder of yours: ONNX Runtime",
    "report": "the HTML report of `evaluate` and `compare`: Plotly",
    "serve": "`redraft serve` and `redraft.Client`: FastAPI, uvicorn",
    "lsp": "`redraft lsp`, completion in your editor: pygls",
    "languages": "completion of TypeScript, JavaScript, Java and Go: tree-sitter",
    "lm": "a language model beside the editors: httpx",
    "langchain": "an example selector for LangChain",
    "dspy": "demonstrations for DSPy, selected for each input",
    "parquet": "pairs in Parquet files: PyArrow",
    "postgres": "examples in PostgreSQL: psycopg",
    "ray": "bulk work on a Ray cluster, with `parquet`",
}
"""The extras for users, in the order of the table, and what each is for."""


def extras() -> set[str]:
    """Return the extras of the project that are not for its own tests and pages."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return set(project["optional-dependencies"]) - {"dev", "cluster", "lm-tests", "docs"}


def install(requirement: str, folder: Path) -> tuple[float, float]:
    """Install into the environment in `folder`; returns megabytes and processor seconds."""
    before, started = _megabytes(folder), _child_seconds()
    constraints = ["--constraint", str(ROOT / "constraints.txt")]
    python = str(folder / "bin" / "python")
    command = [python, "-m", "pip", "install", "--quiet", *constraints]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([*command, requirement], check=True, env=environment)
    return _megabytes(folder) - before, _child_seconds() - started


def _child_seconds() -> float:
    times = os.times()
    return times.children_user + times.children_system


def _megabytes(folder: Path) -> float:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_size for path in files) / 1e6


def table(figures: dict[str, tuple[float, float]]) -> str:
    """Return the table of the extras in Markdown; the figures of an extra are those it adds."""
    lines = ["| `pip install` | for | MB | CPU seconds |", "|---|---|---|---|"]
    for extra, (megabytes, seconds) in figures.items():
        name, plus = (f"redraft[{extra}]", "+ ") if extra else ("redraft", "")
        cells = [f"`{name}`", PURPOSES[extra], f"{plus}{megabytes:,.0f}", f"{plus}{seconds:.0f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure every extra and write the table."""
    figures = {}
    with TemporaryDirectory() as scratch:
        [built] = WheelBuilder(str(ROOT)).build(directory=scratch, versions=["standard"])
        wheel, core = Path(built), Path(scratch) / "core"
        print(f"{wheel.name}: {wheel.stat().st_size / 1e3:,.0f} kB")
        subprocess.run([sys.executable, "-m", "venv", core], check=True)
        for extra in PURPOSES:
            folder = Path(scratch) / extra if extra else core
            if extra:
                shutil.copytree(core, folder, symlinks=True)
            figures[extra] = install(f"{wheel}[{extra}]" if extra else built, folder)
            print(extra or "core", *(f"{figure:.1f}" for figure in figures[extra]), flush=True)
            if extra:
                shutil.rmtree(folder)
    insert_table(PAGE, "extras", table(figures))


if __name__ == "__main__":
    main()
