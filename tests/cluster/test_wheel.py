"""The wheel that users get: built as a release is, checked, and used in a clean environment."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAIRS = "question;sql\n" + "".join(f"show item {n};SELECT {n};;\n" for n in range(3))


def run(*command: object, cwd: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_wheel_is_built_checked_and_works_in_a_clean_environment(tmp_path: Path) -> None:
    run(
        *(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, ROOT),
        cwd=tmp_path,
    )
    [wheel] = tmp_path.glob("redraft-*.whl")
    assert "PASSED" in run(sys.executable, "-m", "twine", "check", "--strict", wheel, cwd=tmp_path)
    run(sys.executable, "-m", "venv", "clean", cwd=tmp_path)
    python = tmp_path / "clean" / "bin" / "python"
    constraints = ("--constraint", ROOT / "constraints.txt")
    run(python, "-m", "pip", "install", "--quiet", *constraints, wheel, cwd=tmp_path)
    (tmp_path / "pairs.csv").write_text(PAIRS.replace(";;", ""))
    redraft = tmp_path / "clean" / "bin" / "redraft"
    columns = ("--x-columns", "question", "--y-column", "sql")
    run(redraft, "fit", "pairs.csv", "-o", "model", *columns, cwd=tmp_path)
    answer = json.loads(run(redraft, "predict", "model", "show item 2", cwd=tmp_path))
    assert answer["output"] == "SELECT 2"
    scores = json.loads(run(redraft, "evaluate", "model", "pairs.csv", *columns, cwd=tmp_path))
    assert scores["right"] == 3  # without plotly: no report, but scores
    assert not (tmp_path / "evaluation" / "report.html").exists()
