"""`redraft index` and `redraft complete` on Go files, as processes."""

import json
import subprocess
import sys
from pathlib import Path

HANDLER = """package shop

func Get{0}(w http.ResponseWriter, r *http.Request) {{
	{1}, err := store.Find{0}(r.Context())
	if err != nil {{
		return
	}}
	writeJSON(w, {1})
}}
"""


def redraft(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "redraft", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_go_is_indexed_and_completed(tmp_path: Path) -> None:
    project = tmp_path / "shop"
    project.mkdir()
    for name in ("Order", "Item", "Basket", "Bill"):
        (project / f"{name.lower()}.go").write_text(HANDLER.format(name, name.lower()))
    (project / "node_modules").mkdir()
    (project / "node_modules" / "skipped.js").write_text("function f() {\n  return 1\n}\n")
    (project / "data.min.js").write_text("a" * 6000)
    indexed = redraft("index", project, "-o", tmp_path / "mine")
    assert indexed.returncode == 0, indexed.stderr
    assert json.loads(indexed.stdout)["examples"] == 4
    assert "data.min.js:1: minified: a line of 6,000 characters" in indexed.stderr
    typed = HANDLER.format("User", "user").split("\tif err")[0] + "\t"
    buffer = tmp_path / "user.go"
    buffer.write_text(typed)
    place = f"{buffer}:{typed.count(chr(10)) + 1}:2"
    completed = redraft("complete", tmp_path / "mine", place, "-k", 1)
    assert completed.returncode == 0, completed.stderr
    suggestion = json.loads(completed.stdout)
    assert suggestion["text"].startswith("if err != nil {")
    assert suggestion["prototype"]["meta"]["language"] == "go"


def test_a_folder_without_functions_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty.go").write_text("package shop\n")
    done = redraft("index", tmp_path, "-o", tmp_path / "mine")
    assert done.returncode == 2
    assert done.stderr.strip().splitlines()[-1] == (
        "error: no function with a body was found; give a folder of sources"
    )
