"""Files of pairs with odd values and damaged bytes end in rows, or in one line that names them."""

from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from redraft.data.parquet_pages import read_footer, read_pages
from redraft.data.thrift import ThriftError
from tests.data.fuzz_files import MAKERS, outcome_of, run


@pytest.mark.parametrize("ending", MAKERS)
def test_a_fuzzed_file_is_rows_or_one_line(ending: str, tmp_path: Path) -> None:
    outcomes = {}
    for case in run(150, seed=0, folder=tmp_path, endings=(ending,)):
        assert case.outcome in ("rows", "error"), f"--endings {ending} --only {case.number}"
        outcomes[case.outcome] = case.number
    assert "rows" in outcomes


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300), st.sampled_from(["pairs.jsonl", "pairs.csv", "pairs.parquet"]))
def test_any_bytes_are_rows_or_one_line(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, name: str
) -> None:
    path = tmp_path_factory.mktemp("fuzz") / name
    path.write_bytes(content)
    assert outcome_of(path) in ("rows", "error")


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_header_of_a_page_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "pairs.parquet"
    parquet.write_table(pa.table({"x": ["a", "b"]}), path, compression="none")
    with path.open("rb") as stream:
        ((chunk,),) = (group.chunks for group in read_footer(stream))
    content = path.read_bytes()
    header = data.draw(st.binary(min_size=1, max_size=40))
    path.write_bytes(content[:4] + header + content[4 + len(header) :])
    with path.open("rb") as stream, suppress(ThriftError):
        pages = list(read_pages(stream, chunk))
        assert all(page.values >= 0 and page.unpacked >= 0 for page in pages)


def test_a_table_of_many_columns_is_read_in_linear_time(tmp_path: Path) -> None:
    names = [f"x.{number}" for number in range(90_000)]
    path = tmp_path / "pairs.csv"
    path.write_text(",".join([*names, "y"]) + "\n" + "a," * 90_000 + "b\n")
    assert outcome_of(path) == "rows"  # comparing all with all takes minutes
    path.write_text(",".join(names) + "\n" + "a," * 89_999 + "b\n")
    assert outcome_of(path) == "error"
