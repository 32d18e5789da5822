"""Bulk work on a real Ray cluster: the same bytes as of one process, whoever is killed."""

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from redraft import Example
from redraft.bulk.addresses import PARTIAL
from redraft.cli.app import app
from tests.cluster.ray_cluster import RayNodes, ray_nodes
from tests.conftest import Run
from tests.retrieval.test_dense import saved_embedder

PATIENCE = 120.0
ROWS = ("--rows", 50)


@pytest.fixture(scope="module")
def nodes() -> Iterator[RayNodes]:
    """A cluster of one node, which no test kills."""
    with ray_nodes(1) as running:
        yield running


@pytest.fixture
def model(examples: list[Example], tmp_path: Path) -> Path:
    return saved_embedder(examples, tmp_path / "model")


def rows_file(path: Path, count: int) -> Path:
    """So many different inputs."""
    path.parent.mkdir(exist_ok=True)
    rows = ({"x": f"sum the first {at} items of {'decks' * (at % 5)}"} for at in range(count))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, hidden ones too."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def alone(*arguments: object) -> dict[str, int]:
    """What one process tells, and writes: this one, since others take seconds to start."""
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert done.exit_code == 0, done.stderr
    told: dict[str, int] = json.loads(done.stdout)
    return told


def finish(redraft: Run, *arguments: object) -> dict[str, int]:
    done = redraft(*arguments)
    assert done.returncode == 0, done.stderr
    told: dict[str, int] = json.loads(done.stdout)
    return told


def refusal(redraft: Run, *arguments: object) -> str:
    done = redraft(*arguments)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    return str(line)


