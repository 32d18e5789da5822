"""The same examples from every format; and back to disk, whole or not at all."""

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from redraft.data.pairs import is_pairs, read_pairs, write_pairs
from redraft.data.tables import Columns
from redraft.errors import PairsError
from redraft.types import Example
from tests.data.outcomes import scan_pairs

Rows = list[dict[str, Any]]

PLAIN: Rows = [
    {"x": "add two", "y": "a + b"},
    {"x": 'say "hi", twice\nor more', "y": "print('hi')\n\tprint('hi')"},
    {"x": "größer § than\u2028this", "y": "🙂"},
]
FIELDS: Rows = [
    {"x": {"a": "one", "b": ""}, "y": "1", "meta": {"k": "first"}},
    {"x": {"a": "two,\n2", "b": "zwei"}, "y": "2", "meta": {"k": ""}},
]
ONE_FIELD: Rows = [{"x": {"a": "one"}, "y": "1"}]


def flat(row: dict[str, Any]) -> dict[str, str]:
    """A row as the cells of a table."""
    x = row["x"]
    inputs = {"x": x} if isinstance(x, str) else {f"x.{name}": text for name, text in x.items()}
    notes = {f"meta.{name}": text for name, text in row.get("meta", {}).items()}
    return {**inputs, "y": row["y"], **notes}


def json_lines(rows: Rows) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def table(rows: Rows, delimiter: str = ",") -> bytes:
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, flat(rows[0]), delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows(map(flat, rows))
    return stream.getvalue().encode()


def tabbed(rows: Rows) -> bytes:
    return table(rows, "\t")


def arrow(rows: Rows) -> bytes:
    stream = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist([flat(row) for row in rows]), stream)
    return stream.getvalue()


WRITERS: dict[str, Callable[[Rows], bytes]] = {
    ".jsonl": json_lines,
    ".ndjson": json_lines,
    ".csv": table,
    ".tsv": tabbed,
    ".parquet": arrow,
}


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def expected(rows: Rows) -> list[Example]:
    return [Example.from_json(row) for row in rows]


@pytest.mark.parametrize("packing", ["", ".gz"])
@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("rows", [PLAIN, FIELDS, ONE_FIELD], ids=["plain", "fields", "one field"])
def test_every_format_gives_the_same_examples(
    tmp_path: Path, rows: Rows, ending: str, packing: str
) -> None:
    path = write(tmp_path / f"pairs{ending}{packing}", WRITERS[ending](rows))
    assert is_pairs(path)
    assert read_pairs(path) == expected(rows)
    assert read_pairs(str(path)) == list(scan_pairs(path))


@pytest.mark.parametrize("packing", ["", ".gz"])
def test_parallel_files_hold_a_text_a_line(tmp_path: Path, packing: str) -> None:
    rows = [{"x": "add\ntwo", "y": "a + b\nreturn"}, {"x": "größer", "y": "\u2028 >"}]
    for side, name in (("x", "in"), ("y", "out")):
        lines = "".join(row[side].replace("\n", "§") + "\n" for row in rows)
        write(tmp_path / f"pairs.{name}{packing}", lines.encode())
    assert read_pairs(tmp_path / f"pairs.in{packing}") == expected(rows)


@pytest.mark.parametrize("packing", ["", ".gz"])
def test_card_files_hold_cards(tmp_path: Path, packing: str) -> None:
    card = (
        "Miller NAME_END 3 ATK_END 2 DEF_END 2 COST_END -1 DUR_END Minion TYPE_END "
        "Neutral PLAYER_CLS_END NIL RACE_END Common RARITY_END Mills.\n"
    )
    write(tmp_path / f"train_hs.in{packing}", card.encode())
    write(tmp_path / f"train_hs.out{packing}", "class Miller:§    pass§\n".encode())
    (example,) = read_pairs(tmp_path / f"train_hs.in{packing}")
    assert list(example.x) == ["name", "properties", "description"]
    assert example.x["name"] == "Miller Miller"
    assert example.y == "class Miller:\n    pass\n"


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".tsv"])
def test_a_byte_order_mark_and_windows_line_ends_change_nothing(
    tmp_path: Path, ending: str
) -> None:
    content = WRITERS[ending](PLAIN).replace(b"\n", b"\r\n")
    path = write(tmp_path / f"pairs{ending}", b"\xef\xbb\xbf" + content)
    assert read_pairs(path) == expected(PLAIN)


