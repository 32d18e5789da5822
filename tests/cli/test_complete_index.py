"""`redraft index` and `redraft complete` as a developer runs them."""

import json
from pathlib import Path

import pytest

from tests.baskets import basket_model, method, source, write_project
from tests.conftest import Run

OTHERS = ("zinnia", "yucca", "xenia", "wisteria")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "model"
    basket_model(tmp_path_factory.getbasetemp()).save(folder)
    return folder


def test_a_model_is_pointed_at_a_project_and_completes_its_code(
    model: Path, tmp_path: Path, redraft: Run
) -> None:
    project = write_project(tmp_path / "shop", OTHERS)
    done = redraft("index", project, "-o", tmp_path / "mine", "--from", model)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "model": str(tmp_path / "mine"),
        "examples": 4,
        "removed": 20,
        "added": 4,
    }
    text = "class Shop:\n" + method("gerbera")
    buffer = tmp_path / "shop.py"
    buffer.write_text(text[: text.index("return self")])
    line = buffer.read_text().count("\n") + 1
    done = redraft("complete", tmp_path / "mine", f"{buffer}:{line}:9", "-k", "2")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(row) for row in done.stdout.splitlines()]
    assert [row["rank"] for row in rows] == [1, 2]
    assert rows[0]["text"] == "return self.put(gerbera)"
    assert rows[0]["prototype"]["meta"]["file"].startswith("basket_")
    place, text = f"unsaved.py:{line}:9", buffer.read_text()
    arguments = (tmp_path / "mine", place, "--stdin", "--format", "table")
    done = redraft("complete", *arguments, stdin=text)
    assert "return self.put(gerbera)" in done.stdout.splitlines()[0]
    assert "basket_" in done.stdout

    (project / "basket_2.py").write_text(source(("xenia",)))
    done = redraft("index", project, "-o", tmp_path / "mine")
    changed = json.loads(done.stdout)
    assert (changed["examples"], changed["removed"], changed["added"]) == (3, 2, 1)
    done = redraft("index", project, "-o", tmp_path / "mine")
    unchanged = json.loads(done.stdout)
    assert (unchanged["examples"], unchanged["removed"], unchanged["added"]) == (3, 0, 0)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("cards.py", "cards.py: expected FILE:LINE:COL, such as src/cards.py:12:9"),
        ("cards.py:x:1", "cards.py:x:1: expected FILE:LINE:COL, such as src/cards.py:12:9"),
        ("missing.py:1:1", "missing.py: cannot be read (No such file or directory); check"),
        ("latin.py:1:1", "latin.py: not UTF-8 (invalid start byte); save it as UTF-8"),
        ("short.py:9:1", "short.py: line 9: the text has lines 1 to 2; name one of them"),
        ("short.py:1:99", "short.py: line 1, column 99: the line has columns 1 to 6; name one of"),
    ],
)
def test_a_place_that_is_not_there_is_told(
    model: Path, tmp_path: Path, redraft: Run, place: str, message: str
) -> None:
    (tmp_path / "cwd" / "latin.py").write_bytes(b"\xff\xfe")
    (tmp_path / "cwd" / "short.py").write_text("x = 1\n")
    done = redraft("complete", model, place)
    assert done.returncode == 2
    assert f"error: {message}" in done.stderr


def test_a_code_base_is_completed_from_without_a_trained_model(
    tmp_path: Path, redraft: Run
) -> None:
    project = write_project(tmp_path / "shop", OTHERS)
    assert redraft("index", project, "-o", tmp_path / "mine").returncode == 0
    file = project / "new.py"
    file.write_text('def add_violet(self, violet):\n    """Add the violet."""\n    ')
    done = redraft("complete", tmp_path / "mine", f"{file}:3:5", "-k", "1")
    assert done.returncode == 0
    assert json.loads(done.stdout)["text"].startswith("if violet in self.all:")
