"""A retriever without examples is still what it learned: saved, loaded and put over others."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from redraft.artifact import open_artifact, write_artifact
from redraft.data import filed
from redraft.data.example import Example
from redraft.data.filed import gather
from redraft.editing.editor import VerbatimEditor
from redraft.errors import MissingExtraError
from redraft.experiment import save_model
from redraft.retrieval.hybrid import HybridRetriever
from redraft.retrieval.index import ExactIndex
from redraft.retrieval.learned import TaskRetriever
from redraft.retrieval.lexical import Bm25Retriever, LexicalRetriever
from redraft.retrieval.retriever import NoRetriever, Retriever
from redraft.retrieval.stored import StoredExamples, StoredIndex
from redraft.retrieve_and_edit import RetrieveAndEdit
from tests.retrieval.test_learned import untrained
from tests.retrieval.test_retriever import LineRetriever, at, places


def retrievers(examples: list[Example]) -> list[Retriever]:
    encoder = untrained(["text"], [example.x["text"] for example in examples])
    task, bm25 = TaskRetriever.build(examples, encoder), Bm25Retriever.build(examples)
    lexical = LexicalRetriever.build(examples)
    return [task, bm25, lexical, HybridRetriever(task, bm25, 0.3), NoRetriever(examples)]


@pytest.mark.parametrize("kind", range(5))
def test_without_examples_it_is_saved_and_put_over_others(
    kind: int, examples: list[Example], tmp_path: Path
) -> None:
    retriever = retrievers(examples)[kind]
    bare = retriever.over([])
    assert bare.retrieve([examples[0].x], 3) == [[]]
    with write_artifact(tmp_path / "bare") as staging:
        bare.save(staging)
    loaded = type(retriever).load(open_artifact(tmp_path / "bare"), [])
    inputs = [example.x for example in examples[::9]]
    assert loaded.over(examples).retrieve(inputs, 3) == retriever.retrieve(inputs, 3)
    assert loaded.sharpness == retriever.sharpness


def test_only_retrievers_by_vectors_have_directions(examples: list[Example]) -> None:
    task, bm25, lexical, hybrid, none = retrievers(examples)
    assert task.directions([2, 0]) == pytest.approx(hybrid.directions([2, 0]))
    assert [each.directions([0]) for each in (bm25, lexical, none)] == [None] * 3


def test_a_retriever_of_ones_own_is_put_over_other_examples() -> None:
    assert places(LineRetriever([at(5), at(1)]).over([at(3), at(9)]), 4, k=2) == [3, 9]


def test_a_store_without_its_extra_says_how_to_install_it(
    examples: list[Example], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    model = RetrieveAndEdit(LexicalRetriever.build(examples), VerbatimEditor())
    expected = (
        r"--store needs psycopg, which .*; install it with: pip install 'redraft\[postgres\]'"
    )
    with pytest.raises(MissingExtraError, match=expected):
        save_model(model, tmp_path / "model", store="postgresql://me@localhost/cards")
    assert not (tmp_path / "model").exists()


def test_of_many_examples_added_to_a_store_the_stored_ones_are_not_encoded(
    examples: list[Example], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filed, "MANY", 3)
    encoder = untrained(["text"], [example.x["text"] for example in examples])
    store = SimpleNamespace(width=TaskRetriever.build(examples, encoder).index.width)
    ids = np.arange(len(examples))
    held = StoredExamples(cast(Any, store), 1, ids, ids, examples)
    stored = TaskRetriever([], encoder, ExactIndex(np.zeros((0, store.width), np.float32))).over(
        held
    )
    added = gather((Example({"text": f"new {n}"}, f"y{n}") for n in range(5)), tmp_path / "new")
    index = stored.add(added).index
    assert isinstance(index, StoredIndex)
    assert index.added == pytest.approx(encoder.encode([each.x for each in added]), abs=1e-6)
