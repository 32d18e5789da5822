"""A retriever without examples keeps its parameters: saved, loaded and given new examples."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from redraft.editing.base import VerbatimEditor
from redraft.errors import MissingExtraError
from redraft.index.base import ExactIndex
from redraft.model import RetrieveAndEdit
from redraft.persistence import save_model
from redraft.postgres.examples import PostgresExamples, PostgresIndex
from redraft.retrieval.base import NoRetriever, Retriever
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.retrieval.bow import BowRetriever
from redraft.retrieval.dense import TaskRetriever
from redraft.storage import disk
from redraft.storage.artifact import open_artifact
from redraft.storage.artifact_writer import write_artifact
from redraft.storage.disk import gather
from redraft.types import Example
from tests.retrieval.test_base import LineRetriever, at, places
from tests.retrieval.test_dense import untrained


def retrievers(examples: list[Example]) -> list[Retriever]:
    encoder = untrained(["text"], [example.x["text"] for example in examples])
    task, bm25 = TaskRetriever.build(examples, encoder), Bm25Retriever.build(examples)
    lexical = BowRetriever.build(examples)
    return [task, bm25, lexical, NoRetriever(examples)]


@pytest.mark.parametrize("kind", range(4))
def test_a_retriever_without_examples_is_saved_and_given_new_ones(
    kind: int, examples: list[Example], tmp_path: Path
) -> None:
    retriever = retrievers(examples)[kind]
    bare = retriever.with_examples([])
    assert bare.retrieve([examples[0].x], 3) == [[]]
    with write_artifact(tmp_path / "bare") as staging:
        bare.save(staging)
    loaded = type(retriever).load(open_artifact(tmp_path / "bare"), [])
    inputs = [example.x for example in examples[::9]]
    assert loaded.with_examples(examples).retrieve(inputs, 3) == retriever.retrieve(inputs, 3)
    assert loaded.inverse_temperature == retriever.inverse_temperature


def test_only_dense_retrievers_have_embeddings(examples: list[Example]) -> None:
    task, bm25, lexical, none = retrievers(examples)
    embeddings = task.embeddings([2, 0])
    assert embeddings is not None
    assert len(embeddings) == 2
    assert [each.embeddings([0]) for each in (bm25, lexical, none)] == [None] * 3


def test_a_custom_retriever_accepts_other_examples() -> None:
    assert places(LineRetriever([at(5), at(1)]).with_examples([at(3), at(9)]), 4, k=2) == [3, 9]


def test_a_store_without_its_extra_says_how_to_install_it(
    examples: list[Example], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    model = RetrieveAndEdit(BowRetriever.build(examples), VerbatimEditor())
    expected = (
        r"--store needs psycopg, which .*; install it with: pip install 'redraft\[postgres\]'"
    )
    with pytest.raises(MissingExtraError, match=expected):
        save_model(model, tmp_path / "model", store="postgresql://me@localhost/cards")
    assert not (tmp_path / "model").exists()


def test_stored_examples_are_not_encoded_when_many_are_added(
    examples: list[Example], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "IN_MEMORY_LIMIT", 3)
    encoder = untrained(["text"], [example.x["text"] for example in examples])
    store = SimpleNamespace(width=TaskRetriever.build(examples, encoder).index.width)
    ids = np.arange(len(examples))
    held = PostgresExamples(cast(Any, store), 1, ids, ids, examples)
    stored = TaskRetriever(
        [], encoder, ExactIndex(np.zeros((0, store.width), np.float32))
    ).with_examples(held)
    added = gather((Example({"text": f"new {n}"}, f"y{n}") for n in range(5)), tmp_path / "new")
    index = stored.add(added).index
    assert isinstance(index, PostgresIndex)
    assert index.added == pytest.approx(encoder.encode([each.x for each in added]), abs=1e-6)
