"""A spreadsheet export, from `check` to `predict`, without renaming a column."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from redraft.cli.app import app

COLUMNS = ("--x-columns", "question", "--y-column", "sql")
ROWS = [f'"show item {n}";"SELECT {n};";{"ann" if n % 2 else "bo"}' for n in range(8)]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "export.csv"
    lines = ["question;sql;author", *ROWS, ROWS[0], ';"SELECT 9;";bo', "one;two"]
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    return path


def test_bad_rows_are_refused_with_the_command_that_lists_them(table: Path) -> None:
    done = run("fit", table, "-o", table.with_name("model"), *COLUMNS)
    assert done.exit_code == 2
    command = f"redraft check {table} --x-columns question --y-column sql"
    assert f"{table}:11: x is empty (`{command}` lists every bad row)" in done.stderr
    assert "or leave them out with --skip-bad FILE" in run("check", table, *COLUMNS).stderr


def test_skipped_rows_are_written_with_their_reasons(table: Path) -> None:
    bad, model = table.with_name("bad.jsonl"), table.with_name("model")
    done = run("fit", table, "-o", model, *COLUMNS, "--no-train", "--skip-bad", bad)
    assert done.exit_code == 0, done.stderr
    assert f"{table}: 2 bad rows are left out and written to {bad}" in done.stderr
    assert [(row["line"], row["reason"]) for row in rows(bad.read_text())] == [
        (11, "x is empty"),
        (12, "expected 3 columns, got 2"),
    ]
    assert rows(bad.read_text())[1]["row"] == "one | two"
    (facts,) = rows(done.stdout)
    assert (facts["fields"], facts["meta"], facts["examples"]) == (["question"], ["author"], 9)


def test_a_model_with_one_named_field_takes_plain_text_and_plain_pairs(table: Path) -> None:
    model, pairs = table.with_name("model"), table.with_name("more.jsonl")
    bad = table.with_name("bad.jsonl")
    assert run("fit", table, "-o", model, *COLUMNS, "--no-train", "--skip-bad", bad).exit_code == 0
    (answer,) = rows(run("predict", model, "show item 3").stdout)
    assert (answer["x"], answer["output"]) == ({"question": "show item 3"}, "SELECT 3;")
    (nearest,) = rows(run("retrieve", model, "Show item 2?", "-k", 1).stdout)
    assert nearest["meta"] == {"author": "bo"}
    pairs.write_text('{"x": "show all", "y": "SELECT *;"}\n')
    assert run("add", model, pairs).exit_code == 0
    assert rows(run("predict", model, "show all").stdout)[0]["output"] == "SELECT *;"
    (scores,) = rows(run("evaluate", model, pairs, "-o", table.with_name("evaluation")).stdout)
    assert scores["exact"] == 100


@pytest.mark.parametrize("arguments", [("",), (" ",), ('{"question": ""}',)])
@pytest.mark.parametrize("verb", ["predict", "retrieve"])
def test_an_empty_input_is_refused(table: Path, verb: str, arguments: tuple[str, ...]) -> None:
    model = table.with_name("model")
    run("fit", table, "-o", model, *COLUMNS, "--no-train", "--skip-bad", table.with_name("b.jsonl"))
    done = run(verb, model, *arguments)
    assert (done.exit_code, done.stderr) == (2, "error: the input is empty; give some text\n")


def test_blank_rows_of_an_export_are_no_rows(table: Path) -> None:
    table.write_bytes(table.read_bytes() + b"\r\n;;\r\n\r\n ;; ;;\r\n")
    done = run("check", table, *COLUMNS, "--format", "table")
    assert "11 rows, 9 good, 2 bad" in done.stdout


def test_empty_values_of_meta_are_not_shown(table: Path) -> None:
    model = table.with_name("model")
    text = table.read_text(encoding="utf-8-sig").replace("bo", "").replace("ann", "")
    table.write_text(text, encoding="utf-8")
    run("fit", table, "-o", model, *COLUMNS, "--no-train", "--skip-bad", table.with_name("b.jsonl"))
    done = run("predict", model, "show item 77", "--format", "table")
    assert "prototype · the training examples · distance" in done.stdout


def test_a_table_of_inputs_is_answered_by_its_column(table: Path) -> None:
    model, asked = table.with_name("model"), table.with_name("asked.csv")
    run("fit", table, "-o", model, *COLUMNS, "--no-train", "--skip-bad", table.with_name("b.jsonl"))
    asked.write_text("id;question\n1;show item 3\n;\n2;Show item 5\n", encoding="utf-8")
    answers = rows(run("predict", model, "--file", asked).stdout)
    assert [answer["output"] for answer in answers] == ["SELECT 3;", "SELECT 5;"]
    asked.with_suffix(".tsv").write_text("x.question\tid\nshow item 3\t1\n", encoding="utf-8")
    (answer,) = rows(run("predict", model, "--file", asked.with_suffix(".tsv")).stdout)
    assert answer["x"] == {"question": "show item 3"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("id;text\n1;a\n", "1: no column 'question', found 'id', 'text'; the columns must have"),
        ("", "1: no column 'question', found none; the columns must have the names"),
        ("id;question\n1;a;b\n", "2: expected 2 columns, got 3"),
        ("id;question\n1;\n", "2: the input is empty; give some text"),
        ('id;question\n1;"a" b\n', "2: not a well-formed row ("),
    ],
)
def test_a_table_of_inputs_that_cannot_be_read_says_why(
    table: Path, content: str, said: str
) -> None:
    model, asked = table.with_name("model"), table.with_name("asked.csv")
    run("fit", table, "-o", model, *COLUMNS, "--no-train", "--skip-bad", table.with_name("b.jsonl"))
    asked.write_text(content, encoding="utf-8")
    done = run("predict", model, "--file", asked)
    assert done.exit_code == 2
    assert f"error: {asked}:{said}" in done.stderr


def test_systems_are_compared_on_the_good_rows(table: Path) -> None:
    more = "".join(f"\r\nlist {count} cats;SELECT {count};bo" for count in range(5))
    table.write_bytes(table.read_bytes() + more.encode())
    refused = run("compare", table, *COLUMNS)
    assert (refused.exit_code, "x is empty" in refused.stderr) == (2, True)
    bad = table.with_name("bad.jsonl")
    done = run("compare", table, *COLUMNS, "--skip-bad", bad, "--format", "json")
    assert done.exit_code == 0, done.stderr
    assert f"{table}: 2 bad rows are left out and written to {bad}" in done.stderr
    assert len(rows(bad.read_text())) == 2


def test_a_split_keeps_equal_inputs_on_one_side(table: Path) -> None:
    out, bad = table.with_name("parts"), table.with_name("bad.jsonl")
    shares = ("--shares", "train=0.5,test=0.5", "--skip-bad", bad)
    assert run("split", table, "-o", out, *COLUMNS, *shares).exit_code == 0
    inputs = [
        [row["x"]["question"] for row in rows((out / f"{name}.jsonl").read_text())]
        for name in ("train", "test")
    ]
    assert sorted(map(len, inputs)) == [4, 5]
    assert not set(inputs[0]) & set(inputs[1])


def test_a_model_without_code_says_so_when_asked_to_complete(table: Path) -> None:
    model = table.with_name("model")
    run("fit", table, "-o", model, *COLUMNS, "--no-train", "--skip-bad", table.with_name("b.jsonl"))
    (table.parent / "a.py").write_text("def f():\n    ")
    done = run("complete", model, f"{table.parent / 'a.py'}:2:5")
    assert done.exit_code == 2
    assert "holds no functions (its inputs have question); make one" in done.stderr