def test_parallel_files_may_have_windows_line_ends(tmp_path: Path) -> None:
    write(tmp_path / "pairs.in", b"\xef\xbb\xbfa\r\nb\r\n")
    path = write(tmp_path / "pairs.out", b"1\n2")
    assert read_pairs(path.with_suffix(".in")) == expected(
        [{"x": "a", "y": "1"}, {"x": "b", "y": "2"}]
    )


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet"])
def test_columns_are_chosen_by_name(tmp_path: Path, ending: str) -> None:
    rows = [{"x": "one", "y": "1", "meta": {"k": "first"}}]
    path = write(tmp_path / f"pairs{ending}", WRITERS[ending](rows))
    one = Columns(inputs=("y",), output="x")
    assert read_pairs(path, one) == [Example({"y": "1"}, "one", {"k": "first"})]
    two = Columns(inputs=("y", "meta.k"), output="x")
    assert read_pairs(path, two) == [Example({"y": "1", "meta.k": "first"}, "one", {"k": "first"})]


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet"])
def test_other_columns_of_a_table_become_meta(tmp_path: Path, ending: str) -> None:
    rows = [{"x": "one", "y": "1", "meta": {"k": "first"}}]
    content = WRITERS[ending](rows)
    if ending != ".parquet":
        content = content.replace(b"meta.k", b"author")
        path = write(tmp_path / f"pairs{ending}", content)
    else:
        path = tmp_path / "pairs.parquet"
        parquet.write_table(pa.table({"x": ["one"], "y": ["1"], "author": ["first"]}), path)
    assert read_pairs(path) == [Example({"text": "one"}, "1", {"author": "first"})]


def test_of_two_columns_with_one_name_the_last_is_kept_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path / "pairs.csv", b"id,y,x,note,note,\n7,1,one,a,b,\n")
    assert read_pairs(path) == [Example({"text": "one"}, "1", {"id": "7", "note": "b"})]
    assert caplog.messages == [f"{path}:1: two columns are named 'note'; the last one is kept"]


@pytest.mark.parametrize("delimiter", [";", ",", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_exports_of_spreadsheets_are_recognised(
    tmp_path: Path, delimiter: str, encoding: str
) -> None:
    lines = ['question{0}sql{0}"city{0} land"', '"a;b,c"{0}"1"{0}Łódź', "d{0}2{0}"]
    text = "".join(line.format(delimiter) + "\r\n" for line in lines)
    path = write(tmp_path / "pairs.csv", text.encode(encoding))
    assert read_pairs(path, Columns(("question",), "sql")) == [
        Example({"question": "a;b,c"}, "1", {f"city{delimiter} land": "Łódź"}),
        Example({"question": "d"}, "2", {f"city{delimiter} land": ""}),
    ]


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz"])
def test_json_lines_may_be_utf_16(tmp_path: Path, ending: str) -> None:
    content = '{"x": "Łódź", "y": "1"}\n{"x": "b", "y": "2"}'.encode("utf-16")
    path = tmp_path / f"pairs{ending}"
    path.write_bytes(gzip.compress(content) if ending.endswith(".gz") else content)
    assert [example.y for example in read_pairs(path)] == ["1", "2"]


def test_damaged_utf_16_is_one_error(tmp_path: Path) -> None:
    path = write(tmp_path / "pairs.csv", "x,y\na,1\n".encode("utf-16")[:-1])
    with pytest.raises(PairsError, match=r"pairs\.csv: damaged UTF-16 \(.*save the file as UTF-8"):
        read_pairs(path)


def test_a_spreadsheet_is_refused_with_advice(tmp_path: Path) -> None:
    with pytest.raises(PairsError, match="is a spreadsheet; save the sheet as CSV"):
        read_pairs(write(tmp_path / "pairs.xlsx", b"PK"))


def test_the_hint_repeats_the_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "my pairs.csv", b"a b,sql\n,1\n")
    hint = f"`redraft check '{path}' --x-columns 'a b' --y-column sql` lists every bad row"
    with pytest.raises(PairsError, match="x is empty") as error:
        read_pairs(path, Columns(("a b",), "sql"))
    assert hint in str(error.value)


def test_a_parquet_input_may_be_a_struct(tmp_path: Path) -> None:
    path = tmp_path / "pairs.parquet"
    parquet.write_table(pa.Table.from_pylist([{"x": {"a": "one", "b": "two"}, "y": "1"}]), path)
    assert read_pairs(path) == [Example({"a": "one", "b": "two"}, "1")]


def test_all_batches_of_a_parquet_file_are_read(tmp_path: Path) -> None:
    rows = [{"x": f"input {n}", "y": f"{n}"} for n in range(10_000)]
    assert read_pairs(write(tmp_path / "pairs.parquet", arrow(rows))) == expected(rows)


def test_fields_take_the_order_of_the_first_row(tmp_path: Path) -> None:
    rows: Rows = [{"x": {"b": "1", "a": "2"}, "y": "1"}, {"x": {"a": "3", "b": "4"}, "y": "2"}]
    path = write(tmp_path / "pairs.jsonl", json_lines(rows))
    assert [list(example.x) for example in read_pairs(path)] == [["b", "a"], ["b", "a"]]


texts = st.text(min_size=1).filter(str.strip)
notes = st.dictionaries(st.text(), st.text() | st.integers() | st.none() | st.booleans())


@given(
    st.lists(st.builds(Example, st.fixed_dictionaries({"a": texts, "b": st.text()}), texts, notes))
)
def test_written_pairs_are_read_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, examples: list[Example]
) -> None:
    path = tmp_path_factory.getbasetemp() / "round-trip.jsonl"
    assert write_pairs(examples, path) == len(examples)
    if examples:
        assert read_pairs(path) == examples


