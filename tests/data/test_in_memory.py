"""Examples from tuples, rows, DataFrames and datasets."""

from collections.abc import Iterator
from typing import Any, ClassVar

import pandas as pd
import pytest

from redraft import RetrieveAndEdit
from redraft.data.in_memory import examples_from
from redraft.data.tables import Columns
from redraft.errors import PairsError
from redraft.types import Example

NAMED = Columns(("question",), "sql")
CELLS = {"question": ["a", "b"], "sql": ["1", "2"], "n": [7, 8], "note": [None, "late"]}
EXPECTED = [
    Example({"question": "a"}, "1", {"n": 7, "note": None}),
    Example({"question": "b"}, "2", {"n": 8, "note": "late"}),
]


class Dataset:
    """The part of `datasets.Dataset` that is used: the names of the columns, and rows as dicts."""

    column_names: ClassVar = list(CELLS)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (dict(zip(CELLS, row, strict=True)) for row in zip(*CELLS.values(), strict=True))


ROWS = list(Dataset())


@pytest.mark.parametrize(
    "table",
    [pd.DataFrame(CELLS), Dataset(), ROWS, iter(ROWS)],
    ids=["pandas", "dataset", "rows", "stream"],
)
def test_a_table_is_read_by_its_columns(table: Any) -> None:
    assert examples_from(table, NAMED) == EXPECTED


@pytest.mark.parametrize("missing", [float("nan"), pd.NaT, pd.NA])
def test_a_missing_value_of_meta_is_none(missing: Any) -> None:
    table = pd.DataFrame({"x": ["a"], "y": ["1"], "note": pd.Series([missing], dtype=object)})
    assert examples_from(table, Columns()) == [Example({"text": "a"}, "1", {"note": None})]


def test_tuples_and_rows_are_examples() -> None:
    rows = [("a", "1"), ["b", "2", {"k": 1}], {"x": "c", "y": "3"}, Example({"text": "d"}, "4")]
    assert [(e.x["text"], e.y, e.meta) for e in examples_from(rows, Columns())] == [
        ("a", "1", {}),
        ("b", "2", {"k": 1}),
        ("c", "3", {}),
        ("d", "4", {}),
    ]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("pairs.csv", "expected examples, got str; read a file with redraft.read_pairs"),
        ({"a": "1"}, "expected examples, got dict; .* or give a list of \\(input, output\\)"),
        (7, "expected examples, got int"),
        ([("a", "1"), ("b", 2)], "example 2: y must be text, got int"),
        ([("a",)], "example 1: expected an object with keys x and y, got tuple"),
        (
            pd.DataFrame({"q": ["a"], "y": ["1"]}),
            "this DataFrame: no column 'x', .*such as with columns=redraft.Columns\\(",
        ),
        (pd.DataFrame({"x": ["a"], "y": [None]}), "example 1: y is empty"),
        (pd.DataFrame({"x": ["a", float("nan")], "y": ["1", "2"]}), "example 2: x is empty"),
        ({"a": pd.DataFrame({"x": ["a"]})}, "expected one dataset, got several: a; give one"),
    ],
    ids=["path", "mapping", "number", "output", "short", "column", "missing", "nan", "splits"],
)
def test_what_is_no_example_is_named(source: Any, message: str) -> None:
    with pytest.raises(PairsError, match=message):
        examples_from(source, Columns())


def test_rows_among_others_may_lack_a_column() -> None:
    rows = [{"question": "a", "sql": "1", "n": 7}, {"question": "b", "sql": "2"}, ("c", "3")]
    assert examples_from(rows[:2], NAMED) == [
        Example({"question": "a"}, "1", {"n": 7}),
        Example({"question": "b"}, "2", {"n": None}),
    ]
    with pytest.raises(PairsError, match="example 3: fields of x differ"):
        examples_from(rows, NAMED)
    with pytest.raises(PairsError, match="example 2: x is empty"):
        examples_from([rows[0], {"sql": "2"}], NAMED)
    with pytest.raises(PairsError, match="this list: no column 'question', found 'q', 'sql'"):
        examples_from([{"q": "a", "sql": "1"}], NAMED)
    assert examples_from([], NAMED) == []


def test_a_model_is_fitted_on_a_table_and_asked_by_plain_text() -> None:
    model = RetrieveAndEdit.fit(pd.DataFrame(CELLS), columns=NAMED)
    assert model.predict_one("B").output == "2"
    [[prototype]] = model.retriever.retrieve(["b"])
    assert prototype.example.x == {"question": "b"}


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ("a", "expected a list of inputs, got one input; put it into a list"),
        ({"question": "a"}, "expected a list of inputs"),
        ([7], "an input is text or fields by name, got int"),
        ([" "], "the input is empty; give some text"),
        ([{"question": ""}], "the input is empty"),
    ],
)
def test_a_wrong_input_says_what_is_expected(inputs: Any, message: str) -> None:
    model = RetrieveAndEdit.fit(EXPECTED, editor="verbatim")
    with pytest.raises(PairsError, match=message):
        model.predict(inputs)
