"""A file that cannot be read at all is an error that says what to do."""

import gzip
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from redraft.data.pairs import read_pairs
from redraft.data.tables import Columns
from redraft.errors import MissingExtraError, PairsError
from tests.data.outcomes import scan_pairs


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def error_of(path: Path, columns: Columns | None = None) -> str:
    with pytest.raises(PairsError) as caught:
        list(scan_pairs(path, columns))
    return str(caught.value)


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.tsv", "a.jsonl.gz", "a.in", "a.parquet"])
def test_a_file_without_rows_is_an_error(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, b"")
    write(tmp_path / "a.out", b"")
    if name == "a.parquet":
        parquet.write_table(
            pa.table({"x": pa.array([], "string"), "y": pa.array([], "string")}), path
        )
    assert error_of(path) == f"{path}: holds no pairs; a row is an input and its output"


@pytest.mark.parametrize(("name", "content"), [("a.jsonl", b"\n \n"), ("a.csv", b"x,y\n\n")])
def test_blank_lines_are_no_rows(tmp_path: Path, name: str, content: bytes) -> None:
    path = write(tmp_path / name, content)
    assert error_of(path) == f"{path}: holds no pairs; a row is an input and its output"


@pytest.mark.parametrize(
    "name", ["pairs", "pairs.jsonl", "pairs.csv.gz", "pairs.parquet", "pairs.in"]
)
def test_a_folder_is_an_error(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.mkdir()
    assert error_of(path) == f"{path}: is a folder; name one file of pairs in it"


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.tsv.gz", "a.parquet", "a.in", "b_hs.in"])
def test_a_missing_file_is_an_error(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    assert error_of(path) == f"{path}: no such file; check the path"
    with pytest.raises(PairsError):
        read_pairs(path)


def test_inputs_without_their_outputs_are_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "a.in.gz", b"a")
    expected = f"{tmp_path / 'a.out.gz'}: no such file; a.in.gz needs its outputs beside it"
    assert error_of(path) == expected


@pytest.mark.parametrize(
    ("header", "columns", "missing"),
    [
        ("question,y", Columns(), "x"),
        ("x,answer", Columns(), "y"),
        ("x.a,answer", Columns(), "y"),
        ("x,y", Columns(inputs=("x", "question")), "question"),
        ("x,y", Columns(output="answer"), "answer"),
    ],
)
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_missing_column_is_named_with_those_found(
    tmp_path: Path, header: str, columns: Columns, missing: str, ending: str
) -> None:
    path = write(tmp_path / f"pairs{ending}", f"{header}\na,1\n".encode())
    if ending == ".parquet":
        parquet.write_table(pa.table({name: ["a"] for name in header.split(",")}), path)
    found = ", ".join(map(repr, header.split(",")))
    first, second = header.split(",")
    assert error_of(path, columns) == (
        f"{path}:1: no column {missing!r}, found {found}; "
        f"rename it or name yours, such as with{Columns((first,), second).arguments}"
    )


@pytest.mark.parametrize(
    ("header", "advice"),
    [
        ("Ticket,Question asked,SQL,Agent", "--x-columns 'Question asked' --y-column SQL"),
        ("id,answer,prompt", "--x-columns prompt --y-column answer"),
        ("query text,target", "--x-columns 'query text' --y-column target"),
        ("a,output", "--x-columns a --y-column output"),
        ("a,b,c", "--x-columns a --y-column b"),
        ("a", "--x-columns a --y-column …"),
    ],
)
def test_the_advice_names_the_columns_that_look_like_input_and_output(
    tmp_path: Path, header: str, advice: str
) -> None:
    path = write(tmp_path / "export.csv", f"{header}\n1,2\n".encode())
    found = error_of(path, Columns()).replace("'…'", "…")
    assert found.endswith(f"such as with {advice}")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"x,y,y\na,1,2\n", "two columns are named 'y'; rename one"),
        (b'"x,y\na,1\n', "not a well-formed row (unexpected end of data); check its quotes"),
        (b"x,\xff\na,1\n", "not UTF-8 (byte 0xff at column 3); save the file as UTF-8"),
        (b'"x\n\xff",y\na,1\n', "not UTF-8 (byte 0xff at column 1); save the file as UTF-8"),
        (b"z" * (2 << 20), "longer than 1,048,576 bytes; shorten or split it"),
    ],
    ids=["twice", "quote", "bytes", "bytes on line 2", "long"],
)
def test_a_bad_header_is_an_error(tmp_path: Path, content: bytes, message: str) -> None:
    path = write(tmp_path / "pairs.csv", content)
    assert error_of(path) == f"{path}:1: {message}"


def damaged(content: bytes, damage: str) -> bytes:
    packed = gzip.compress(content)
    half = len(packed) // 2
    return {
        "cut": packed[:half],
        "changed": packed[:half] + bytes(8) + packed[half + 8 :],
        "other": b"not gzip at all",
    }[damage]


@pytest.mark.parametrize("damage", ["cut", "changed", "other"])
@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".parquet"])
def test_a_damaged_gzip_file_is_an_error(tmp_path: Path, damage: str, ending: str) -> None:
    path = tmp_path / f"pairs{ending}.gz"
    # numbers do not pack well, so that the damage hits the data
    rows = "".join(f'"{n * 7919 % 10007}",{n * n}\n' for n in range(3000))
    text = (
        "x,y\n" + rows if ending == ".csv" else "".join(map('{{"x": {}}}\n'.format, rows.split()))
    )
    path.write_bytes(damaged(text.encode(), damage))
    kind = "not a Parquet file" if ending == ".parquet" else "damaged gzip file"
    assert error_of(path).startswith(f"{path}: {kind} (")
    assert error_of(path).endswith("); make it again")


@pytest.mark.parametrize("content", [b"", b"not Parquet at all", b"PAR1" + bytes(100) + b"PAR1"])
def test_a_file_that_is_not_parquet_is_an_error(tmp_path: Path, content: bytes) -> None:
    path = write(tmp_path / "pairs.parquet", content)
    assert error_of(path).startswith(f"{path}: not a Parquet file (")
    assert error_of(path).endswith("); make it again")


def test_a_damaged_page_of_a_parquet_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "pairs.parquet"
    texts = [f"text {n}" for n in range(1000)]
    parquet.write_table(pa.table({"x": texts, "y": texts}), path)
    content = path.read_bytes()
    path.write_bytes(content[:8] + b"\xff" * 64 + content[72:])
    assert error_of(path).startswith(f"{path}: not a Parquet file (")


def test_without_pyarrow_the_error_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError) as caught:
        read_pairs(tmp_path / "pairs.parquet")
    assert str(caught.value) == (
        "reading pairs.parquet needs pyarrow, which is not installed; "
        "install it with: pip install 'redraft[parquet]'"
    )
