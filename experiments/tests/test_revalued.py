"""Questions with other values: the same substitution in x and y, from the same columns."""

import re
import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.messy.revalued import revalue
from experiments.messy.support_pairs import SCHEMA, stored_rows
from redraft.types import Example, input_text

ROWS = stored_rows(0)


def pair(x: str, y: str) -> Example:
    return Example({"text": x}, y)


def whole(value: str, text: str) -> bool:
    return re.search(rf"(?<![\w]){re.escape(value)}(?!\w)", text, re.IGNORECASE) is not None


@settings(max_examples=300, deadline=None)
@given(at=st.integers(0, len(ROWS) - 1), seed=st.integers(0, 10**6))
def test_x_and_y_change_consistently(at: int, seed: int) -> None:
    example = ROWS[at]
    asked = revalue(example, ROWS, seed)
    if asked is None:
        return
    assert input_text(asked.x) != input_text(example.x)
    assert asked.y != example.y
    for old, new in asked.meta["revalued"].items():
        assert whole(old, input_text(example.x))
        assert not whole(new, input_text(example.x))  # no value that is already elsewhere in x
        assert whole(new, input_text(asked.x))
        assert not whole(old, input_text(asked.x))
        assert whole(new.replace("'", "''"), asked.y)
        assert not whole(old.replace("'", "''"), asked.y)
    assert len(set(asked.meta["revalued"].values())) == len(asked.meta["revalued"])


def test_most_rows_of_the_team_share_a_value_and_stay_sql() -> None:
    asked = [each for row in ROWS if (each := revalue(row, ROWS, 0))]
    assert len(asked) > 0.6 * len(ROWS)
    database = sqlite3.connect(":memory:")
    try:
        database.executescript(SCHEMA)
        for example in asked:
            database.execute(f"EXPLAIN {example.y}")
    finally:
        database.close()


def test_the_seed_chooses_the_values() -> None:
    assert revalue(ROWS[0], ROWS, 1) == revalue(ROWS[0], ROWS, 1)
    assert len({str(revalue(ROWS[3], ROWS, seed)) for seed in range(20)}) > 3


def test_nothing_shared_gives_none() -> None:
    assert revalue(pair("unassigned tickets", "SELECT 1"), ROWS, 0) is None
    assert revalue(pair("customers Poland", "… WHERE country = 'PL'"), ROWS, 0) is None


def test_a_value_comes_from_the_same_column() -> None:
    others = [
        pair("ann's orders", "SELECT * FROM orders o WHERE o.buyer = 'Ann'"),
        pair("things in rome", "SELECT * FROM things WHERE city = 'Rome'"),
        pair("buyer li na", "SELECT * FROM orders WHERE buyer = 'Li Na'"),
    ]
    example = pair("orders of BOB", "SELECT * FROM orders WHERE buyer = 'Bob'")
    asked = [revalue(example, others, seed) for seed in range(20)]
    assert {each.meta["revalued"]["bob"] for each in asked if each} == {"Ann", "Li Na"}
    assert None not in asked


@pytest.mark.parametrize(
    ("x", "y", "other", "expected"),
    [
        (
            "between 5 and 9",
            "WHERE n BETWEEN 5 AND 9",
            pair("between 30 and 20", "WHERE n BETWEEN 20 AND 30"),
            ("between 20 and 30", "WHERE n BETWEEN 20 AND 30"),
        ),
        (
            "orders of tim dorn",
            "WHERE name LIKE '%Tim Dorn%'",
            pair("orders of Sean O'Neill", "WHERE name = 'Sean O''Neill'"),
            ("orders of sean o'neill", "WHERE name LIKE '%Sean O''Neill%'"),
        ),
        (
            'search for "chrome" below /etc',
            "grep -r chrome /etc",
            pair('search for "two words" or "safari"', 'grep -r "two words" ; grep -r safari'),
            ('search for "safari" below /etc', "grep -r safari /etc"),
        ),
        (
            "refund 20 on order 31",
            "INSERT INTO refunds (a, b) VALUES (31, 20)",
            pair("refund 7 on 99", "INSERT INTO refunds (a, b) VALUES (99, 7)"),
            ("refund 7 on order 99", "INSERT INTO refunds (a, b) VALUES (99, 7)"),
        ),
    ],
)
def test_values_are_written_as_their_place_asks(
    x: str, y: str, other: Example, expected: tuple[str, str]
) -> None:
    asked = revalue(pair(x, y), [other], 0)
    assert asked is not None
    assert (input_text(asked.x), asked.y) == expected


def test_fields_change_alike() -> None:
    example = Example({"title": "Bob", "body": "call bob"}, "notify(name='Bob')")
    asked = revalue(example, [pair("Eve", "notify(name='Eve')")], 0)
    assert asked is not None
    assert asked.x == {"title": "Eve", "body": "call eve"}
