"""What can be wrong with a store is one line that says what to do, and nothing is lost."""

import shutil
import socket
from pathlib import Path

import psycopg
import pytest

from redraft import Example
from redraft.data.pairs import write_pairs
from redraft.persistence import load_model
from tests.cluster.gates import PATIENCE, gate, until_someone_waits
from tests.cluster.models import outputs, save_stored, schema_in
from tests.cluster.postgres_server import PASSWORD, PostgresServer
from tests.cluster.test_store_is_killed import more, redraft_process
from tests.conftest import Run

FIT = ("--retriever", "lexical", "--editor", "verbatim")


@pytest.fixture
def model(examples: list[Example], tmp_path: Path, store: str) -> Path:
    save_stored(examples, tmp_path / "model", store)
    return tmp_path / "model"


def refusal(redraft: Run, *arguments: object) -> str:
    """The one line that a command says on its failure."""
    done = redraft(*arguments)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert PASSWORD not in line
    return line


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def test_a_wrong_address_is_told_before_anything_is_trained(
    pairs_file: Path, tmp_path: Path, redraft: Run
) -> None:
    place = f"127.0.0.1:{closed_port()}/cards"
    store = f"postgresql://me:{PASSWORD}@{place}"
    line = refusal(redraft, "fit", pairs_file, "-o", tmp_path / "new", "--store", store)
    advice = "no PostgreSQL server answers there; check the address of --store"
    assert line == f"error: {place}: {advice}"
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "wrong",
    [
        f"mysql://me:{PASSWORD}@h/d",
        f"postgresql://me:{PASSWORD}@h/d?colour=red",
        f"postgresql://me:{PASSWORD}/{PASSWORD}@h/d",
        f"postgresql://me:a@{PASSWORD}@h/d",
    ],
)
def test_what_is_no_address_is_not_repeated(wrong: str, model: Path, redraft: Run) -> None:
    line = refusal(redraft, "info", model, "--store", wrong)
    assert line == "error: --store: expected an address, postgresql://USER@HOST:PORT/DATABASE"


def test_a_wrong_password_is_told(
    pairs_file: Path, tmp_path: Path, server: PostgresServer, redraft: Run
) -> None:
    store = server.url(password="wrong-secret")
    line = refusal(redraft, "fit", pairs_file, "-o", tmp_path / "new", "--store", store)
    assert line == (
        f"error: 127.0.0.1:{server.port}/postgres: the password is missing or wrong; "
        "set it in PGPASSWORD or in ~/.pgpass"
    )
    assert not (tmp_path / "new").exists()


def test_a_database_that_is_not_there_is_told(
    model: Path, server: PostgresServer, redraft: Run
) -> None:
    line = refusal(redraft, "predict", model, "x", "--store", server.url(database="nowhere"))
    assert line == (
        f"error: 127.0.0.1:{server.port}/nowhere: there is no such database; "
        "create it with createdb"
    )


@pytest.mark.parametrize("verb", ["predict", "add", "remove", "index", "serve", "lsp"])
def test_the_store_of_another_model_is_told_by_every_verb(
    verb: str, model: Path, tmp_path: Path, other_store: str, redraft: Run
) -> None:
    write_pairs(more(2), tmp_path / "more.jsonl")
    arguments: dict[str, tuple[object, ...]] = {
        "predict": (model, "sum cards"),
        "add": (model, tmp_path / "more.jsonl"),
        "remove": (model, "--where", "verb=sum"),
        "index": (Path(__file__).parent, "-o", model),
        "serve": (model,),
        "lsp": (model,),
    }
    done = redraft(verb, *arguments[verb], "--store", other_store)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    line = done.stderr.splitlines()[-1]
    place = other_store.rpartition("@")[2]
    assert line == (
        f"error: {place}: holds no examples of this model (no schema {schema_in(model)}); "
        "name the database that it was fitted with"
    )


def test_a_schema_of_another_model_or_version_is_told(
    model: Path, examples: list[Example], tmp_path: Path, store: str, redraft: Run
) -> None:
    other = save_stored(examples[:3], tmp_path / "other", store)
    schema = schema_in(model)
    place = store.rpartition("@")[2]
    with psycopg.connect(store) as connection:
        connection.execute(f"DROP SCHEMA {schema} CASCADE")
        connection.execute(f"ALTER SCHEMA {other} RENAME TO {schema}")
    assert refusal(redraft, "predict", model, "x", "--store", store) == (
        f"error: {place}: schema {schema} holds the examples of another model; "
        "name the database that this one was fitted with"
    )
    with psycopg.connect(store) as connection:
        connection.execute(f"UPDATE {schema}.state SET format = 9")
    assert refusal(redraft, "predict", model, "x", "--store", store) == (
        f"error: {place}: store format 9, this redraft reads 1; "
        "use the redraft that it was fitted with, or fit again"
    )


def test_a_model_says_where_its_examples_are(
    model: Path, pairs_file: Path, tmp_path: Path, store: str, redraft: Run
) -> None:
    assert refusal(redraft, "predict", model, "sum cards") == (
        f"error: {model}: its examples are in a store; name it with --store postgresql://…"
    )
    plain = tmp_path / "plain"
    assert redraft("fit", pairs_file, "-o", plain, *FIT).returncode == 0
    for verb in (("predict", plain, "x"), ("serve", plain)):
        assert refusal(redraft, *verb, "--store", store) == (
            f"error: {plain}: has its examples in the folder; leave out --store"
        )


def test_a_server_that_goes_away_in_the_middle_is_told_and_nothing_is_lost(
    model: Path, tmp_path: Path, server: PostgresServer, store: str, redraft: Run
) -> None:
    write_pairs(more(30), tmp_path / "more.jsonl")
    schema = schema_in(model)
    before = outputs(store, schema)
    add = ("add", model, tmp_path / "more.jsonl", "--store", store)
    with gate(store, schema, row=10), redraft_process(*add) as process:
        until_someone_waits(store)
        server.crash()
        _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    [line] = said.splitlines()
    place = store.rpartition("@")[2]
    assert line.startswith(f"error: {place}: the server went away (")
    assert line.endswith("); the change was made completely or not at all; try again")
    away = refusal(redraft, "predict", model, "sum cards", "--store", store)
    assert "no PostgreSQL server answers there" in away
    server.start()
    assert outputs(store, schema) == before
    done = redraft(*add)
    assert done.returncode == 0, done.stderr
    assert len(outputs(store, schema)) == len(before) + 30


def test_a_copy_of_the_folder_is_the_same_model(
    model: Path, examples: list[Example], tmp_path: Path, store: str
) -> None:
    shutil.copytree(model, tmp_path / "copy")
    loaded = load_model(tmp_path / "copy", store=store)
    assert list(loaded.retriever.examples) == examples
