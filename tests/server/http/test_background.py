"""`redraft serve --watch`: a real server whose model follows a folder of Python files."""

import threading
import time
from pathlib import Path

import httpx
import pytest
from starlette.testclient import TestClient

from redraft.cli.serve import check_paths
from redraft.completion import project as project_module
from redraft.completion.project import Project, mine_all
from redraft.errors import ConfigError
from redraft.mining.python_functions import Source
from redraft.server.http.app import AppConfig, create_app
from redraft.server.http.background import watch_files
from redraft.server.http.model_pool import ModelPoolConfig
from redraft.server.served_model import ServedModel
from tests.conftest import Run
from tests.server.http.servers import (
    SECONDS,
    URL,
    Gated,
    functions,
    greetings,
    running,
    wait_until,
)


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


def test_a_missing_path_is_an_error(model: Path, redraft: Run, tmp_path: Path) -> None:
    message = "no such file or folder; name sources"
    with pytest.raises(ConfigError, match=message):
        check_paths([tmp_path / "nowhere"])
    done = redraft("serve", model, "--port", 0, "--watch", tmp_path / "nowhere")
    assert done.returncode == 2
    assert message in done.stderr


class Slow(ServedModel):
    """Takes its time to index, as a large project does."""

    def index(self, project: Project) -> int:
        time.sleep(0.4)
        return super().index(project)


def names_of(served: ServedModel) -> list[str]:
    return [each.x["name"] for each in served.model.retriever.examples]


def test_the_time_limit_of_requests_is_not_that_of_following(project: Path) -> None:
    slow = Slow("slow", functions())
    config = AppConfig(pool=ModelPoolConfig(time_limit=0.1))
    app = create_app({"slow": lambda: slow}, config, background=[watch_files("slow", [project])])
    with TestClient(app, base_url=URL):
        wait_until(lambda: names_of(slow) == ["edge"])
        time.sleep(0.2)
        (project / "more.py").write_text("def corner(edge):\n    return edge * 2 ** 0.5\n")
        wait_until(lambda: names_of(slow) == ["edge", "corner"])


def test_a_model_that_is_being_loaded_holds_up_no_other_that_follows(project: Path) -> None:
    served, other = ServedModel("code", functions()), Gated("other", greetings())

    def load_slowly() -> ServedModel:
        assert other.gate.wait(SECONDS)
        return other

    loaders = {"code": lambda: served, "other": load_slowly}
    app = create_app(loaders, background=[watch_files("code", [project])])
    with TestClient(app, base_url=URL):
        try:
            wait_until(lambda: names_of(served) == ["edge"])
        finally:
            other.gate.set()


def test_a_server_that_is_stopped_while_it_reads_reads_no_further(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in range(200):
        (project / f"more_{at}.py").write_text(f"def corner_{at}(edge):\n    return edge * {at}\n")
    read: list[str] = []
    begun = threading.Event()

    def mine_slowly(source: Source) -> object:
        read.append(source.name)
        begun.set()
        time.sleep(0.02)
        return mine_all(source)

    monkeypatch.setattr(project_module, "mine_all", mine_slowly)
    served = ServedModel("code", functions())
    app = create_app({"code": lambda: served}, background=[watch_files("code", [project])])
    with TestClient(app, base_url=URL):
        assert begun.wait(SECONDS)
    time.sleep(0.1)
    assert len(read) < 100
    assert names_of(served) == ["area"]
