"""Crafted models end in one line and exit code 2: they never reach native code or all memory."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from redraft import Example, RetrieveAndEdit
from redraft.errors import ModelError
from redraft.retrieval.bm25 import Bm25Retriever
from redraft.storage.artifact import open_artifact
from redraft.storage.manifest import MANIFEST
from tests.conftest import Run
from tests.hostile.models import INPUT, save
from tests.hostile.seal import alter_arrays, alter_json, seal, stored
from tests.server.http.servers import running

Arrays = dict[str, NDArray[Any]]
Change = Callable[[Any], None]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of each kind that the tests copy."""
    folder = tmp_path_factory.mktemp("saved")
    for kind in ("bm25", "lexical", "neural", "cells", "graph", "compressed", "postings", "task"):
        save(kind, folder / kind)
    return folder


@pytest.fixture
def copied(saved: Path, tmp_path: Path) -> Callable[[str], Path]:
    def copy(kind: str) -> Path:
        shutil.copytree(saved / kind, tmp_path / kind)
        return tmp_path / kind

    return copy


def put(name: str, where: slice | int, value: float) -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        arrays[name].reshape(-1)[where] = value

    return change


def shorten(name: str, count: int) -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        arrays[name] = arrays[name][:count]

    return change


def retype(name: str, dtype: str) -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        arrays[name] = arrays[name].astype(dtype)

    return change


COLUMNS, STARTS, COSINES = (f"retriever/{name}.csr.npy" for name in ("indices", "indptr", "data"))
STRUCTURE = "retriever/index/structure.safetensors"
WEIGHTS = "editor/weights.safetensors"
ARRAYS: list[tuple[str, str, Callable[[Arrays], None], str]] = [
    ("lexical", COLUMNS, put("array", slice(0, 50), 2**30), "a value of the columns"),
    ("lexical", COLUMNS, put("array", 3, -(2**28)), "a value of the columns"),
    ("lexical", STARTS, put("array", 1, 2**30), "the starts of slices must ascend"),
    ("lexical", STARTS, put("array", -1, 7), "do not fit their"),
    ("lexical", COSINES, put("array", 0, np.nan), "a value of the cosines"),
    ("lexical", COLUMNS, retype("array", "<i8"), "the array must be int32"),
    ("bm25", "retriever/rows.npy", put("array", 0, 2**30), "a value of the rows"),
    ("bm25", "retriever/starts.npy", put("array", 1, 2**40), "must ascend"),
    ("bm25", "retriever/starts.npy", put("array", -1, 7), "not the starts of"),
    ("bm25", "retriever/counts.npy", put("array", 0, 0), "a value of the counts"),
    ("bm25", "retriever/counts.npy", shorten("array", 7), "rows and their counts"),
    ("bm25", "retriever/lengths.npy", shorten("array", 3), "examples and their lengths"),
    ("postings", "retriever/rows.npy", put("array", 5, 2**31), "a value of the rows"),
    ("postings", "retriever/starts.npy", put("array", 1, 2**40), "must ascend"),
    ("postings", "offsets.npy", put("array", 1, 2**40), "must ascend"),
    ("cells", STRUCTURE, put("cells", 0, 10**6), "a value of the cells"),
    ("cells", STRUCTURE, shorten("centroids", 1), "a value of the cells"),
    ("cells", STRUCTURE, put("centroids", 0, np.nan), "a value of the centroids"),
    ("graph", STRUCTURE, put("links", 0, 10**6), "a value of the links"),
    ("graph", STRUCTURE, put("levels", 0, 60), "out of range|not those of its levels"),
    ("graph", STRUCTURE, put("entry", 0, -1), "no entry to its highest level"),
    ("compressed", STRUCTURE, put("cells", 0, -1), "a value of the cells"),
    ("compressed", STRUCTURE, shorten("codes", 7), "codes must be uint8 of shape"),
    ("task", "retriever/index/vectors.npy", put("array", 0, np.nan), "not finite, or longer"),
    ("task", "retriever/index/vectors.npy", shorten("array", 3), "their vectors: 12 and 3"),
    ("neural", WEIGHTS, put("write.bias", 0, np.nan), "not finite, or above"),
    ("neural", WEIGHTS, put("write.bias", 0, 1e30), "not finite, or above"),
]


