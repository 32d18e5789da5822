"""`redraft serve --watch`: a real server whose model follows a folder of Python files."""

from pathlib import Path

import httpx
import pytest

from redraft.cli.serve import check_paths
from redraft.errors import ConfigError
from tests.conftest import Run
from tests.serving.http.servers import functions, greetings, running, wait_until


@pytest.fixture
def model(tmp_path: Path) -> Path:
    functions().save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "shapes.py").write_text("def edge(area):\n    return area ** 0.5\n")
    return folder


def suggested(url: str) -> str:
    text = "def edge(area):\n    "
    asked = {"text": text, "offset": len(text), "k": 1}
    found = httpx.post(f"{url}/v1/complete", json=asked).json()["completions"]
    return str(found[0]["text"]) if found else ""


def examples(url: str) -> int:
    return int(httpx.get(f"{url}/v1/models").json()["models"][0]["examples"])


def test_the_functions_of_a_folder_are_the_examples_also_when_they_change(
    model: Path, project: Path
) -> None:
    before = sorted(path.name for path in model.rglob("*"))
    with running(model, "--watch", project) as server:
        wait_until(lambda: suggested(server.url) == "return area ** 0.5")
        (project / "shapes.py").write_text("def edge(area):\n    return sqrt(area)\n")
        wait_until(lambda: suggested(server.url) == "return sqrt(area)")
        (project / "shapes.py").write_text("def edge(area:\n")  # while it is being typed
        (project / "more.py").write_text("def corner(edge):\n    return edge * 2 ** 0.5\n")
        wait_until(lambda: examples(server.url) == 2)
        assert suggested(server.url) == "return sqrt(area)"
        code, said = server.stop()
    assert code == 0
    assert "Traceback" not in said
    assert sorted(path.name for path in model.rglob("*")) == before


def test_a_model_of_other_pairs_goes_on_answering(tmp_path: Path, project: Path) -> None:
    greetings(3).save(tmp_path / "greet")
    with running(tmp_path / "greet", "--watch", project) as server:
        assert server.process.stderr is not None
        said = server.process.stderr.readline()
        asked = {"inputs": ["greet Ada"]}
        assert httpx.post(f"{server.url}/v1/predict", json=asked).status_code == 200
        said += server.stop()[1]
    assert "a code base needs a model of mined functions (docstring, name, arguments)" in said
    assert "Traceback" not in said


def test_a_path_that_is_not_there_is_told(model: Path, redraft: Run, tmp_path: Path) -> None:
    message = "no such file or folder; name Python sources"
    with pytest.raises(ConfigError, match=message):
        check_paths([tmp_path / "nowhere"])
    done = redraft("serve", model, "--port", 0, "--watch", tmp_path / "nowhere")
    assert done.returncode == 2
    assert message in done.stderr
