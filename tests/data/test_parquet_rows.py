"""Parquet in bounded memory: what is read of odd values, and what is refused before it is read."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from redraft.data.pairs import read_pairs
from redraft.data.parquet_pages import Page, batch_rows, read_footer, read_pages
from redraft.data.rows import BadRow
from redraft.errors import PairsError
from redraft.types import Example
from tests.data.outcomes import scan_pairs


def write(path: Path, columns: Mapping[str, Any], **options: Any) -> Path:
    parquet.write_table(pa.table(dict(columns)), path, **options)
    return path


def texts(*values: bytes) -> Any:
    """Texts that need not be UTF-8."""
    return pa.array(values, pa.binary()).view(pa.string())


def noted(path: Path, value: Any) -> Any:
    """The meta `m` of a pair whose column `meta.m` is this array of one value."""
    (found,) = scan_pairs(write(path / "pairs.parquet", {"x": ["a"], "y": ["b"], "meta.m": value}))
    return found.meta["m"] if isinstance(found, Example) else found.reason


MAP = pa.map_(pa.string(), pa.int64())


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (pa.array([1], pa.timestamp("ns")), "1970-01-01 00:00:00.000000001"),
        (pa.array([1000], pa.timestamp("ns")), "1970-01-01 00:00:00.000001"),
        (pa.array([1], pa.timestamp("ns", "UTC")), "1970-01-01 00:00:00.000000001Z"),
        (pa.array([datetime(2024, 1, 2, 3)], pa.timestamp("s")), "2024-01-02 03:00:00"),
        (pa.array([date(2024, 1, 2)]), "2024-01-02"),
        (pa.array([-800_000], pa.date32()), "-0221-09-04"),
        (pa.array([1], pa.time64("ns")), "00:00:00.000000001"),
        (pa.array([timedelta(days=1, seconds=1)]), "1 day, 0:00:01"),
        (pa.array([1], pa.duration("ns")), "1 ns"),
        (pa.array([2**62], pa.duration("s")), "4611686018427387904 s"),
        (pa.array([Decimal("1.50")]), "1.50"),
        (pa.array([None], pa.timestamp("ns")), None),
        (pa.array([b"text"]), "text"),
        (pa.array([b"\xff\x00"]), "0xff00"),
        (pa.array([[("a", 1)]], MAP), [["a", 1]]),
        (
            pa.array([{"day": date(2024, 1, 2), "n": [1, None]}]),
            {"day": "2024-01-02", "n": [1, None]},
        ),
        (pa.array(["a"]).dictionary_encode(), "a"),
        (pa.array([1.5], pa.float16()), 1.5),
        (
            pa.array([float("nan")]),
            "meta 'm' is nan, which JSON does not have; use null, a number or text",
        ),
        (
            pa.array([2**31 - 1], pa.date32()),
            "column 'meta.m': value out of range: 2147483647 of date32[day]; write it as text",
        ),
        (
            pa.array([2**62], pa.timestamp("us")),
            "column 'meta.m': value out of range: 4611686018427387904 of timestamp[us]; "
            "write it as text",
        ),
        (texts(b"a\xff"), "column 'meta.m': not UTF-8 (byte 0xff); write the texts as UTF-8"),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_a_value_that_json_lacks_is_text_or_a_reason(
    value: Any, expected: Any, tmp_path: Path
) -> None:
    assert noted(tmp_path, value) == expected


def test_a_text_that_is_not_utf_8_spoils_its_own_row_only(tmp_path: Path) -> None:
    path = write(
        tmp_path / "pairs.parquet", {"x": texts(b"a", b"\xff", b"c"), "y": ["1", "2", "3"]}
    )
    reason = "column 'x': not UTF-8 (byte 0xff); write the texts as UTF-8"
    assert list(scan_pairs(path)) == [
        Example({"text": "a"}, "1"),
        BadRow(str(path), 2, reason),
        Example({"text": "c"}, "3"),
    ]


def test_a_row_beyond_the_limit_spoils_itself_only(tmp_path: Path) -> None:
    columns = {"x": ["a", "b" * (2 << 20), "c"], "y": ["1", "2", "3"]}
    path = write(tmp_path / "pairs.parquet", columns)
    reason = "longer than 1,048,576 bytes; shorten or split it"
    assert list(scan_pairs(path)) == [
        Example({"text": "a"}, "1"),
        BadRow(str(path), 2, reason),
        Example({"text": "c"}, "3"),
    ]


LARGE = "z" * 500_000


def repeated(text: str, count: int) -> Any:
    """The text so many times, without the memory for it."""
    return pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array([text]))


Bomb = tuple[dict[str, Any], dict[str, Any], str]
BOMBS: dict[str, Callable[[], Bomb]] = {
    "a text in a dictionary": lambda: (
        {"x": ["a"] * 2000, "y": repeated(LARGE, 2000)},
        {"store_schema": False},
        "2000 good",
    ),
    "a shared prefix": lambda: (
        {"x": ["a"] * 900, "y": [LARGE] * 900},
        {"use_dictionary": False, "column_encoding": {"x": "PLAIN", "y": "DELTA_BYTE_ARRAY"}},
        "900 good",
    ),
    "a text in lists": lambda: (
        {"x": ["a"] * 3, "y": ["b"] * 3, "meta.l": [[LARGE] * 300] * 3},
        {},
        "3 bad",
    ),
    "fields in a dictionary": lambda: (
        {"x": pa.StructArray.from_arrays([repeated(LARGE, 2000)], ["a"]), "y": ["b"] * 2000},
        {"store_schema": False},
        "2000 good",
    ),
    "one cell": lambda: (
        {"x": ["a"], "y": ["z" * 300_000_000]},
        {},
        "too large (a page unpacks to 300,000,0",
    ),
    "many large cells": lambda: (
        {"x": ["a"] * 600, "y": [LARGE] * 600},
        {"use_dictionary": False},
        "too large (a page unpacks to 300,",
    ),
    "a list of nothing": lambda: (
        {"x": ["a"], "y": ["b"], "meta.l": pa.array([[None] * 9_000_000], pa.list_(pa.string()))},
        {},
        "too large (the lists of column 'meta.l.list.element' fill a row group)",
    ),
    "many columns": lambda: (
        {"x": ["a"], "y": ["b"], **{f"meta.{at}": ["z" * 50_000_000] for at in range(8)}},
        {"write_statistics": False},
        "too large (its columns unpack to 1,",
    ),
    "a large dictionary": lambda: (
        {"x": ["a"] * 9, "y": repeated("z" * 90_000_000, 9)},
        {"dictionary_pagesize_limit": 1 << 28, "store_schema": False},
        "9 bad",
    ),
}
MEASURE = """
import sys
import pyarrow.compute, pyarrow.parquet
from redraft.types import Example
from redraft.data.pairs import scan_numbered
from redraft.errors import PairsError

