"""Every bad row is reported with its line and its reason, and the rows after it are still read."""

import gzip
import json
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from redraft.data.example import Example
from redraft.data.pairs import read_pairs, scan_pairs
from redraft.data.rows import MAX_ROW_BYTES, BadRow, Columns
from redraft.errors import MissingExtraError, PairsError

GOOD = b'{"x": "a", "y": "1"}'
LONG = b"z" * (2 << 20)
TOO_LONG = "longer than 1,048,576 bytes; shorten or split it"


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def bad_rows(path: Path) -> list[tuple[int, str]]:
    """Line and reason of every bad row, after a look at the file they name."""
    found = [outcome for outcome in scan_pairs(path) if isinstance(outcome, BadRow)]
    assert {bad.file for bad in found} <= {str(path)}
    return [(bad.line, bad.reason) for bad in found]


def good_inputs(path: Path) -> list[str]:
    return ["|".join(o.x.values()) for o in scan_pairs(path) if isinstance(o, Example)]


def error_of(path: Path, columns: Columns | None = None) -> str:
    with pytest.raises(PairsError) as caught:
        list(scan_pairs(path, columns))
    return str(caught.value)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (b'{"x": "\xff", "y": "1"}', "not UTF-8 (byte 0xff at column 8); save the file as UTF-8"),
        (b"{x: 1}", "not JSON (Expecting property name enclosed in double quotes at column 2)"),
        (b'{"x": "a", "y": "1"', "not JSON (Expecting ',' delimiter at column 20)"),
        (b"[" * 100_000, "JSON nested too deeply"),
        (
            b'{"x": "\\ud83d", "y": "1"}',
            "not Unicode (half a character, \\ud83d); remove the escape",
        ),
        (b"[1, 2]", "expected an object with keys x and y, got list"),
        (b'"text"', "expected an object with keys x and y, got str"),
        (b"null", "expected an object with keys x and y, got NoneType"),
        (b'{"y": "1"}', "expected keys x and y, got y"),
        (b'{"x": "a", "z": "1"}', "expected keys x and y, got x, z"),
        (b"{}", "expected keys x and y, got none"),
        (b'{"x": 5, "y": "1"}', "x must be text or an object of texts, got int"),
        (b'{"x": null, "y": "1"}', "x must be text or an object of texts, got NoneType"),
        (b'{"x": {"text": ["a"]}, "y": "1"}', "field 'text' of x must be text, got list"),
        (b'{"x": "a", "y": 1.5}', "y must be text, got float"),
        (b'{"x": "a", "y": "1", "meta": "m"}', "meta must be an object, got str"),
        (b'{"x": " \\n", "y": "1"}', "x is empty"),
        (b'{"x": {}, "y": "1"}', "x is empty"),
        (b'{"x": "a", "y": "\\t"}', "y is empty"),
        (b'{"x": {"b": "a"}, "y": "1"}', "fields of x differ: the first row has text; this one b"),
        (b'{"x": "' + LONG + b'", "y": "1"}', TOO_LONG),
    ],
    ids=lambda value: value[:40].decode(errors="replace") if isinstance(value, bytes) else "",
)
def test_a_bad_json_line_is_reported_and_the_next_is_read(
    tmp_path: Path, row: bytes, reason: str
) -> None:
    lines = [GOOD, b"", row, b"   ", b'{"x": "last", "y": "2"}', row]
    path = write(tmp_path / "pairs.jsonl", b"\r\n".join(lines))
    assert bad_rows(path) == [(3, reason), (6, reason)]
    assert good_inputs(path) == ["a", "last"]


def test_a_number_with_too_many_digits_is_reported(tmp_path: Path) -> None:
    row = b'{"x": "a", "y": "1", "meta": {"n": ' + b"9" * 5000 + b"}}\n"
    ((line, reason),) = bad_rows(write(tmp_path / "pairs.jsonl", row + GOOD))
    assert line == 1
    assert reason.startswith("not usable JSON (Exceeds the limit (4300")


