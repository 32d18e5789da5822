"""BM25 by postings equals BM25 in memory, bit for bit."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redraft.errors import ModelError
from redraft.index import postings_builder
from redraft.index.neighbours import Neighbours
from redraft.index.postings import Postings
from redraft.retrieval import bm25
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.storage import disk
from redraft.storage.artifact import open_artifact
from redraft.storage.artifact_writer import write_artifact
from redraft.storage.disk import DiskExamples, spool_examples
from redraft.types import Example

WORDS = ("draw", "a", "card", "deal", "damage", "rare1", "rare2", "rare3")

sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=9)
texts = st.lists(sentences, min_size=1, max_size=40)


@pytest.fixture(autouse=True)
def one_is_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "IN_MEMORY_LIMIT", 1)
    monkeypatch.setattr(disk, "CHUNK", 5)
    monkeypatch.setattr(postings_builder, "_COPIED", 7)


def build(sentences: Sequence[Sequence[str]]) -> list[Example]:
    return [Example({"text": " ".join(text)}, f"y{at}") for at, text in enumerate(sentences)]


def filed_retriever(examples: Sequence[Example], folder: str | Path) -> Bm25Retriever:
    found = Bm25Retriever.build(spool_examples([examples], Path(folder) / "held"))
    assert isinstance(found.index, Postings)
    return found


def assert_same(left: Neighbours, right: Neighbours) -> None:
    assert left.rows.tolist() == right.rows.tolist()
    assert left.distances.tolist() == right.distances.tolist()


@given(texts, sentences, st.integers(1, 45), st.randoms())
@settings(max_examples=200, deadline=None)
def test_the_nearest_rows_are_those_of_bm25_in_memory(
    known: list[list[str]], query: list[str], k: int, rng: object
) -> None:
    examples = build(known)
    mask = np.array([rng.random() < 0.7 for _ in known])  # type: ignore[attr-defined]
    asked = [{"text": " ".join(query)}, {"text": "nothing known"}]
    with TemporaryDirectory() as folder:
        held, plain = filed_retriever(examples, folder), Bm25Retriever.build(examples)
        for allowed in (None, mask):
            expected = plain.search(asked, k, allowed=allowed)
            assert_same(held.search(asked, k, allowed=allowed), expected)


@given(texts, texts, sentences, st.data())
@settings(max_examples=60, deadline=None)
def test_replacing_equals_building_from_scratch(
    known: list[list[str]], added: list[list[str]], query: list[str], data: st.DataObject
) -> None:
    examples, more = build(known), build(added)
    gone = sorted(data.draw(st.sets(st.integers(0, len(known) - 1))))
    kept = [each for row, each in enumerate(examples) if row not in gone]
    with TemporaryDirectory() as folder:
        changed = filed_retriever(examples, folder).replace(gone, more)
        assert isinstance(changed.examples, DiskExamples)
        assert list(changed.examples) == [*kept, *more]
        expected = Bm25Retriever.build([*kept, *more])
        asked = [{"text": " ".join(query)}]
        assert_same(changed.search(asked, 20), expected.search(asked, 20))


def test_pruning_is_exact_for_many_rows_and_long_lists(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frequent = [f"w{at}" for at in range(30)]
    known = [
        [*rng.choice(frequent, size=rng.integers(3, 12)), f"rare{rng.integers(400)}"]
        for _ in range(3000)
    ]
    examples = build(known)
    held, plain = filed_retriever(examples, tmp_path), Bm25Retriever.build(examples)
    asked = [examples[row].x for row in range(0, 3000, 60)]
    assert_same(held.search(asked, 7), plain.search(asked, 7))


def test_saved_postings_are_loaded_and_mismatched_ones_refused(tmp_path: Path) -> None:
    examples = build([["draw", "a", "card"], ["deal", "damage"], ["draw"]])
    held = filed_retriever(examples, tmp_path)
    with write_artifact(tmp_path / "model") as staging:
        held.save(staging)
    artifact = open_artifact(tmp_path / "model")
    loaded = Bm25Retriever.load(artifact, held.examples)
    asked = [{"text": "draw damage"}]
    assert_same(loaded.search(asked, 3), held.search(asked, 3))
    with pytest.raises(ModelError, match="examples and their lengths"):
        Bm25Retriever.load(artifact, held.examples[:2])


@pytest.mark.parametrize("changes", [False, True])
def test_an_interrupted_build_leaves_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: bool
) -> None:
    examples = build([["draw"], ["deal"], ["damage"]])
    held = filed_retriever(examples, tmp_path)
    before = sorted(tmp_path.rglob("*"))

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(bm25, "words", stop)
    with pytest.raises(KeyboardInterrupt):
        held.add(examples) if changes else Bm25Retriever.build(held.examples)
    assert sorted(tmp_path.rglob("*")) == before
