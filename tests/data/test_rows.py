"""Every bad row is reported with its line and its reason, and the rows after it are still read."""

import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from redraft.data.rows import MAX_ROW_BYTES, BadRow
from redraft.types import Example
from tests.data.outcomes import scan_pairs

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
        (
            b'{"x": "a", "y": "1", "meta": {"m": NaN}}',
            "meta 'm' is nan, which JSON does not have; use null, a number or text",
        ),
        (
            b'{"x": "a", "y": "1", "meta": {"m": [-1e999]}}',
            "meta 'm' is -inf, which JSON does not have; use null, a number or text",
        ),
        (
            b'{"x": "a", "y": "1", "meta": {"m": ' + b"[" * 900 + b"]" * 900 + b"}}",
            "meta 'm' is nested more than 32 deep; flatten it",
        ),
        (b'{"\\u001b]0;t\\u0007\\n": 1}', r"expected keys x and y, got \x1b]0;t\x07\n"),
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
        content, reason = content.replace(b",", b"\t"), reason.replace("','", r"'\t'")
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
