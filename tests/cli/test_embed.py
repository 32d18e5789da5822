"""`redraft embed`, and `predict` and `mine` into shards, by one process."""

import json
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet
from typer.testing import CliRunner, Result

from redraft import Example, RetrieveAndEdit
from redraft.cli.app import app
from tests.retrieval.test_dense import saved_embedder, untrained


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


@pytest.fixture
def model(examples: list[Example], tmp_path: Path) -> Path:
    return saved_embedder(examples, tmp_path / "model")


def test_every_input_gets_the_vector_of_its_direction(
    model: Path, examples: list[Example], pairs_file: Path, tmp_path: Path
) -> None:
    done = run("embed", model, pairs_file, "-o", tmp_path / "vectors", "--rows", 25)
    assert done.exit_code == 0, done.stderr
    told = {"shards": 3, "found": 0, "written": 3, "rows": 60}
    assert json.loads(done.stdout) == {"folder": str(tmp_path / "vectors"), **told}
    table = parquet.read_table(sorted((tmp_path / "vectors").glob("*.parquet")))
    assert table.column("line").to_pylist() == list(range(1, 61))
    assert set(table.column("file").to_pylist()) == {str(pairs_file)}
    encoder = untrained(["text"], [each.x["text"] for each in examples])
    expected = encoder.encode([each.x for each in examples])
    found = np.array(table.column("vector").to_pylist(), np.float32)
    assert found == pytest.approx(expected, abs=1e-6)
    again = run("embed", model, pairs_file, "-o", tmp_path / "vectors", "--rows", 25)
    assert json.loads(again.stdout)["found"] == 3


def test_predictions_in_shards_are_those_on_stdout(
    model: Path, pairs_file: Path, tmp_path: Path
) -> None:
    plain = run("predict", model, "--file", pairs_file, "-k", 2, "--explain")
    shards = ("--rows", 64, "-o", tmp_path / "answers")
    done = run("predict", model, "--file", pairs_file, "-k", 2, "--explain", *shards)
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "answers" / "000000.jsonl").read_text() == plain.stdout


def test_pairs_in_shards_are_those_of_one_file(tmp_path: Path) -> None:
    sources = Path(__file__).parent.parent.parent / "src" / "redraft" / "storage"
    plain = run("mine", sources)
    done = run("mine", sources, "-o", tmp_path / "pairs", "--rows", 3)
    assert done.exit_code == 0, done.stderr
    shards = sorted((tmp_path / "pairs").glob("*.jsonl"))
    assert len(shards) > 2
    assert "".join(shard.read_text() for shard in shards) == plain.stdout


def test_sources_are_mined_from_rows(tmp_path: Path) -> None:
    source = 'def f():\n    """Do it."""\n    return 1\n'
    rows = [{"content": source, "file": "a/b.py"}, {"content": "no python", "file": "a/c.py"}]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run("mine", tmp_path / "s.jsonl", "-o", tmp_path / "pairs")
    assert done.exit_code == 0, done.stderr
    assert done.stderr == "skipped a/c.py:1: not Python 3: invalid syntax\n"
    pair = json.loads((tmp_path / "pairs" / "000000.jsonl").read_text())
    assert pair["y"] == "return 1"
    assert pair["meta"] == {"file": "a/b.py", "line": 1, "package": "a"}


def test_rows_are_text_and_say_of_which_package_they_are(tmp_path: Path) -> None:
    source = '# coding: latin-1\r\ndef f():\r\n    """Café."""\r\n    return 1\r\n'
    files = ("/srv/shop/b.py", "../shop/b.py", ".", None)
    rows = ({"content": source, "file": file} for file in files)
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run("mine", tmp_path / "s.jsonl", "-o", tmp_path / "pairs")
    assert done.exit_code == 0, done.stderr
    pairs = [*map(json.loads, (tmp_path / "pairs" / "000000.jsonl").read_text().splitlines())]
    assert {pair["x"]["docstring"] for pair in pairs} == {"Café."}
    named = [pair["meta"]["package"] for pair in pairs]
    assert named == ["srv", "shop", ".", tmp_path.parts[1]]


