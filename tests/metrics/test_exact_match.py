"""When an output is exactly right."""

import pytest

from redraft.metrics.exact_match import detect_language, is_exact, is_exact_paper, parses


@pytest.mark.parametrize(
    "output", ["x = f('a')  # set", 'x = f( "a" )', "x = f('a')\n\n", "x = f('a')§"]
)
def test_python_is_compared_as_syntax(output: str) -> None:
    assert is_exact('x = f("a")', output, "python")


@pytest.mark.parametrize("output", [None, "", "x = f('b')", "x = f('a'"])
def test_another_or_broken_or_missing_output_is_wrong(output: str | None) -> None:
    assert not is_exact('x = f("a")', output, "python")


def test_an_output_that_does_not_parse_is_wrong_even_if_it_equals_the_reference() -> None:
    assert not is_exact("x = = 1", "x = = 1", "python")


def test_text_is_compared_to_the_letter() -> None:
    assert is_exact("SELECT a FROM b", "SELECT a FROM b\n", "text")
    assert not is_exact("SELECT a FROM b", "SELECT  a FROM b", "text")


def test_the_papers_match_ignores_quotes_and_indentation_but_not_newlines() -> None:
    assert is_exact_paper('if a:\n    b("c")', "if a:\n  b('c')")
    assert not is_exact_paper("a\nb", "a b")
    assert not is_exact_paper("a", None)


@pytest.mark.parametrize("code", ["return 1", "yield x", "await f()", "class A: pass"])
def test_bodies_of_functions_parse(code: str) -> None:
    assert parses(code)


@pytest.mark.parametrize("code", [None, "x = = 1", "a\0b", "(" * 500])
def test_what_cannot_be_parsed_is_no_error(code: str | None) -> None:
    assert not parses(code)


def test_the_language_is_python_if_nearly_every_reference_parses() -> None:
    assert detect_language(["x = 1"] * 20 + ["x = = 1"]) == "python"
    assert detect_language(["SELECT a FROM b", "x = 1"]) == "text"
    assert detect_language(["SELECT a FROM b", "with c as (select 1) select * from c"]) == "sql"
    assert detect_language(['{"a": 1}', "[true]"]) == "json"
    assert detect_language(["1", "2"]) == "python"


@pytest.mark.parametrize(
    "output",
    [
        "select NAME from users where city = 'Lyon'",
        "SELECT name\nFROM users\n  WHERE city='Lyon' ;;",
        "SELECT name FROM users§WHERE city = 'Lyon'",
    ],
)
def test_sql_ignores_case_outside_of_quotes_white_space_and_a_final_semicolon(output: str) -> None:
    assert is_exact("SELECT name FROM users WHERE city = 'Lyon';", output, "sql")


@pytest.mark.parametrize(
    "output",
    [
        "SELECT name FROM users WHERE city = 'lyon';",
        "SELECT name FROM users WHERE city = 'Lyon ';",
        'SELECT name FROM users WHERE city = "Lyon";',
        "SELECT name; FROM users WHERE city = 'Lyon'",
        "SELECTname FROM users WHERE city = 'Lyon'",
        "",
        None,
    ],
)
def test_other_sql_is_wrong(output: str | None) -> None:
    assert not is_exact("SELECT name FROM users WHERE city = 'Lyon';", output, "sql")


def test_an_open_quote_is_compared_by_its_tokens() -> None:
    assert is_exact("select 'a", "SELECT  'a", "sql")
    assert is_exact("", " ; ", "sql")


def test_json_is_compared_by_its_value() -> None:
    assert is_exact('{"a": 1, "b": [true]}', '{ "b":[true], "a":1 }', "json")
    assert not is_exact('{"a": 1}', '{"a": true}', "json")
    assert not is_exact('{"a": 1}', '{"a": 1', "json")
    assert not is_exact("{", "{", "json")
