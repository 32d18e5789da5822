"""A model whose examples are in PostgreSQL does all that one with its folder does."""

from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redraft import Example, RetrieveAndEdit
from redraft.errors import PairsError
from redraft.persistence import refreshed
from redraft.postgres.examples import PostgresExamples
from redraft.postgres.store import created, schema_of
from redraft.retrieval.base import Retriever
from redraft.storage.examples import matches
from redraft.training.fit import FitOptions
from redraft.types import meta_problem
from tests.cluster.postgres_server import PASSWORD
from tests.conftest import sentence
from tests.greetings import SETTINGS

RETRIEVERS = ("lexical", "bm25", "none", "task")
NEW = [sentence("min", count, "hands") for count in range(1, 4)]


def fitted(examples: list[Example], retriever: str = "lexical") -> RetrieveAndEdit:
    options = FitOptions(SETTINGS)
    return RetrieveAndEdit.fit(examples, retriever=retriever, editor="verbatim", options=options)


def changed(model: RetrieveAndEdit, rows: list[int], added: list[Example]) -> RetrieveAndEdit:
    return RetrieveAndEdit(model.retriever.replace(rows, added), model.editor)


def schemas(store: str) -> list[str]:
    with psycopg.connect(store) as connection:
        rows = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname ~ '^redraft_'")
        return [name for (name,) in rows]


def answers(retriever: Retriever, **options: object) -> list[list[tuple[str, float]]]:
    """What some inputs retrieve, and how far it is."""
    inputs = [{"text": "sum the first 9 items of hands"}, {"text": "max cards"}]
    found = retriever.retrieve(inputs, 4, **options)  # type: ignore[arg-type]
    return [[(each.example.y, round(each.distance, 4)) for each in ranked] for ranked in found]


@pytest.mark.parametrize("name", RETRIEVERS)
def test_a_store_answers_as_a_folder_does(
    name: str, examples: list[Example], tmp_path: Path, store: str
) -> None:
    model = fitted(examples, name)
    model.save(tmp_path / "stored", store=store)
    folder, stored = model, RetrieveAndEdit.load(tmp_path / "stored", store=store)
    assert list(stored.retriever.examples) == list(model.retriever.examples)
    removed = [0, 7, 59]
    for step in (lambda each: each, lambda each: changed(each, removed, NEW)):
        folder, stored = step(folder), step(stored)
        _same_answers(folder.retriever, stored.retriever)
    stored.save(tmp_path / "stored")
    again = RetrieveAndEdit.load(tmp_path / "stored", store=store)
    assert list(again.retriever.examples) == list(folder.retriever.examples)
    _same_answers(folder.retriever, again.retriever)


def _same_answers(folder: Retriever, stored: Retriever) -> None:
    where, without = {"verb": "sorted"}, {"verb": "sum"}
    assert answers(stored) == answers(folder)
    assert answers(stored, where=where) == answers(folder, where=where)
    assert answers(stored, without=without) == answers(folder, without=without)
    assert stored.inverse_temperature == folder.inverse_temperature


def test_a_stored_model_can_be_saved_to_a_folder_of_its_own(
    examples: list[Example], tmp_path: Path, store: str
) -> None:
    fitted(examples, "task").save(tmp_path / "stored", store=store)
    stored = RetrieveAndEdit.load(tmp_path / "stored", store=store)
    changed(stored, [0], NEW).save(tmp_path / "plain")
    plain = RetrieveAndEdit.load(tmp_path / "plain")
    assert list(plain.retriever.examples) == [*list(stored.retriever.examples)[1:], *NEW]
    assert answers(plain.retriever) == answers(changed(stored, [0], NEW).retriever)
    assert len(refreshed(stored).retriever.examples) == len(examples)


def test_the_folder_holds_neither_examples_nor_the_address(
    examples: list[Example], tmp_path: Path, store: str
) -> None:
    fitted(examples, "bm25").save(tmp_path / "model", store=store)
    content = b"".join(each.read_bytes() for each in tmp_path.rglob("*") if each.is_file())
    assert b"players" not in content
    assert PASSWORD.encode() not in content
    assert b"127.0.0.1" not in content