def test_a_whole_character_may_be_spelled_by_two_escapes(tmp_path: Path) -> None:
    path = write(tmp_path / "pairs.jsonl", b'{"x": "\\ud83d\\ude42", "y": "1"}')
    assert good_inputs(path) == ["🙂"]


def test_the_first_good_row_sets_the_fields(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"x": {"a": "", "b": ""}, "y": "1"},
        {"x": {"a": "1", "b": ""}, "y": "1"},
        {"x": "plain", "y": "1"},
        {"x": {"a": "1", "b": "2", "c": "3"}, "y": "1"},
    ]
    path = write(tmp_path / "pairs.jsonl", "\n".join(map(json.dumps, rows)).encode())
    assert bad_rows(path) == [
        (1, "x is empty"),
        (3, "fields of x differ: the first row has a, b; this one text"),
        (4, "fields of x differ: the first row has a, b; this one a, b, c"),
    ]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (b"\xe9,1", "not UTF-8 (byte 0xe9 at column 1); save the file as UTF-8"),
        (LONG + b",1", TOO_LONG),
        (b"b", "expected 2 columns, got 1"),
        (b"b,2,3", "expected 2 columns, got 3"),
        (b'"b"c,2', "not a well-formed row (',' expected after '\"'); check its quotes"),
        (b",1", "x is empty"),
        (b"b,", "y is empty"),
        (b'"several\nlines",', "y is empty"),
        (b'"several\n\xff",2', "not UTF-8 (byte 0xff at column 1); save the file as UTF-8"),
    ],
    ids=lambda value: value[:20].decode(errors="replace") if isinstance(value, bytes) else "",
)
@pytest.mark.parametrize("ending", [".csv", ".tsv"])
def test_a_bad_table_row_is_reported_and_the_next_is_read(
    tmp_path: Path, row: bytes, reason: str, ending: str
) -> None:
    content = b"\n".join([b"x,y", b'"a\nb",1', b"", row, b"last,2"])
    if ending == ".tsv":
        content, reason = content.replace(b",", b"\t"), reason.replace("','", "'\t'")
    path = write(tmp_path / f"pairs{ending}", content)
    assert bad_rows(path) == [(5, reason)]
    assert good_inputs(path) == ["a\nb", "last"]


def test_a_quote_that_is_never_closed_is_reported_where_it_opens(tmp_path: Path) -> None:
    path = write(tmp_path / "pairs.csv", b'x,y\na,1\nb,"2\nc,3\n')
    reason = "not a well-formed row (unexpected end of data); check its quotes"
    assert bad_rows(path) == [(3, reason)]
    assert good_inputs(path) == ["a"]


def test_a_quote_that_is_never_closed_does_not_swallow_a_large_file(tmp_path: Path) -> None:
    rows = [f"{n:09},{'z' * 990}\n" for n in range(3000)]
    path = write(tmp_path / "pairs.csv", ('x,y\n"b,2\n' + "".join(rows)).encode())
    (bad,) = bad_rows(path)
    assert bad[0] == 2
    assert "field larger than field limit" in bad[1]
    assert good_inputs(path)[-1] == "000002999"


def test_an_over_long_line_in_a_quoted_cell_is_the_reason_given(tmp_path: Path) -> None:
    path = write(tmp_path / "pairs.csv", b'x,y\na,1\n"b\n' + LONG + b'",2\nc,3\n')
    assert bad_rows(path) == [(3, TOO_LONG)]