def peak(): return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) // 1024

before, counts = peak(), {"good": 0, "bad": 0}
try:
    for _, found in scan_numbered(sys.argv[1]):
        counts["good" if isinstance(found, Example) else "bad"] += 1
    said = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
except PairsError as error:
    said = str(error)
print(peak() - before, said)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
@pytest.mark.parametrize("name", BOMBS)
def test_memory_stays_bounded_whatever_a_file_unpacks_to(name: str, tmp_path: Path) -> None:
    columns, options, expected = BOMBS[name]()
    path = write(tmp_path / "pairs.parquet", columns, compression="zstd", **options)
    assert path.stat().st_size < 50_000
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, path],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    megabytes, _, said = done.stdout.strip().partition(" ")
    assert expected in said
    assert int(megabytes) < 400, done.stdout


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd"])
@pytest.mark.parametrize("is_dictionary", [True, False])
def test_the_headers_of_all_pages_are_found(
    version: str, compression: str, is_dictionary: bool, tmp_path: Path
) -> None:
    count = 30_000
    path = write(
        tmp_path / "pairs.parquet",
        {"x": [f"text {at}" for at in range(count)], "y": [f"{at % 7}" for at in range(count)]},
        data_page_version=version,
        compression=compression,
        use_dictionary=is_dictionary,
        data_page_size=10_000,
        row_group_size=12_000,
    )
    table = parquet.ParquetFile(path)
    with path.open("rb") as stream:
        groups = read_footer(stream)
    assert [group.rows for group in groups] == [12_000, 12_000, 6_000]
    seen = [0, 0]
    for at, group in enumerate(groups):
        for number, chunk in enumerate(group.chunks):
            column = table.metadata.row_group(at).column(number)
            with path.open("rb") as stream:
                pages = list(read_pages(stream, chunk))
            assert chunk.values == column.num_values
            assert len(pages) > 1 or is_dictionary
            assert sum(page.unpacked for page in pages) <= column.total_uncompressed_size
            seen[number] += sum(page.values for page in pages)
    assert seen == [count, count]
    assert [example.y for example in read_pairs(path)] == [f"{at % 7}" for at in range(count)]


pages = st.lists(
    st.builds(Page, st.integers(0, 1 << 24), st.integers(0, 3000), st.integers(0, 1 << 16)),
    min_size=1,
    max_size=12,
)


@given(st.lists(pages, min_size=1, max_size=2))
def test_no_batch_of_the_rows_chosen_is_larger_than_allowed(columns: list[list[Page]]) -> None:
    try:
        rows = batch_rows(columns)
    except ValueError:
        return
    assert 1 <= rows <= 4096
    if rows == 1:
        return
    for column in columns:
        starts = [sum(page.values for page in column[:at]) for at in range(len(column))]
        # every batch that begins with the last row of a page reaches as many pages as any
        for start, first in zip(starts, column, strict=True):
            begin = start + max(0, first.values - 1)
            touched = [
                page
                for at, page in zip(starts, column, strict=True)
                if at < begin + rows and at + page.values > begin
            ]
            assert sum(page.unpacked for page in touched) <= 1 << 26


def test_a_file_whose_pages_lie_about_their_size_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "pairs.parquet", {"x": ["a"], "y": ["b"]}, compression="none")
    content = path.read_bytes()
    path.write_bytes(content[:4] + b"\x15\x04\x15\xff\xff\xff\xff\x0f" + content[12:])
    with pytest.raises(PairsError, match=r"pairs\.parquet: (not a Parquet file|too large) \("):
        list(scan_pairs(path))
