"""IVF-PQ against brute force."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from redraft.errors import ModelError
from redraft.index import base, ivfpq, vector_file
from redraft.index.base import VECTORS, ExactIndex, Index, exact_search, load_index
from redraft.index.ivfpq import CompressedIndex, index_of_file
from redraft.index.vector_file import VectorFile
from redraft.storage import disk
from redraft.storage.artifact import open_artifact
from redraft.storage.artifact_writer import write_artifact
from tests.index.test_base import clustered

COUNT = 3_000


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "IN_MEMORY_LIMIT", 500)
    monkeypatch.setattr(base, "EXACT_BELOW", 500)
    monkeypatch.setattr(vector_file, "PART", 700)
    monkeypatch.setattr(ivfpq, "PART", 700)


def written(folder: Path, vectors: NDArray[np.float32]) -> VectorFile:
    folder.mkdir(exist_ok=True)
    return VectorFile.write(folder, np.array_split(vectors, 4), count=len(vectors))


def recall(index: Index, vectors: NDArray[np.float32], queries: NDArray[np.float32]) -> float:
    found, truth = index.search(queries, 10), exact_search(vectors, queries, 10)
    # distances are exact whatever was found
    expected = 2 - 2 * np.einsum("qkd,qd->qk", vectors[found.rows], queries)
    assert found.distances == pytest.approx(expected, abs=1e-5)
    return float((found.distances <= truth.distances + 1e-5).mean())


def test_recall_at_10_is_at_least_99_per_cent(tmp_path: Path) -> None:
    vectors, queries = clustered(COUNT, 0), clustered(100, 1)
    index = index_of_file(written(tmp_path, vectors))
    assert isinstance(index, CompressedIndex)
    assert index.recall.at_10 >= 0.99
    assert index.recall.rerank > 0
    assert recall(index, vectors, queries) >= 0.97
    assert index.take(np.array([7, 3])) == pytest.approx(vectors[[7, 3]])


def test_narrow_and_broad_filters_are_respected(tmp_path: Path) -> None:
    vectors, queries = clustered(COUNT, 0), clustered(20, 1)
    index = CompressedIndex.of_file(written(tmp_path, vectors))
    for share in (0.05, 0.6):
        allowed = np.random.default_rng(0).random(COUNT) < share
        found = index.search(queries, 10, allowed=allowed)
        assert allowed[found.rows].all()
        truth = exact_search(vectors, queries, 10, allowed=allowed)
        assert float((found.distances <= truth.distances + 1e-5).mean()) >= 0.95


def test_replacing_vectors_keeps_the_trained_centroids(tmp_path: Path) -> None:
    vectors, more = clustered(COUNT, 0), clustered(200, 2)
    index = CompressedIndex.of_file(written(tmp_path, vectors))
    gone = np.arange(0, COUNT, 3)
    changed = index.replace(gone, more)
    assert isinstance(changed, CompressedIndex)
    left = np.concatenate([np.delete(vectors, gone, axis=0), more])
    assert changed.take(np.arange(len(left))) == pytest.approx(left)
    assert recall(changed, left, clustered(60, 1)) >= 0.97
    # the first one is as it was
    assert recall(index, vectors, clustered(60, 1)) >= 0.97
    few = changed.replace(np.arange(200, len(left)), vectors[:0])
    assert isinstance(few, ExactIndex)
    assert few.vectors == pytest.approx(left[:200])


def test_a_saved_index_finds_the_same(tmp_path: Path) -> None:
    vectors, queries = clustered(COUNT, 0), clustered(20, 1)
    index = CompressedIndex.of_file(written(tmp_path / "made", vectors))
    with write_artifact(tmp_path / "model") as staging:
        index.save(staging)
    loaded = load_index(open_artifact(tmp_path / "model"))
    assert isinstance(loaded, CompressedIndex)
    assert loaded.recall == index.recall
    assert loaded.search(queries, 5).rows.tolist() == index.search(queries, 5).rows.tolist()


def test_vectors_of_a_deleted_file_can_be_saved(tmp_path: Path) -> None:
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