def test_plain_inputs_are_written_plainly(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    write_pairs([Example({"text": "größer"}, "1"), Example({"a": "b"}, "2", {"k": 1})], path)
    lines = path.read_bytes().decode().split("\n")
    assert lines[0] == '{"x": "größer", "y": "1"}'
    assert lines[1:] == ['{"x": {"a": "b"}, "y": "2", "meta": {"k": 1}}', ""]


def test_notes_that_json_lacks_are_written_as_text(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    write_pairs([Example({"text": "x"}, "y", {"day": date(2024, 1, 2)})], path)
    assert read_pairs(path)[0].meta == {"day": "2024-01-02"}


def test_half_a_character_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    write_pairs([Example({"text": "a\ud800b"}, "y")], path)
    assert Example.from_json(json.loads(path.read_text(encoding="utf-8"))).x["text"] == "a\ud800b"


def interrupted() -> Iterator[Example]:
    yield Example({"text": "x"}, "y")
    raise KeyboardInterrupt


def test_an_interrupted_write_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        write_pairs(interrupted(), tmp_path / "pairs.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_write_leaves_the_earlier_file_as_it_was(tmp_path: Path) -> None:
    path = write(tmp_path / "pairs.jsonl", json_lines(PLAIN))
    with pytest.raises(KeyboardInterrupt):
        write_pairs(interrupted(), path)
    assert list(tmp_path.iterdir()) == [path]
    assert read_pairs(path) == expected(PLAIN)


def test_reading_stops_at_the_first_bad_row(tmp_path: Path) -> None:
    path = write(tmp_path / "pairs.jsonl", b'{"x": "a", "y": "1"}\n\n{"x": "b"}\nnot JSON\n')
    with pytest.raises(PairsError) as caught:
        read_pairs(path)
    assert str(caught.value) == (
        f"{path}:3: expected keys x and y, got x (`redraft check {path}` lists every bad row)"
    )


@pytest.mark.parametrize("name", ["pairs.txt", "pairs", "pairs.gz", "pairs.out", "pairs.jsonl.zip"])
def test_an_unknown_kind_of_file_is_an_error_that_lists_the_kinds(name: str) -> None:
    assert not is_pairs(Path(name))
    with pytest.raises(PairsError) as caught:
        read_pairs(name)
    assert str(caught.value) == (
        f"{name}: unknown file format; the name must end in "
        ".jsonl, .ndjson, .csv, .tsv, .parquet, .in (or .gz)"
    )


def test_pairs_are_written_into_a_folder_that_is_made_or_it_is_said_why_not(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "pairs.jsonl"
    assert write_pairs(expected(PLAIN), path) == len(PLAIN)
    assert read_pairs(path) == expected(PLAIN)
    below = path / "pairs.jsonl"  # a file is no folder
    with pytest.raises(PairsError) as caught:
        write_pairs(expected(PLAIN), below)
    assert str(caught.value).startswith(f"{below}: cannot be written (")
