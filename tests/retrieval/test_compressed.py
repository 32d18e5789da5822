"""A compressed index finds what a comparison with every vector finds."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from redraft.artifact import open_artifact, write_artifact
from redraft.data import filed
from redraft.errors import ModelError
from redraft.retrieval import compressed, vector_file
from redraft.retrieval.compressed import CompressedIndex, index_of_file, open_index
from redraft.retrieval.index import ExactIndex, Index, exact_search
from redraft.retrieval.vector_file import VECTORS, VectorFile
from tests.retrieval.test_index import clustered

COUNT = 3_000


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filed, "MANY", 500)
    monkeypatch.setattr(compressed, "EXACT_BELOW", 500)
    monkeypatch.setattr(vector_file, "PART", 700)
    monkeypatch.setattr(compressed, "PART", 700)


def written(folder: Path, vectors: NDArray[np.float32]) -> VectorFile:
    folder.mkdir(exist_ok=True)
    return VectorFile.write(folder, np.array_split(vectors, 4), count=len(vectors))


def recall(index: Index, vectors: NDArray[np.float32], queries: NDArray[np.float32]) -> float:
    found, truth = index.search(queries, 10), exact_search(vectors, queries, 10)
    # distances are exact whatever was found
    expected = 2 - 2 * np.einsum("qkd,qd->qk", vectors[found.rows], queries)
    assert found.distances == pytest.approx(expected, abs=1e-5)
    return float((found.distances <= truth.distances + 1e-5).mean())


def test_nearly_all_of_the_nearest_are_found(tmp_path: Path) -> None:
    vectors, queries = clustered(COUNT, 0), clustered(100, 1)
    index = index_of_file(written(tmp_path, vectors))
    assert isinstance(index, CompressedIndex)
    assert index.recall.at_10 >= 0.99
    assert index.recall.compared > 0
    assert recall(index, vectors, queries) >= 0.97
    assert index.take(np.array([7, 3])) == pytest.approx(vectors[[7, 3]])


def test_a_filter_is_kept_whether_it_keeps_few_or_many(tmp_path: Path) -> None:
    vectors, queries = clustered(COUNT, 0), clustered(20, 1)
    index = CompressedIndex.build(written(tmp_path, vectors))
    for share in (0.05, 0.6):
        allowed = np.random.default_rng(0).random(COUNT) < share
        found = index.search(queries, 10, allowed=allowed)
        assert allowed[found.rows].all()
        truth = exact_search(vectors, queries, 10, allowed=allowed)
        assert float((found.distances <= truth.distances + 1e-5).mean()) >= 0.95


def test_exchanging_vectors_learns_nothing_anew_and_loses_nothing(tmp_path: Path) -> None:
    vectors, more = clustered(COUNT, 0), clustered(200, 2)
    index = CompressedIndex.build(written(tmp_path, vectors))
    gone = np.arange(0, COUNT, 3)
    changed = index.replace(gone, more)
    assert isinstance(changed, CompressedIndex)
    left = np.concatenate([np.delete(vectors, gone, axis=0), more])
    assert changed.take(np.arange(len(left))) == pytest.approx(left)
    assert recall(changed, left, clustered(60, 1)) >= 0.97
    # the first one is as it was
    assert recall(index, vectors, clustered(60, 1)) >= 0.97
    few = changed.remove(np.arange(200, len(left)))
    assert isinstance(few, ExactIndex)
    assert few.vectors == pytest.approx(left[:200])


def test_a_saved_index_finds_the_same(tmp_path: Path) -> None:
    vectors, queries = clustered(COUNT, 0), clustered(20, 1)
    index = CompressedIndex.build(written(tmp_path / "made", vectors))
    with write_artifact(tmp_path / "model") as staging:
        index.save(staging)
    loaded = open_index(open_artifact(tmp_path / "model"))
    assert isinstance(loaded, CompressedIndex)
    assert loaded.recall == index.recall
    assert loaded.search(queries, 5).rows.tolist() == index.search(queries, 5).rows.tolist()


def test_vectors_can_be_saved_when_their_file_has_lost_its_name(tmp_path: Path) -> None:
    vectors = clustered(900, 0)
    file = written(tmp_path, vectors)
    file.path.unlink()
    file.save(tmp_path / "again.npy")
    assert np.load(tmp_path / "again.npy") == pytest.approx(vectors)


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    written(tmp_path, clustered(900, 0))
    whole = (tmp_path / VECTORS).read_bytes()
    (tmp_path / VECTORS).write_bytes(whole[:-100])
    with pytest.raises(ModelError, match=r"vectors\.npy: damaged"):
        VectorFile(tmp_path / VECTORS)
