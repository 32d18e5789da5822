"""A support team's messy rows and held-out questions: SQL that a database accepts, and no leaks."""

import re
import sqlite3
from collections import Counter
from functools import lru_cache
from pathlib import Path

import pytest

from experiments.messy import NO_ANSWER
from experiments.messy.__main__ import main
from experiments.messy.support_pairs import (
    KINDS,
    MAPPING,
    SCHEMA,
    STATEMENTS,
    STORED,
    SUBSTITUTE,
    UNANSWERABLE,
    held_out,
    stored_rows,
)
from experiments.messy.support_statements import HELD
from experiments.messy.support_values import AUTHORS, BEN, CHIDI, CUSTOMERS
from redraft.data.pairs import read_pairs
from redraft.types import Example, input_text

SEEDS = range(5)
LITERAL = re.compile(r"'(?:[^']|'')*'|\b\d[\d.]*")


def text(example: Example) -> str:
    return input_text(example.x)


def folded(sql: str) -> str:
    return " ".join(sql.lower().split()).removesuffix(";")


def skeleton(sql: str) -> str:
    return LITERAL.sub("_", folded(sql))


@lru_cache
def dev(seed: int, kind: str) -> list[Example]:
    return [example for example in held_out(seed) if example.meta["kind"] == kind]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_database_accepts_every_statement(seed: int) -> None:
    database = sqlite3.connect(":memory:")
    try:
        database.executescript(SCHEMA)
        for example in (*stored_rows(seed), *held_out(seed)):
            if example.y != NO_ANSWER:
                database.execute(f"EXPLAIN {example.y}")
    finally:
        database.close()


def test_rows_are_a_function_of_the_seed() -> None:
    assert stored_rows(1) == stored_rows(1) != stored_rows(2)
    assert held_out(1) == held_out(1) != held_out(2)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_table_is_messy(seed: int) -> None:
    rows = stored_rows(seed)
    assert len(rows) == 300
    assert 15 <= len({row.meta["statement"] for row in rows}) <= len(STATEMENTS) <= 25
    assert set(Counter(row.meta["author"] for row in rows)) == set(AUTHORS)
    assert [row.meta["date"] for row in rows] == sorted(row.meta["date"] for row in rows)
    distinct_inputs = {text(row) for row in rows}
    distinct_words = {re.sub(r"\W+", " ", each.lower()).strip() for each in distinct_inputs}
    assert 15 <= len(rows) - len(distinct_inputs) <= 70  # exact duplicates
    assert len(distinct_words) < len(distinct_inputs)  # near duplicates
    updates = [row for row in rows if row.y.lower().startswith("update")]
    assert len(updates) > 40


def test_colleagues_write_differently() -> None:
    rows = stored_rows(0)
    words = {
        author: [len(text(row).split()) for row in rows if row.meta["author"] == author]
        for author in AUTHORS
    }
    means = {author: sum(lengths) / len(lengths) for author, lengths in words.items()}
    assert means["ines"] < means["dora"] < means[BEN]
    lower = [text(row).islower() for row in rows if row.meta["author"] == CHIDI]
    assert sum(lower) > 0.8 * len(lower)


@pytest.mark.parametrize("seed", SEEDS)
def test_held_out_questions_have_their_kinds(seed: int) -> None:
    assert Counter(example.meta["kind"] for example in held_out(seed)) == KINDS
    asked = {" ".join(text(row).lower().split()) for row in stored_rows(seed)}
    inputs = [" ".join(text(example).lower().split()) for example in held_out(seed)]
    assert len(set(inputs)) == len(inputs)
    assert not asked & set(inputs)


@pytest.mark.parametrize("seed", SEEDS)
def test_only_stored_questions_have_a_stored_answer(seed: int) -> None:
    outputs = {folded(row.y) for row in stored_rows(seed)}
    for example in held_out(seed):
        assert (folded(example.y) in outputs) == (example.meta["kind"] == STORED)


@pytest.mark.parametrize("seed", SEEDS)
def test_substitution_of_values_in_the_question_gives_the_answer(seed: int) -> None:
    skeletons = {skeleton(row.y) for row in stored_rows(seed)}
    for example in dev(seed, SUBSTITUTE):
        assert skeleton(example.y) in skeletons
        stored = [row.y for row in stored_rows(seed) if skeleton(row.y) == skeleton(example.y)]
        known = set(LITERAL.findall(folded(" ".join(stored))))
        for value in LITERAL.findall(folded(example.y)):
            spoken = value.strip("'").replace("''", "'")
            assert spoken in text(example).lower() or value in known


@pytest.mark.parametrize("seed", SEEDS)
def test_a_mapped_code_stands_only_in_rows_of_other_statements(seed: int) -> None:
    rows = stored_rows(seed)
    for example in dev(seed, MAPPING):
        codes = [code for code in re.findall(r"'[A-Z]{2,3}'", example.y) if code != "'OPN'"]
        assert len(codes) == 1
        statements = {row.meta["statement"] for row in rows if codes[0] in row.y}
        assert statements
        assert example.meta["statement"] not in statements
        assert not re.search(rf"\b{codes[0][1:-1]}\b", text(example))


def test_unanswerable_questions_say_so() -> None:
    assert {example.y for example in dev(0, UNANSWERABLE)} == {NO_ANSWER}


def test_every_wording_has_the_slots_of_its_statement() -> None:
    for statement in STATEMENTS:
        assert HELD in statement.wordings
        assert set(statement.wordings) <= {*AUTHORS, HELD}
        for wording in (each for wordings in statement.wordings.values() for each in wordings):
            assert set(re.findall(r"\{(\w+)\}", wording)) == set(statement.slots), wording


def test_customers_have_names_of_several_words() -> None:
    assert all(" " in customer.name and "@" in customer.email for customer in CUSTOMERS)


def test_the_command_writes_files_of_pairs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["-o", str(tmp_path), "--seed", "3"])
    assert "nonsense.jsonl: 240 rows" in capsys.readouterr().out
    assert read_pairs(tmp_path / "train.jsonl") == stored_rows(3)
    assert read_pairs(tmp_path / "dev.jsonl") == held_out(3)
    assert len(read_pairs(tmp_path / "nonsense.jsonl")) == 240
