"""Files are cut into the same shards whoever works on them, and no row is lost or moved."""

import gzip
import json
import zipfile
from dataclasses import astuple
from pathlib import Path

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from redraft.bulk.shards import Inputs, Row, cut_files, cut_sources, read_rows, shard_from_json
from redraft.errors import BulkError, PairsError
from redraft.mining.python_functions import find_sources


def all_rows(inputs: Inputs) -> list[Row]:
    return [row for shard in inputs.shards for row in read_rows(shard)]


def lines_file(path: Path, count: int) -> Path:
    path.write_text("".join(json.dumps({"x": f"row {at}"}) + "\n" for at in range(count)))
    return path


@given(
    lines=st.lists(st.sampled_from(['{"x": "a"}', '{"x": "ä" }', "", "[1]"]), max_size=30),
    rows=st.integers(1, 12),
    is_ended=st.booleans(),
)
def test_every_line_is_in_one_shard_with_its_number(
    lines: list[str], rows: int, is_ended: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("lines") / "rows.jsonl"
    path.write_text("\n".join(["{}", *lines]) + "\n" * is_ended)
    inputs = cut_files([str(path)], rows)
    expected = [(at, json.loads(line)) for at, line in enumerate(["{}", *lines], 1) if line]
    assert [(row.line, row.value) for row in all_rows(inputs)] == expected
    assert all(len(list(read_rows(shard))) <= rows for shard in inputs.shards)


def test_lines_that_lie_across_chunks_are_cut_at_their_ends(tmp_path: Path) -> None:
    texts = [f"{at} " * 30_000 for at in range(40)]
    path = tmp_path / "long.jsonl"
    path.write_text("".join(json.dumps({"x": text}) + "\n" for text in texts))
    inputs = cut_files([str(path)], 7)
    assert len(inputs.shards) == 6
    assert [row.value["x"] for row in all_rows(inputs)] == texts


@pytest.mark.parametrize("rows", [1, 3, 4, 100])
def test_rows_of_parquet_are_cut_across_row_groups(rows: int, tmp_path: Path) -> None:
    table = pyarrow.table({"x.name": [f"n{at}" for at in range(10)], "y": ["z"] * 10})
    parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=4)
    inputs = cut_files([str(tmp_path)], rows)
    assert len(inputs.shards) == -(-10 // rows)
    found = [(row.line, row.value) for row in all_rows(inputs)]
    assert found == [(at + 1, {"x": {"name": f"n{at}"}}) for at in range(10)]


def test_packed_lines_are_one_shard(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl.gz").write_bytes(gzip.compress(b'{"x": "a"}\n{"x": "b"}\n'))
    inputs = cut_files([str(tmp_path / "rows.jsonl.gz")], 1)
    assert len(inputs.shards) == 1
    assert [(row.line, row.value["x"]) for row in all_rows(inputs)] == [(1, "a"), (2, "b")]


def test_a_folder_and_a_pattern_are_their_files_in_order(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.jsonl"):
        lines_file(tmp_path / name, 3)
    (tmp_path / "notes.txt").write_text("no rows")
    by_folder = cut_files([str(tmp_path)], 2)
    assert [Path(row.file).name for row in all_rows(by_folder)] == ["a.jsonl"] * 3 + ["b.jsonl"] * 3
    assert cut_files([str(tmp_path / "*.jsonl")], 2) == by_folder
    assert cut_files([f"file://{tmp_path}"], 2) == by_folder


def test_rows_are_read_from_wherever_fsspec_reaches(tmp_path: Path) -> None:
    file = lines_file(tmp_path / "rows.jsonl", 5)
    with zipfile.ZipFile(tmp_path / "rows.zip", "w") as archive:
        archive.write(file, "deep/rows.jsonl")
    address = f"zip://deep/*.jsonl::{tmp_path / 'rows.zip'}"
    rows = all_rows(cut_files([address], 2))
    assert [row.value["x"] for row in rows] == [f"row {at}" for at in range(5)]
    assert rows[0].file == f"zip://deep/rows.jsonl::{tmp_path / 'rows.zip'}"


def test_other_bytes_have_another_digest(tmp_path: Path) -> None:
    path = lines_file(tmp_path / "rows.jsonl", 3)
    before = cut_files([str(path)], 2)
    path.write_text(path.read_text().replace("row 1", "row 7"))
    assert cut_files([str(path)], 2).digest != before.digest
    assert cut_files([str(path)], 2).shards == before.shards


def test_other_rows_of_parquet_have_another_digest_though_the_footer_is_the_same(
    tmp_path: Path,
) -> None:
    path, digests = tmp_path / "rows.parquet", set()
    for middle in ("b", "c"):
        table = pyarrow.table({"x": ["a", middle, "z"]})
        parquet.write_table(table, path, compression="none")
        digests.add(cut_files([str(path)], 2).digest)
    assert len(digests) == 2


def test_the_output_of_a_job_is_no_input_of_it(tmp_path: Path) -> None:
    for name in ("in", "out", "output"):
        (tmp_path / name).mkdir()
        lines_file(tmp_path / name / "rows.jsonl", 2)
    inputs = cut_files([str(tmp_path / "*" / "*.jsonl")], 2, without=str(tmp_path / "out"))
    assert [Path(row.file).parent.name for row in all_rows(inputs)] == ["in"] * 2 + ["output"] * 2


def test_sources_are_shards_of_whole_files(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.py").write_text(f"{name} = 1\n")
    inputs = cut_sources(find_sources([tmp_path]), 2)
    assert [len(shard.pieces) for shard in inputs.shards] == [2, 1]
    assert [row.value["content"] for row in all_rows(inputs)] == [
        b"a = 1\n",
        b"b = 1\n",
        b"c = 1\n",
    ]


def test_a_shard_can_be_sent_to_another_machine(tmp_path: Path) -> None:
    inputs = cut_files([str(lines_file(tmp_path / "rows.jsonl", 5))], 2)
    sent = json.loads(json.dumps([astuple(shard) for shard in inputs.shards]))
    assert tuple(map(shard_from_json, sent)) == inputs.shards


def test_a_row_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = lines_file(tmp_path / "rows.jsonl", 5)
    path.write_text(path.read_text() + "{\n")
    inputs = cut_files([str(path)], 2)
    with pytest.raises(PairsError, match=r"rows\.jsonl:6: not JSON"):
        all_rows(inputs)


def test_what_holds_no_rows_is_told(tmp_path: Path) -> None:
    (tmp_path / "none.jsonl").touch()
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no table")
    (tmp_path / "rows.csv").touch()
    told = {
        "none.jsonl": "no rows in any of the files",
        "bad.parquet": r"bad\.parquet: not a Parquet file",
        "rows.csv": r"rows\.csv: shards are read from \.jsonl",
        "nowhere": "nowhere: no such file, and none in it that ends in",
    }
    for name, expected in told.items():
        with pytest.raises((BulkError, PairsError), match=expected):
            cut_files([str(tmp_path / name)], 2)
    with pytest.raises(BulkError, match=r"nonsense://x: cannot be read \(Protocol not known"):
        cut_files(["nonsense://x"], 2)


@pytest.mark.parametrize("size", [1, 3, 4, 100])
def test_rows_of_parquet_are_the_same_however_they_are_cut(size: int, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    table = pyarrow.table({"x": [f"{at}" for at in range(10)], "z": list(range(10))})
    parquet.write_table(table, path, row_group_size=4)
    rows = all_rows(cut_files([str(path)], size))
    assert [(row.line, row.value) for row in rows] == [(at + 1, {"x": f"{at}"}) for at in range(10)]


def test_a_parquet_value_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    texts = pyarrow.array([b"a", b"\xff"], pyarrow.binary()).view(pyarrow.string())
    parquet.write_table(pyarrow.table({"x": texts}), path)
    expected = r"rows\.parquet:2: column 'x': not UTF-8 \(byte 0xff\); write the texts as UTF-8$"
    with pytest.raises(PairsError, match=expected):
        all_rows(cut_files([str(path)], 10))