@contextmanager
def begun(*arguments: object, out: Path, shards: int) -> Iterator["subprocess.Popen[str]"]:
    """The command, when it has written so many shards."""
    command = [sys.executable, "-c", "from redraft.cli.app import main; main()"]
    with subprocess.Popen(
        [*command, *map(str, arguments), "-o", out],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            deadline = time.monotonic() + PATIENCE
            while not out.exists() or len(list(out.glob("0*"))) < shards:
                assert process.poll() is None, process.communicate()
                assert time.monotonic() < deadline, "no shard was written in time"
                time.sleep(0.02)
            yield process
        finally:
            process.kill()


def test_a_node_or_the_whole_cluster_dies_in_the_middle_and_nothing_is_lost(
    model: Path, tmp_path: Path, redraft: Run
) -> None:
    for part in ("0", "1"):
        rows_file(tmp_path / "rows" / f"{part}.jsonl", 1500)
    embed = ("embed", model, tmp_path / "rows", *ROWS)
    whole, survived, lost = (tmp_path / name for name in ("whole", "survived", "lost"))
    assert alone(*embed, "-o", whole)["shards"] == 60
    with ray_nodes(3) as cluster:
        ray = ("--ray", cluster.address)
        with begun(*embed, *ray, out=survived, shards=3) as process:
            assert cluster.kill_one() == 1  # with a shard in hand
            written = len(list(survived.glob("0*")))
            said, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, errors
        assert written < 60
        assert errors == ""
        assert json.loads(said)["written"] == 60
        assert contents(survived) == contents(whole)

        with begun(*embed, *ray, out=lost, shards=3) as process:
            cluster.kill_all()
            _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 2
        assert errors == (
            f"error: {cluster.address}: lost the Ray cluster; written shards are kept, "
            "run the same command to resume\n"
        )
        # a node that was killed while it wrote leaves a part, which the next run removes
        there = {name: kept for name, kept in contents(lost).items() if PARTIAL not in name}
        assert 3 <= len(there) < 60
        assert {name: contents(whole)[name] for name in there} == there
        assert "no Ray cluster answers there" in refusal(redraft, *embed, *ray, "-o", lost)
    told = alone(*embed, "-o", lost)
    assert told["found"] == len(there) - 1  # all but job.json
    assert contents(lost) == contents(whole)


def test_predictions_of_parquet_are_those_of_one_process(
    nodes: RayNodes, model: Path, tmp_path: Path, redraft: Run
) -> None:
    texts = [f"max the first {at} items of cards" for at in range(120)]
    parquet.write_table(pyarrow.table({"x": texts}), tmp_path / "inputs.parquet")
    predict = ("predict", model, "--file", tmp_path / "inputs.parquet", "-k", 2, *ROWS)
    alone(*predict, "-o", tmp_path / "alone")
    told = finish(redraft, *predict, "-o", tmp_path / "ray", "--ray", nodes.address)
    assert (told["shards"], told["written"], told["rows"]) == (3, 3, 120)
    assert contents(tmp_path / "ray") == contents(tmp_path / "alone")


def test_pairs_of_sources_are_those_of_one_process_and_a_bad_row_is_named(
    nodes: RayNodes, tmp_path: Path, redraft: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = sorted((Path(__file__).parent.parent.parent / "src").rglob("*.py"))[:30]
    rows = [{"content": path.read_text(), "file": path.name} for path in sources]
    rows.append({"content": "no python", "file": "z.py"})
    file = tmp_path / "sources.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    mine = ("mine", file, "--rows", 8)
    alone(*mine, "-o", tmp_path / "alone")
    monkeypatch.setenv("RAY_ADDRESS", nodes.address)  # as `ray job submit` does
    done = redraft(*mine, "--ray", "-o", tmp_path / "ray")
    assert done.returncode == 0
    assert done.stderr == "skipped z.py:1: not Python 3: invalid syntax\n"
    assert contents(tmp_path / "ray") == contents(tmp_path / "alone")

    file.write_text(file.read_text() + "{\n")
    line = refusal(redraft, *mine, "-o", tmp_path / "bad", "--ray", nodes.address)
    assert line.startswith(f"error: {file}:32: not JSON (")


def test_an_interrupted_job_goes_on(nodes: RayNodes, model: Path, tmp_path: Path) -> None:
    embed = ("embed", model, rows_file(tmp_path / "rows.jsonl", 1500), "--rows", 10)
    out = tmp_path / "vectors"
    with begun(*embed, "--ray", nodes.address, out=out, shards=2) as process:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert errors == "interrupted; no partial output was left behind\n"
    found = len(list(out.glob("0*")))
    assert 2 <= found < 150
    assert alone(*embed, "-o", out)["found"] == found
    alone(*embed, "-o", tmp_path / "alone")
    assert contents(out) == contents(tmp_path / "alone")


def test_without_a_cluster_the_cores_of_this_machine_do_the_work(
    tmp_path: Path, redraft: Run
) -> None:
    sources = Path(__file__).parent
    alone("mine", sources, "-o", tmp_path / "alone", "--rows", 4)
    # `local`, since a cluster of another test may be running here
    told = finish(redraft, "mine", "--ray", "local", sources, "-o", tmp_path / "ray", "--rows", 4)
    assert told["found"] == 0
    assert contents(tmp_path / "ray") == contents(tmp_path / "alone")


WITHOUT_REDRAFT = """
import sys

class Nowhere:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "redraft":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Nowhere())
"""


def test_a_machine_without_redraft_is_told_and_modules_of_the_user_are_left_alone(
    tmp_path: Path, redraft: Run
) -> None:
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "sitecustomize.py").write_text(WITHOUT_REDRAFT)
    (tmp_path / "cwd" / "ray.py").write_text("raise ImportError")
    with ray_nodes(1, PYTHONPATH=str(tmp_path / "bare")) as bare:
        mine = ("mine", Path(__file__), "-o", tmp_path / "out", "--ray", bare.address)
        line = refusal(redraft, *mine)
    assert line.startswith(f"error: {bare.address}: a worker cannot start (")
    assert "No module named 'redraft'" in line


def test_a_wrong_address_is_told_before_anything_is_read(
    model: Path, tmp_path: Path, redraft: Run
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    out = tmp_path / "vectors"
    line = refusal(redraft, "embed", model, tmp_path / "nowhere", "-o", out, "--ray", address)
    assert line == (f"error: {address}: no Ray cluster answers there; check the address of --ray")
    assert not out.exists()
