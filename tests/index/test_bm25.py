"""BM25 in memory: adding and removing rows equals building the index of the rows that are left."""

import json
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redraft.errors import ModelError
from redraft.index import bm25
from redraft.index.bm25 import Bm25Index
from redraft.retrieval import bm25 as retrieval
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.storage.artifact import Artifact, open_artifact
from redraft.storage.artifact_writer import write_artifact
from redraft.text.words import words
from redraft.types import Example, Input
from tests.hostile.seal import seal, stored

WORDS = ("draw", "a", "card", "deal", "damage", "rare1", "rare2", "rare3")

bags = st.lists(st.lists(st.sampled_from(WORDS), max_size=6), max_size=8)
changes = st.lists(st.tuples(st.sets(st.integers(0, 40)), bags), max_size=5)


def examples_of(bags: Sequence[Sequence[str]], first: int = 0) -> list[Example]:
    return [Example({"text": " ".join(bag)}, f"y{first + i}") for i, bag in enumerate(bags)]


def found(retriever: Bm25Retriever, query: Sequence[str]) -> Any:
    """Return all that a retriever finds for a query, in every way."""
    inputs: list[Input] = [{"text": " ".join(query)}, {"text": "A card."}]
    nearest = retriever.search(inputs, 50)
    prototypes = retriever.retrieve(inputs, 5)
    distances = retriever.distances([query]).tolist()
    identities = [retriever.stored.with_identity(e.identity) for e in retriever.examples]
    return nearest.rows.tolist(), nearest.distances.tolist(), prototypes, distances, identities


@given(bags, changes, st.lists(st.sampled_from(WORDS), max_size=5), st.integers(0, 6))
@settings(max_examples=150, deadline=None)
def test_any_changes_equal_building_from_scratch_and_leave_the_old_retriever_as_it_was(
    known: list[list[str]],
    changes: list[tuple[set[int], list[list[str]]]],
    query: list[str],
    most: int,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bm25, "MAX_ADDED", most)
        examples, count = examples_of(known), len(known)
        retriever = Bm25Retriever.build(examples)
        for rows, added in changes:
            removed = sorted(row for row in rows if row < len(examples))
            more = examples_of(added, count)
            count += len(added)
            old, before = retriever, found(retriever, query)
            retriever = old.replace(removed, more)
            assert found(old, query) == before
            examples = [e for row, e in enumerate(examples) if row not in removed] + more
            assert list(retriever.examples) == examples
            assert found(retriever, query) == found(Bm25Retriever.build(examples), query)


def test_a_pair_is_added_in_the_same_memory_to_few_as_to_many() -> None:
    rng = np.random.default_rng(0)
    peaks = []
    for count in (500, 50_000):
        index = Bm25Index.build([f"w{word}" for word in rng.zipf(1.5, 12)] for _ in range(count))
        tracemalloc.start()
        changed = index.replace([], [["w1", "new"]])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert changed.base is index.base
        assert len(changed) == count + 1
    assert peaks[1] < 2 * peaks[0]


def test_only_the_words_of_added_pairs_are_counted(
    examples: list[Example], monkeypatch: pytest.MonkeyPatch
) -> None:
    retriever = Bm25Retriever.build(examples)
    counted: list[Input] = []

    def noted(x: Input) -> list[str]:
        counted.append(x)
        return words(x)

    monkeypatch.setattr(retrieval, "words", noted)
    new = Example({"text": "count all cards"}, "len(cards)")
    changed = retriever.add([new]).remove([0])
    assert counted == [new.x]
    assert changed.retrieve(["count all cards"])[0][0].example == new


def test_rows_kept_apart_stay_few() -> None:
    index = Bm25Index.build([["a"]])
    for row in range(2 * bm25.MAX_ADDED):
        index = index.replace([], [["a", f"b{row}"]])
        assert len(index.added) <= bm25.MAX_ADDED
    assert len(index) == 2 * bm25.MAX_ADDED + 1
    assert len(index.base) > bm25.MAX_ADDED


def saved(retriever: Bm25Retriever, folder: Path) -> Artifact:
    with write_artifact(folder) as staging:
        retriever.save(staging)
    return open_artifact(folder)


def test_a_saved_index_has_no_word_of_a_removed_pair(tmp_path: Path) -> None:
    examples = examples_of([["draw", "secret"], ["deal"]])
    changed = Bm25Retriever.build(examples).add(examples_of([["new"]])).remove([0])
    artifact = saved(changed, tmp_path / "model")
    assert json.loads(artifact.path("words.json").read_text()) == ["deal", "new"]
    loaded = Bm25Retriever.load(artifact, list(changed.examples))
    assert found(loaded, ["deal", "new", "secret"]) == found(changed, ["deal", "new", "secret"])


def test_a_model_saved_with_scores_is_counted_again(tmp_path: Path) -> None:
    examples = examples_of([["draw", "a"], ["a"]])
    with write_artifact(tmp_path / "model") as staging:
        np.save(staging / "data.csc.index.npy", np.ones(3, np.float32), allow_pickle=False)
    loaded = Bm25Retriever.load(open_artifact(tmp_path / "model"), examples)
    assert found(loaded, ["a"]) == found(Bm25Retriever.build(examples), ["a"])


@pytest.mark.parametrize(
    ("value", "why"),
    [({}, "not a list of words"), (["a", 1], "not a list"), (["a", "a"], "occurs twice")],
)
def test_words_that_are_none_are_refused(tmp_path: Path, value: object, why: str) -> None:
    examples = examples_of([["a", "b"]])
    saved(Bm25Retriever.build(examples), tmp_path / "model")
    stored(tmp_path / "model")["words.json"].write_text(json.dumps(value))
    seal(tmp_path / "model")
    with pytest.raises(ModelError, match=why):
        Bm25Retriever.load(open_artifact(tmp_path / "model"), examples)