def test_models_in_one_database_are_apart(
    examples: list[Example], tmp_path: Path, store: str
) -> None:
    for name in ("one", "other"):
        fitted(examples[:5]).save(tmp_path / name, store=store)
    assert len(schemas(store)) == 2
    one = RetrieveAndEdit.load(tmp_path / "one", store=store)
    changed(one, [0, 1], NEW).save(tmp_path / "one")
    assert len(refreshed(one).retriever.examples) == 6
    other = RetrieveAndEdit.load(tmp_path / "other", store=store)
    assert list(other.retriever.examples) == examples[:5]


def test_a_view_stays_as_it_was_until_it_is_refreshed(
    examples: list[Example], tmp_path: Path, store: str
) -> None:
    fitted(examples, "task").save(tmp_path / "model", store=store)
    one, other = (RetrieveAndEdit.load(tmp_path / "model", store=store) for _ in range(2))
    before = answers(other.retriever)
    assert refreshed(other) is other
    changed(one, [], NEW).save(tmp_path / "model")
    assert answers(other.retriever) == before
    now = refreshed(other)
    assert list(now.retriever.examples) == [*one.retriever.examples, *NEW]
    [[found]] = now.retriever.retrieve([NEW[0].x])
    assert found.example == NEW[0]


def test_changes_of_two_do_not_undo_each_other(
    examples: list[Example], tmp_path: Path, store: str
) -> None:
    fitted(examples).save(tmp_path / "model", store=store)
    one, other = (RetrieveAndEdit.load(tmp_path / "model", store=store) for _ in range(2))
    changed(one, [0, 1], NEW[:1]).save(tmp_path / "model")
    changed(other, [1, 2], NEW[1:]).save(tmp_path / "model")
    assert list(refreshed(one).retriever.examples) == [*examples[3:], *NEW]


def test_the_last_examples_cannot_be_removed_by_two(
    examples: list[Example], tmp_path: Path, store: str
) -> None:
    fitted(examples[:2]).save(tmp_path / "model", store=store)
    one, other = (RetrieveAndEdit.load(tmp_path / "model", store=store) for _ in range(2))
    changed(one, [0], []).save(tmp_path / "model")
    with pytest.raises(PairsError, match="that would remove every example"):
        changed(other, [1], []).save(tmp_path / "model")
    assert list(refreshed(one).retriever.examples) == [examples[1]]


def test_fitting_again_leaves_the_old_examples_where_they_are(
    examples: list[Example], tmp_path: Path, store: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    for count in (5, 7):
        fitted(examples[:count]).save(tmp_path / "model", store=store)
    loaded = RetrieveAndEdit.load(tmp_path / "model", store=store)
    assert len(loaded.retriever.examples) == 7
    assert len(schemas(store)) == 2
    assert "the examples it had before stay in their schema redraft_" in caplog.text


odd_keys = st.text(st.characters(), max_size=3)
values = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(), st.sampled_from([10**4000, 10**5000])),
    st.recursive(st.just(1), lambda inner: st.lists(inner) | st.dictionaries(odd_keys, inner)),
)
odd = st.text(st.characters(), max_size=6)  # NUL and halves of characters too
metas = st.dictionaries(st.sampled_from(["a", "b", "ü\0", '"%s']), odd | values, max_size=3)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(metas, min_size=1, max_size=6), metas, metas)
def test_sql_filters_as_python_does(
    store: str, held: list[dict[str, object]], where: dict[str, object], without: dict[str, object]
) -> None:
    held = [meta for meta in held if meta_problem(meta) is None] or [{}]
    where, without = (
        {key: value for key, value in asked.items() if meta_problem({key: value}) is None}
        for asked in (where, without)
    )
    examples = [
        Example({"b": f"{at}\0", "a": "\ud800%"}, "y", meta) for at, meta in enumerate(held)
    ]
    with created(store, examples, None) as made:
        stored = PostgresExamples.read(made)
        made.close()
    as_saved = [Example.from_json(each.to_json()) for each in examples]
    assert [list(each.x.items()) for each in stored] == [list(each.x.items()) for each in as_saved]
    for kept, left_out in ((where, without), (held[0], {}), ({}, held[-1]), ({"a": None}, {})):
        if kept or left_out:
            allowed = stored.allowed(kept, left_out)
            assert allowed.tolist() == matches(examples, kept, left_out).tolist()
    stored.store.close()


def test_the_name_of_a_schema_is_that_of_its_model(examples: list[Example], store: str) -> None:
    with created(store, examples, None) as made:
        assert schemas(store) == [schema_of(made.model)]