def test_a_row_of_short_lines_can_be_too_long_as_a_whole(tmp_path: Path) -> None:
    half = b"z" * (MAX_ROW_BYTES * 2 // 3)
    path = write(tmp_path / "pairs.csv", b'x,y\n"' + half + b'\n","' + half + b'\n"\nlast,2\n')
    assert bad_rows(path) == [(2, "longer than 1,048,576 characters; shorten or split it")]
    assert good_inputs(path) == ["last"]


@pytest.mark.parametrize("cell", ["x", "y"])
def test_an_empty_cell_of_a_parquet_file_is_reported(tmp_path: Path, cell: str) -> None:
    rows = [{"x": "a", "y": "1"}, {"x": "b", "y": "2", cell: None}, {"x": "last", "y": "2"}]
    path = tmp_path / "pairs.parquet"
    parquet.write_table(pa.Table.from_pylist(rows), path)
    kind = "text or an object of texts" if cell == "x" else "text"
    assert bad_rows(path) == [(2, f"{cell} must be {kind}, got NoneType")]
    assert good_inputs(path) == ["a", "last"]


def test_a_parquet_cell_of_another_type_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "pairs.parquet"
    parquet.write_table(pa.table({"x.a": ["a", None], "x.b": ["b", "c"], "y": [1, 2]}), path)
    wrong = "field 'a' of x must be text, got NoneType"
    assert bad_rows(path) == [(1, "y must be text, got int"), (2, wrong)]


@pytest.mark.parametrize("shorter", ["in", "out"])
def test_parallel_files_of_unequal_length_are_reported(tmp_path: Path, shorter: str) -> None:
    longer = "in" if shorter == "out" else "out"
    write(tmp_path / f"pairs.{shorter}", b"a\nb\n")
    write(tmp_path / f"pairs.{longer}", b"1\n2\n3\n4\n")
    path = tmp_path / "pairs.in"
    reason = f"pairs.{shorter} ends before pairs.{longer}; they must match"
    assert bad_rows(path) == [(3, reason)]


def test_bad_lines_of_parallel_files_are_reported(tmp_path: Path) -> None:
    write(tmp_path / "pairs.in", b"a\n\xff\n\nd\ne")
    path = write(tmp_path / "pairs.out", b"1\n2\n3\n" + LONG + b"\n5\n").with_suffix(".in")
    bad_bytes = "not UTF-8 (byte 0xff at column 1); save the file as UTF-8"
    assert bad_rows(path) == [(2, bad_bytes), (3, "x is empty"), (4, TOO_LONG)]
    assert good_inputs(path) == ["a", "e"]


def test_a_line_that_is_no_card_is_reported(tmp_path: Path) -> None:
    write(tmp_path / "dev_hs.out", b"class A\n")
    path = write(tmp_path / "dev_hs.in", b"a plain line\n")
    reason = "expected a card (NAME NAME_END ...), found no NAME_END"
    assert bad_rows(path) == [(1, reason)]


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
    assert error_of(path, columns) == (
        f"{path}:1: no column {missing!r}, found {found}; "
        "rename it or name yours with --x-columns and --y-column"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"x,y,y\na,1,2\n", "two columns are named 'y'; rename one"),
        (b'"x,y\na,1\n', "not a well-formed row (unexpected end of data); check its quotes"),
        (b"x,\xff\na,1\n", "not UTF-8 (byte 0xff at column 3); save the file as UTF-8"),
        (b'"x\n\xff",y\na,1\n', "not UTF-8 (byte 0xff at column 1); save the file as UTF-8"),
        (LONG + b"\na,1\n", TOO_LONG),
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


@pytest.mark.parametrize("name", ["pairs.jsonl", "pairs.jsonl.gz", "pairs.csv"])
def test_memory_stays_bounded_whatever_the_length_of_a_line(tmp_path: Path, name: str) -> None:
    header, last = (b"x,y\n", b"last,1") if ".csv" in name else (b"\n", b'{"x": "last", "y": "1"}')
    path = write(tmp_path / name, header + b"z" * (10 << 20) + b"\n" + last)
    tracemalloc.start()
    try:
        found = list(scan_pairs(path))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == [BadRow(str(path), 2, TOO_LONG), Example({"text": "last"}, "1")]
    assert peak < 8 << 20
