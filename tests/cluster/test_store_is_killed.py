"""Whoever writes to a store is killed: every change is wholly there, or not at all."""

import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from redraft import Example
from redraft.data.pairs import write_pairs
from redraft.postgres.store import created
from tests.cluster.gates import (
    PATIENCE,
    gate,
    slow_down,
    until,
    until_nobody_changes,
    until_nobody_is_left,
    until_someone_adds,
    until_someone_waits,
)
from tests.cluster.models import outputs, save_stored
from tests.cluster.postgres_server import PostgresServer
from tests.cluster.test_store import schemas
from tests.conftest import Run, sentence

COMMAND = [sys.executable, "-c", "from redraft.cli.app import main; main()"]


def more(count: int, verb: str = "min") -> list[Example]:
    return [sentence(verb, at, "hands") for at in range(count)]


@contextmanager
def redraft_process(*arguments: object) -> Iterator["subprocess.Popen[str]"]:
    command = [*COMMAND, *map(str, arguments)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("is_server_killed_too", [False, True])
def test_an_add_that_is_killed_in_the_middle_adds_nothing(
    is_server_killed_too: bool,
    examples: list[Example],
    tmp_path: Path,
    server: PostgresServer,
    store: str,
    redraft: Run,
) -> None:
    schema = save_stored(examples, tmp_path / "model", store)
    write_pairs(more(40), tmp_path / "more.jsonl")
    before = outputs(store, schema)
    add = ("add", tmp_path / "model", tmp_path / "more.jsonl", "--store", store)
    try:
        with gate(store, schema, row=20), redraft_process(*add) as process:
            until_someone_waits(store)
            process.send_signal(signal.SIGKILL)
            assert process.wait(PATIENCE) == -signal.SIGKILL
            if is_server_killed_too:
                server.crash()
    except psycopg.OperationalError:
        assert is_server_killed_too
    if is_server_killed_too:
        server.start()
    until_nobody_changes(store, schema)
    assert outputs(store, schema) == before
    done = redraft(*add)
    assert done.returncode == 0, done.stderr
    assert outputs(store, schema) == [*before, *(each.y for each in more(40))]


def test_killed_at_any_moment_all_of_an_add_is_there_or_nothing(
    examples: list[Example], tmp_path: Path, store: str
) -> None:
    schema = save_stored(examples, tmp_path / "model", store)
    slow_down(store, schema, 0.01)
    rng = random.Random(0)
    for verb in ("min", "len", "all", "any"):
        before = outputs(store, schema)
        write_pairs(more(60, verb), tmp_path / "more.jsonl")
        add = ("add", tmp_path / "model", tmp_path / "more.jsonl", "--store", store)
        with redraft_process(*add) as process:
            until_someone_adds(store)
            try:
                process.wait(rng.uniform(0, 1.5))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait(PATIENCE)
        until_nobody_changes(store, schema)
        added = [each.y for each in more(60, verb)]
        assert outputs(store, schema) in (before, before + added)


def test_a_fit_that_is_killed_while_it_fills_its_store_leaves_nothing(
    pairs_file: Path, tmp_path: Path, store: str
) -> None:
    fit = ("fit", pairs_file, "-o", tmp_path / "model", "--store", store)
    parts = ("--retriever", "lexical", "--editor", "verbatim")
    with psycopg.connect(store) as connection:
        # the schema is made, and cannot be described yet
        connection.execute("LOCK TABLE pg_catalog.pg_description IN EXCLUSIVE MODE")
        with redraft_process(*fit, *parts) as process:
            until_someone_waits(store)
            process.send_signal(signal.SIGKILL)
            assert process.wait(PATIENCE) == -signal.SIGKILL
    until_nobody_is_left(store)
    assert schemas(store) == []
    assert not (tmp_path / "model" / "manifest.json").exists()


def test_a_schema_that_no_model_came_to_name_is_removed_by_a_later_fit(
    examples: list[Example], store: str
) -> None:
    code = (
        "import sys; from redraft import Example; from redraft.postgres.store import created\n"
        "with created(sys.argv[1], [Example({'text': 'x'}, 'y')], None) as store:\n"
        "    print(store.model, flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, store]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as killed, subprocess.Popen(command, **pipes) as alive:  # type: ignore[call-overload]
        names = {each: f"redraft_{each.stdout.readline().strip()}" for each in (killed, alive)}
        assert sorted(schemas(store)) == sorted(names.values())
        killed.kill()
        killed.wait(PATIENCE)
        until(store, "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory'")
        with created(store, examples, None) as first:
            first.close()
        assert len(schemas(store)) == 3  # its folder may have been whole a moment ago
        with psycopg.connect(store) as connection:
            for name in names.values():
                connection.execute(f"UPDATE {name}.state SET made = made - interval '2 hours'")
        with created(store, examples, None) as made:
            made.close()
        left = [names[alive], *(f"redraft_{each.model}" for each in (first, made))]
        assert sorted(schemas(store)) == sorted(left)
        alive.communicate("")
    assert alive.returncode == 0
