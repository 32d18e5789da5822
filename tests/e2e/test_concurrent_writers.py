"""Several programs change one model at once: nothing is damaged, nothing acknowledged is lost.

`REDRAFT_TRIALS=40 pytest tests/e2e/test_concurrent_writers.py` repeats every race so often.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from redraft import Example, RetrieveAndEdit
from redraft.data.pairs import write_pairs
from tests.server.http.servers import running

TRIALS = int(os.environ.get("REDRAFT_TRIALS", "1"))
COMMAND = (sys.executable, "-m", "redraft")


@pytest.fixture
def model(tmp_path: Path, examples: list[Example]) -> Path:
    folder = tmp_path / "model"
    RetrieveAndEdit.fit(examples, retriever="bm25", editor="verbatim").save(folder)
    return folder


def named(name: str) -> Example:
    return Example({"text": f"greet {name}"}, f"hello({name!r})", {"verb": "greet"})


def outputs(folder: Path) -> list[str]:
    return [example.y for example in RetrieveAndEdit.load(folder).retriever.examples]


@pytest.mark.parametrize("trial", range(TRIALS))
def test_adders_wait_for_each_other(tmp_path: Path, model: Path, trial: int) -> None:
    before = outputs(model)
    adders = []
    for i in range(4):
        pairs = tmp_path / f"new-{trial}-{i}.jsonl"
        write_pairs([named(f"{trial}-{i}-{j}") for j in range(3)], pairs)
        command = [*COMMAND, "add", str(model), str(pairs)]
        adders.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    for adder in adders:
        stdout, stderr = adder.communicate()
        assert adder.returncode == 0, stderr
        assert json.loads(stdout)["added"] == 3
    added = {named(f"{trial}-{i}-{j}").y for i in range(4) for j in range(3)}
    assert set(outputs(model)) == {*before, *added}
    assert len(outputs(model)) == len(before) + 12
    assert not [path for path in model.iterdir() if path.name.startswith(".")]


def test_loads_beside_a_writer_never_fail(model: Path) -> None:
    is_done, versions = threading.Event(), 0

    def write() -> None:
        nonlocal versions
        while not is_done.is_set():
            loaded = RetrieveAndEdit.load(model)
            added = loaded.retriever.add([named(str(versions))])
            RetrieveAndEdit(added, loaded.editor).save(model)
            versions += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(50 * TRIALS):
            assert len(outputs(model)) >= 60
    finally:
        is_done.set()
        writer.join()
    assert versions > 0
    assert len(outputs(model)) == 60 + versions


@pytest.fixture
def servers(model: Path) -> Iterator[list[str]]:
    with running(model) as first, running(model) as second:
        yield [first.url, second.url]


def test_servers_of_one_folder_keep_what_the_other_added(model: Path, servers: list[str]) -> None:
    before, acknowledged = outputs(model), set[str]()

    def add(number: int) -> None:
        example = named(f"server-{number}")
        response = httpx.post(
            f"{servers[number % 2]}/v1/examples", json={"examples": [example.to_json()]}, timeout=60
        )
        assert response.status_code == 200, response.text
        acknowledged.add(example.y)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(8 * TRIALS)))
    assert len(acknowledged) == 8 * TRIALS
    assert sorted(outputs(model)) == sorted([*before, *acknowledged])


def test_a_second_training_into_one_folder_waits_for_the_first(
    tmp_path: Path, pairs_file: Path
) -> None:
    out = tmp_path / "trained"
    command = [*COMMAND, "fit", str(pairs_file), "-o", str(out), "--retriever", "task"]
    command += ["--editor", "verbatim", "--budget", "2s"]
    fits = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for fit in fits:
        _, stderr = fit.communicate()
        assert fit.returncode == 0, stderr
        assert "Traceback" not in stderr
    assert len(outputs(out)) == 60
    assert not (tmp_path / "trained.training").exists()