def test_an_address_or_a_folder_with_a_dot_is_for_shards(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text('def f():\n    """Do it."""\n    return 1\n')
    (tmp_path / "pairs.v1").mkdir()
    for out in (tmp_path / "pairs.v1", "memory://dotted/pairs.jsonl"):
        done = run("mine", tmp_path / "a.py", "-o", out)
        assert done.exit_code == 0, done.stderr
        assert json.loads(done.stdout)["written"] == 1


def test_a_job_whose_pattern_names_its_output_goes_on(
    model: Path, pairs_file: Path, tmp_path: Path
) -> None:
    data, out = tmp_path / "data", tmp_path / "data" / "out"
    (data / "in").mkdir(parents=True)
    pairs_file.rename(data / "in" / "pairs.jsonl")
    ask = ("predict", model, "--file", data / "*" / "*.jsonl", "-o", out, "--rows", 25)
    assert run(*ask).exit_code == 0
    (out / "000001.jsonl").unlink()
    again = run(*ask)
    assert again.exit_code == 0, again.stderr
    assert json.loads(again.stdout)["found"] == 2


def refusal(*arguments: object) -> str:
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    return str(line)


def test_a_bad_row_is_named_before_anything_is_written(
    model: Path, pairs_file: Path, tmp_path: Path
) -> None:
    good = pairs_file.read_text()
    for verb in (("embed", model, pairs_file), ("predict", model, "--file", pairs_file)):
        out = tmp_path / verb[0]
        pairs_file.write_text(good + '{"z": 1}\n')
        line = refusal(*verb, "-o", out, "--rows", 20)
        assert line == f"error: {pairs_file}:61: expected an object with the key x"
        assert not out.exists()
        pairs_file.write_text(good + '{"x": "fixed"}\n')
        assert run(*verb, "-o", out, "--rows", 20).exit_code == 0
        assert len(list(out.glob("0*"))) == 4
    line = refusal("mine", pairs_file, "-o", tmp_path / "mined")
    expected = "expected an object with the key content, the text of a Python file"
    assert line == f"error: {pairs_file}:1: {expected}"
    assert not (tmp_path / "mined").exists()


def test_what_cannot_be_done_is_told(
    model: Path, examples: list[Example], pairs_file: Path, tmp_path: Path
) -> None:
    words = RetrieveAndEdit.fit(examples, retriever="bm25", editor="verbatim")
    words.save(tmp_path / "words")
    out = ("-o", tmp_path / "out")
    assert refusal("embed", tmp_path / "words", pairs_file, *out) == (
        f"error: {tmp_path / 'words'}: the bm25 retriever has no vectors; "
        "fit a model with --retriever task or input"
    )
    assert not (tmp_path / "out").exists()  # it is free for another model
    assert "not a model" in refusal("embed", tmp_path / "no", pairs_file, *out)
    folder = "needs a folder for the shards; add -o FOLDER"
    assert refusal("predict", model, "--file", pairs_file, "--ray") == f"error: --ray: {folder}"
    assert refusal("mine", tmp_path, "--ray", "head:6379") == f"error: --ray: {folder}"
    assert "shards are JSON lines of the inputs in --file" in refusal("predict", model, "x", *out)
    assert "mined into shards; add -o FOLDER" in refusal("mine", pairs_file)
    assert "exclude each other" in refusal(
        *("predict", model, "--file", pairs_file, *out, "--sample", 1)
    )


@pytest.mark.parametrize("address", ["ray://head:10001", "http://head:8265", "head"])
def test_what_is_no_address_of_ray_is_not_taken_for_an_input(
    address: str, model: Path, pairs_file: Path, tmp_path: Path
) -> None:
    pytest.importorskip("ray")
    line = refusal("embed", model, pairs_file, "-o", tmp_path / "out", "--ray", address)
    assert line.startswith(f"error: --ray {address}: expected an address, HOST:PORT; ")


@pytest.mark.parametrize("bare", ["rows.jsonl", "s3://bucket/rows", "-o", "rows/", "*.parquet"])
def test_ray_without_an_address_swallows_no_input(bare: str) -> None:
    from redraft.cli._bulk import _is_meant_for_ray

    assert not _is_meant_for_ray(bare)
    assert _is_meant_for_ray("head:6379")
