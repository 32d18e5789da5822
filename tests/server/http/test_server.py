"""Real server processes: start, refusals and shutdown."""

import contextlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from redraft import RetrieveAndEdit
from redraft.cli.serve import check_apart, named_folders
from redraft.errors import ConfigError, ModelError
from redraft.server.http.server import BindAddress, bind, url_of
from tests.conftest import Run
from tests.server.http.servers import SECONDS, Running, greetings, running, wait_until

ASKED = {"inputs": ["greet Ada"]}

GATED = """
import sys, time
from pathlib import Path
from redraft.server.http.app import AppConfig
from redraft.server.http.server import BindAddress, loader, serve

folder, gate, begun = Path(sys.argv[2]), Path(sys.argv[3]), []

def load():
    served = loader("gated", folder)()
    predict = served.predict
    def wait_and_predict(request):
        begun.append(request)
        while not gate.exists():
            time.sleep(0.01)
        return predict(request)
    served.predict = wait_and_predict
    return served

serve({"gated": load}, BindAddress(port=0), AppConfig(), announce=print)
print("stopped after", len(begun), file=sys.stderr)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    greetings(3).save(tmp_path / "greet")
    return tmp_path / "greet"


def in_flight(url: str) -> int:
    found = re.search(r"^redraft_requests_in_flight (\d+)", httpx.get(f"{url}/metrics").text, re.M)
    return int(found[1]) - 1 if found else 0


def is_refused(url: str) -> bool:
    try:
        httpx.get(f"{url}/healthz")
    except httpx.TransportError:
        return True
    return False


@contextlib.contextmanager
def held(
    folder: Path, gate: Path, count: int
) -> Iterator[tuple[Running, list["Future[httpx.Response]"]]]:
    """Run a server with pending requests that wait for a file."""
    with (
        running(folder, gate, code=GATED) as server,
        ThreadPoolExecutor(count) as pool,
        httpx.Client(base_url=server.url, timeout=SECONDS, limits=httpx.Limits()) as client,
    ):
        asked = [pool.submit(client.post, "/v1/predict", json=ASKED) for _ in range(count)]
        wait_until(lambda: in_flight(server.url) == count)
        yield server, asked


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_shutdown_finishes_accepted_requests_and_accepts_no_more(
    folder: Path, tmp_path: Path, stop: signal.Signals
) -> None:
    with held(folder, tmp_path / "gate", 64) as (server, asked):
        server.process.send_signal(stop)
        wait_until(lambda: is_refused(server.url))
        (tmp_path / "gate").touch()
        answers = [each.result() for each in asked]
        _, said = server.process.communicate(timeout=SECONDS)
        assert [answer.status_code for answer in answers] == [200] * 64
        assert answers[63].json()["results"][0][0]["output"] == 'print("hello Ada")'
        assert server.process.returncode == 0
        assert said.endswith("stopped after 3\n")  # one alone, and then twice those that waited


def test_requests_of_disconnected_clients_are_dropped(folder: Path, tmp_path: Path) -> None:
    with held(folder, tmp_path / "gate", 1) as (server, asked):
        impatient = httpx.Timeout(SECONDS, read=0.3)
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{server.url}/v1/predict", json=ASKED, timeout=impatient)
        wait_until(lambda: in_flight(server.url) == 1)
        (tmp_path / "gate").touch()
        assert asked[0].result().status_code == 200
        assert 'status="499"} 1.0' in httpx.get(f"{server.url}/metrics").text
        assert server.stop() == (0, "stopped after 1\n")


@pytest.mark.parametrize("kept", [0, 2])
def test_killed_while_it_adds_the_folder_has_the_old_state_or_the_new(
    folder: Path, kept: int
) -> None:
    answered = 0

    def add_without_end(url: str) -> None:
        nonlocal answered
        with contextlib.suppress(httpx.TransportError):
            for at in range(10_000):
                example = {"x": f"greet number {at}", "y": f"hello({at})"}
                httpx.post(f"{url}/v1/examples", json={"examples": [example]}).raise_for_status()
                answered = at + 1

    with running(folder) as server, ThreadPoolExecutor(1) as pool:
        adding = pool.submit(add_without_end, server.url)
        wait_until(lambda: answered >= kept and any(folder.glob(".staging-*")))
        server.process.kill()
        adding.result()
    model = RetrieveAndEdit.load(folder)
    assert len(model.retriever.examples) in (3 + answered, 3 + answered + 1)
    assert model.predict_one("greet Ada").output == 'print("hello Ada")'


def test_it_says_where_it_is_and_stops_with_code_0(folder: Path) -> None:
    shutil.copytree(folder, folder.parent / "copy")
    with running(folder, f"other={folder.parent / 'copy'}", ready=False) as server:
        assert server.url.startswith("http://127.0.0.1:")
        assert httpx.get(f"{server.url}/healthz").json()["status"] == "ok"
        assert httpx.get(f"{server.url}/v1/models").status_code in (200, 503)
        wait_until(lambda: httpx.get(f"{server.url}/readyz").status_code == 200)
        models = httpx.get(f"{server.url}/v1/models").json()["models"]
        assert [each["name"] for each in models] == ["greet", "other"]
        large = iter([b"x" * 100_000] * 200)
        headers = {"Content-Type": "application/json"}
        refused = httpx.post(f"{server.url}/v1/predict", content=large, headers=headers)
        assert refused.status_code == 413
        assert server.stop() == (0, "stopped\n")


def test_nothing_that_is_asked_is_logged(folder: Path) -> None:
    with running(folder) as server:
        url = f"{server.url}/v1"
        httpx.post(f"{url}/predict", json={"inputs": ["typed text"], "typed": 1})
        httpx.post(f"{url}/predict", content=b"typed {", headers={"Content-Type": "typed/typed"})
        httpx.delete(f"{url}/examples", params={"where": "typed=typed"})
        with socket.create_connection((httpx.URL(url).host, httpx.URL(url).port or 0)) as raw:
            raw.sendall(b"typed typed typed\r\n\r\n")
            assert raw.recv(100).startswith(b"HTTP/1.1 400")
        _, said = server.stop()
        assert "typed" not in said


def test_a_model_that_cannot_be_loaded_is_a_one_line_error(redraft: Run, folder: Path) -> None:
    examples = next(folder.glob("examples*"))
    examples.write_bytes(examples.read_bytes() + b"\n")
    done = redraft("serve", folder, "--port", "0")
    assert done.returncode == 2
    assert "truncated or altered" in done.stderr
    assert "Traceback" not in done.stderr


def test_invalid_options_are_one_line_errors(redraft: Run, folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = redraft("serve", folder, "--port", port)
    assert done.returncode == 2
    assert done.stderr == (
        f"error: --port {port}: in use; choose another, or 0 for any free port\n"
    )
    done = redraft("serve", folder, "--host", "0.0.0.0", "--port", 0)
    assert done.returncode == 2
    assert done.stderr.startswith(
        "error: --host 0.0.0.0: other machines could send requests without a token"
    )


def test_the_help_tells_what_is_served_and_where(redraft: Run) -> None:
    done = redraft("serve", "--help")
    assert done.returncode == 0
    for said in ("NAME=FOLDER", "REDRAFT_TOKEN", "/v1/predict", "Ctrl-C", "--no-batching"):
        assert said in done.stdout


def test_without_its_packages_the_extra_is_named() -> None:
    code = (
        "import sys, importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'fastapi' else real(name, *a)\n"
        "sys.argv = ['redraft', 'serve', 'model']; from redraft.cli.app import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        "error: redraft serve needs fastapi, which is not installed; "
        "install it with: pip install 'redraft[serve]'\n"
    )


def test_models_are_named_by_their_folders_or_by_hand(folder: Path) -> None:
    assert named_folders([str(folder), f"b={folder}"]) == {"greet": folder, "b": folder}
    with pytest.raises(ConfigError, match="another model has the name greet; give it as NAME="):
        named_folders([str(folder), str(folder)])
    with pytest.raises(ConfigError, match="name the model with letters"):
        named_folders([f"a/b={folder}"])
    with pytest.raises(ModelError, match=r"nowhere: not a model \(no manifest.json\)"):
        named_folders(["nowhere"])


def test_two_models_are_not_written_to_one_folder(redraft: Run, folder: Path) -> None:
    link = folder.parent / "link"
    link.symlink_to(folder)
    with pytest.raises(ConfigError, match="is served as a and b, and each would overwrite"):
        check_apart({"a": folder, "b": link})
    done = redraft("serve", folder, f"other={folder}", "--port", 0)
    assert done.returncode == 2
    assert "name it once, or copy the folder" in done.stderr


def test_a_time_limit_without_end_is_refused(redraft: Run, folder: Path) -> None:
    done = redraft("serve", folder, "--port", 0, "--time-limit", "inf")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "Invalid value for '--time-limit'" in done.stderr


def test_as_many_ids_as_may_be_removed_fit_into_a_request_however_it_is_cut(folder: Path) -> None:
    query = "&".join(f"id={at:032x}" for at in range(1000))
    head = f"DELETE /v1/examples?{query} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    with running(folder) as server:
        url = httpx.URL(server.url)
        with socket.create_connection((url.host, url.port or 0)) as raw:
            for start in range(0, len(head), 4000):
                raw.sendall(head[start : start + 4000])
                time.sleep(0.005)  # a part at a time, as over a network
            assert raw.recv(100).startswith(b"HTTP/1.1 404")


def test_a_foreign_host_is_an_error() -> None:
    for host in ("203.0.113.7", "nowhere.invalid"):
        with pytest.raises(ConfigError, match=f"--host {host}: not an address of this machine"):
            bind(BindAddress(host, 0))
    assert url_of("::1", 80) == "http://[::1]:80"


def test_responses_are_sent_without_waiting_for_an_acknowledgement() -> None:
    with (
        bind(BindAddress("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname()),
        listening.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