@pytest.mark.parametrize(("kind", "name", "change", "why"), ARRAYS)
def test_arrays_that_do_not_fit_are_refused(
    copied: Callable[[str], Path],
    kind: str,
    name: str,
    change: Callable[[Arrays], None],
    why: str,
) -> None:
    folder = copied(kind)
    path = alter_arrays(folder, name, change)
    with pytest.raises(ModelError, match=why) as caught:
        RetrieveAndEdit.load(folder)
    assert str(caught.value).startswith(f"{path}: damaged (")
    assert str(caught.value).endswith("; copy or fit the model again")


def setting(*names: str, value: Any) -> Change:
    def change(values: Any) -> None:
        for name in names[:-1]:
            values = values[name]
        values[names[-1]] = value

    return change


EDITOR, NUMBERING = "editor/editor.json", "editor/encoding.json"
SETTINGS: list[tuple[str, Change, str]] = [
    (
        EDITOR,
        setting("network", "decoder_layers", value=10**9),
        "decoder_layers is 1000000000; expected a whole number from 1",
    ),
    (EDITOR, setting("network", "decoder_layers", value=2), "weights of another network"),
    (EDITOR, setting("network", "width", value=2**12), r"must be float32 of shape \("),
    (EDITOR, setting("network", value=[]), "network is not of type dict"),
    (
        EDITOR,
        setting("decoding", "beam_size", value=10**9),
        "beam_size is 1000000000; expected a whole number",
    ),
    (
        EDITOR,
        setting("decoding", "max_length", value=10**9),
        "max_length is 1000000000; expected a whole number",
    ),
    (
        NUMBERING,
        setting("config", "prototypes", value=10**9),
        "prototypes is 1000000000; expected a whole number",
    ),
    (
        NUMBERING,
        setting("output_vocab_size", value=10**9),
        "output_vocab_size is not a whole number",
    ),
    (NUMBERING, setting("fields", value=[]), "fields is not a list of different names"),
    ("retriever/encoder/encoder.json", setting("network", "encoder_layers", value=10**9), "layers"),
    (
        "retriever/encoder/encoder.json",
        setting("network", "concentration", value=1e300),
        r"concentration is 1e\+300; expected a number",
    ),
]


@pytest.mark.parametrize(("name", "change", "why"), SETTINGS)
def test_settings_that_the_weights_do_not_have_are_refused(
    copied: Callable[[str], Path], name: str, change: Change, why: str
) -> None:
    folder = copied("neural")
    alter_json(folder, name, change)
    with pytest.raises(ModelError, match=why) as caught:
        RetrieveAndEdit.load(folder)
    assert str(caught.value).startswith(str(folder))


def test_half_of_the_vocabulary_is_refused(copied: Callable[[str], Path]) -> None:
    folder = copied("lexical")
    path = stored(folder)["retriever/vocabulary.txt"]
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[: len(lines) // 2]))
    seal(folder)
    with pytest.raises(ModelError, match="a value of the columns is out of range"):
        RetrieveAndEdit.load(folder)


def test_the_number_of_documents_is_that_of_the_examples(copied: Callable[[str], Path]) -> None:
    folder = copied("bm25")
    path = stored(folder)["examples.jsonl"]
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:5]))
    seal(folder)
    with pytest.raises(ModelError, match="examples: 12 and 5"):
        RetrieveAndEdit.load(folder)


@pytest.mark.parametrize("verb", ["info", "predict", "retrieve"])
def test_every_verb_ends_in_one_line(
    copied: Callable[[str], Path], redraft: Run, verb: str
) -> None:
    folder = copied("lexical")
    path = alter_arrays(folder, COLUMNS, put("array", slice(0, 50), 2**30))
    ended = redraft(verb, folder, *(() if verb == "info" else (json.dumps(INPUT),)))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        f"error: {path}: damaged (a value of the columns is out of range); "
        "copy or fit the model again\n"
    )


