"""The made-up team's questions: what is held out, what leaks, and SQL that a database accepts."""

import re
import sqlite3
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.pairs.queries import make_queries
from experiments.pairs.query_tables import (
    LOOKUPS,
    RESERVED,
    STATUSES,
    THINGS,
    Dates,
    Table,
    create_lookups,
    make_tables,
)
from experiments.pairs.query_templates import TEMPLATES, Values, in_month
from redraft.types import Example

SPLITS = make_queries()
QUOTED = re.compile(r"'[^']*'")
DATE = re.compile(r"'\d{4}-\d\d(-\d\d)?'")


def combinations(examples: list[Example]) -> set[tuple[str, str]]:
    return {(each.meta["table"], each.meta["template"]) for each in examples}


def test_the_splits_have_their_sizes() -> None:
    assert {name: len(part) for name, part in SPLITS.items()} == {
        "train": 500,
        "dev": 100,
        "test": 100,
    }
    assert len(make_tables(0)) == len(THINGS) == 40
    assert len(TEMPLATES) == 15


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_a_team_is_a_function_of_its_seed(seed: int) -> None:
    assert make_tables(seed) == make_tables(seed)
    assert make_tables(seed) != make_tables(seed + 1)


def test_the_same_seed_asks_the_same_questions() -> None:
    assert make_queries(7) == make_queries(7)
    assert make_queries(7) != make_queries(8)


@pytest.mark.parametrize("seed", range(5))
def test_held_out_combinations_never_occur_in_another_split(seed: int) -> None:
    splits = make_queries(seed)
    train, dev, test = (combinations(part) for part in splits.values())
    assert not train & dev
    assert not train & test
    assert not dev & test
    for held_out in (dev, test):
        assert {table for table, _ in held_out} == {table for table, _ in train}
        assert {template for _, template in held_out} <= {template for _, template in train}


@pytest.mark.parametrize("seed", range(5))
def test_no_output_and_no_question_stands_in_another_split(seed: int) -> None:
    train, dev, test = make_queries(seed).values()
    for one, other in ((train, dev), (train, test), (dev, test)):
        assert not {each.y for each in one} & {each.y for each in other}
        assert not {each.x["text"] for each in one} & {each.x["text"] for each in other}
    assert len({each.identity for each in train}) == len(train)


@pytest.mark.parametrize("seed", range(5))
def test_every_statement_is_accepted_by_a_database_with_these_tables(seed: int) -> None:
    database = sqlite3.connect(":memory:")
    for statement in (*create_lookups(), *(table.create() for table in make_tables(seed))):
        database.execute(statement)
    for part in make_queries(seed).values():
        for example in part:
            # a misspelt column in double quotes would pass as text; there are no double quotes
            assert '"' not in example.y
            database.execute(f"EXPLAIN {example.y}")
    database.close()


def test_what_a_held_out_answer_needs_stands_in_other_answers_of_its_table() -> None:
    known: dict[str, set[str]] = defaultdict(set)
    for example in SPLITS["train"]:
        known[example.meta["table"]] |= needed(example.y)
    for example in (*SPLITS["dev"], *SPLITS["test"]):
        assert needed(example.y) <= known[example.meta["table"]]


def needed(sql: str) -> set[str]:
    """Columns with their aliases, and codes."""
    codes = {each for each in QUOTED.findall(sql) if not DATE.fullmatch(each)}
    return codes | set(re.findall(r"[a-z]+\.\w+", sql))


def test_tables_call_the_same_things_by_other_names() -> None:
    tables = make_tables(0)
    for names in (
        {table.customer for table in tables},
        {table.measure for table in tables},
        {table.status for table in tables},
        {table.deleted for table in tables},
    ):
        assert len(names) >= 6
    assert {table.dates for table in tables} == set(Dates)
    assert 5 <= sum(table.lookup is not None for table in tables) <= 25
    assert any(table.is_cents for table in tables)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_names_are_unlike_and_aliases_unlike_those_of_lookups(seed: int) -> None:
    tables = make_tables(seed)
    lookups = {name for each in LOOKUPS.values() for name in (each.name, each.alias)}
    names = [table.name for table in tables]
    assert len(set(names)) == len(names)
    for table in tables:
        assert not {table.name, table.alias} & (lookups | RESERVED)
        assert table.alias == "".join(word[0] for word in table.name.split("_"))
        assert len(set(table.columns)) == len(table.columns)
        for coded in (table.codes, table.values):
            assert len(set(coded.values())) == len(coded)
        assert tuple(table.codes) in STATUSES.values()


def table_of(dates: Dates) -> Table:
    return next(table for table in make_tables(0) if table.dates is dates)


def test_a_month_is_asked_for_as_its_table_says_when() -> None:
    values = Values(2023, 12, "open", "North", 4711, 5, 100, "December 2023")
    day, month, number, parts = (table_of(dates) for dates in Dates)
    assert in_month(day, values).endswith(f"{day.column(day.date[0])} < '2024-01-01'")
    assert in_month(month, values) == f"{month.column(month.date[0])} = '2023-12'"
    assert in_month(number, values) == f"{number.column(number.date[0])} = 202312"
    year, own = (parts.column(each) for each in parts.date)
    assert in_month(parts, values) == f"{year} = 2023 AND {own} = 12"