def test_a_line_that_is_no_example_ends_in_one_line(
    copied: Callable[[str], Path], redraft: Run
) -> None:
    folder = copied("bm25")
    path = stored(folder)["examples.jsonl"]
    path.write_text("{\n" + path.read_text())
    seal(folder)
    ended = redraft("info", folder)
    assert ended.returncode == 2
    assert ended.stderr == (
        f"error: {path}: damaged (line 1 is not an example); copy or fit the model again\n"
    )


def test_an_effort_beyond_the_vectors_is_refused(copied: Callable[[str], Path]) -> None:
    """FAISS would allocate gigabytes for it."""
    folder = copied("graph")
    alter_json(folder, "retriever/index/recall.json", setting("effort", value=2**29))
    with pytest.raises(ModelError, match="effort is not a whole number from 1 to 96"):
        RetrieveAndEdit.load(folder)


def test_the_copies_that_were_not_altered_answer(saved: Path) -> None:
    for folder in saved.iterdir():
        assert RetrieveAndEdit.load(folder).predict([INPUT])[0], folder.name


def test_an_index_in_a_file_of_faiss_is_built_again(copied: Callable[[str], Path]) -> None:
    """Models of 0.5 have one, which is not read."""
    folder = copied("cells")
    manifest = json.loads((folder / MANIFEST).read_text())
    entry = manifest["files"].pop(STRUCTURE)
    manifest["files"]["retriever/index/index.faiss"] = entry
    (folder / MANIFEST).write_text(json.dumps(manifest))
    (folder / entry["stored"]).write_bytes(b"IwFl, as FAISS begins")
    seal(folder)
    assert RetrieveAndEdit.load(folder).predict([INPUT])[0]


def test_a_server_goes_on_without_a_bad_model(copied: Callable[[str], Path]) -> None:
    good, bad, worse = copied("bm25"), copied("lexical"), copied("neural")
    path = alter_arrays(bad, COLUMNS, put("array", slice(0, 50), 2**30))
    settings = stored(worse)["model.toml"]
    settings.write_text("[" * 100)
    seal(worse)
    with running(bad, worse, good) as server:
        for _ in range(2):
            answer = httpx.post(
                f"{server.url}/v1/predict", json={"inputs": [INPUT], "model": "bm25"}
            )
            assert answer.status_code == 200
            assert answer.json()["results"][0]
        asked = httpx.post(f"{server.url}/v1/predict", json={"inputs": [INPUT], "model": "lexical"})
        assert asked.status_code == 503
        code, said = server.stop()
    assert code == 0
    lines = said.splitlines()
    assert [each for each in lines if each.startswith(f"{path}: damaged")]
    assert [each for each in lines if each.startswith(f"{settings}: ")]
    assert "Traceback" not in said


def test_equal_fits_write_equal_files(tmp_path: Path, redraft: Run) -> None:
    """Each in a process of its own, since the order of a set differs between them."""
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text("".join(f'{{"x": "word{i} other{i % 3}", "y": "y{i}"}}\n' for i in range(30)))
    found = []
    for name in ("one", "two"):
        options = ("--retriever", "bm25", "--editor", "verbatim")
        assert redraft("fit", pairs, "-o", tmp_path / name, *options).returncode == 0
        found.append({n: p.name for n, p in open_artifact(tmp_path / name).files.items()})
    assert found[0] == found[1]


def test_examples_without_any_word_are_scored_alike() -> None:
    retriever = Bm25Retriever.build([Example({"text": " "}, "a"), Example({"text": ""}, "b")])
    assert retriever.distances([["word"]]).tolist() == [[1.0, 1.0]]
    assert Bm25Retriever.build([]).distances([["word"]]).shape == (1, 0)


def test_a_network_is_planned_without_memory(copied: Callable[[str], Path]) -> None:
    """Widths of terabytes are compared with the file and never allocated."""
    folder = copied("neural")
    alter_json(folder, EDITOR, setting("network", "width", value=2**13))
    before = torch.get_default_device()
    with pytest.raises(ModelError, match="must be float32 of shape"):
        RetrieveAndEdit.load(folder)
    assert torch.get_default_device() == before
