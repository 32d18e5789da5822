"""What a check finds, and that it finds nothing where nothing is."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.data.check import DuplicateFinder, Finding, LeakFinder, Tally, check
from redraft.data.pairs import read_numbered, scan_numbered
from redraft.data.rows import BadRow
from redraft.types import Example

WORDS = "the quick brown fox jumps over a lazy dog while seven wizards bake bread in old ovens"
BODY = "\n".join(f"value_{n} = compute(first={n}, second={n * n})" for n in range(30))


def pair(x: str, y: str) -> Example:
    return Example({"text": x}, y)


def findings(
    examples: list[Example], against: list[Example] | None = None
) -> list[BadRow | Finding]:
    leaks = None if against is None else LeakFinder(enumerate(against, start=1))
    return list(check(enumerate(examples, start=1), Tally(), against=leaks))


def test_clean_pairs_have_no_findings() -> None:
    tally = Tally()
    examples = [pair(f"{WORDS} {n}", f"{n} {n}") for n in range(100)]
    other = [pair(f"of a {n} kind quite apart {n}", f"return {n} - {n}") for n in range(100)]
    outcomes = enumerate(examples, start=1)
    assert list(check(outcomes, tally, against=LeakFinder(enumerate(other, start=1)))) == []
    assert tally.to_json() == {"rows": 100, "good": 100, "bad": 0}


def test_no_rows_have_no_findings() -> None:
    assert findings([]) == []
    assert findings([], against=[]) == []
    assert findings([pair("a", "1")], against=[]) == []


def test_a_repeated_row_is_a_duplicate_of_the_first() -> None:
    examples = [pair("a", "1"), pair("b", "2"), pair("a", "1"), pair("a", "1")]
    detail = "same input and output"
    assert findings(examples) == [
        Finding("duplicate", 3, 1, detail),
        Finding("duplicate", 4, 1, detail),
    ]


def test_another_output_for_an_input_is_a_conflict() -> None:
    examples = [pair("a", "1"), pair("b", "1"), pair("a", "2"), pair("a", "2")]
    assert findings(examples) == [
        Finding("duplicate", 4, 3, "same input and output"),
        Finding("conflict", 3, 1, "same input, another output"),
    ]


def test_the_same_output_for_other_inputs_is_no_finding() -> None:
    assert findings([pair("a", "1"), pair("b", "1")]) == []


def test_fields_are_compared_by_name_whatever_their_order() -> None:
    first = Example({"a": "1", "b": "2"}, "y")
    assert len(findings([first, Example({"b": "2", "a": "1"}, "y", {"k": 1})])) == 1
    assert findings([first, Example({"a": "2", "b": "1"}, "y")]) == []
    assert (
        findings([Example({"a": "1\n2", "b": "3"}, "y"), Example({"a": "1", "b": "2\n3"}, "y")])
        == []
    )


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("12"))))
def test_every_later_repeat_is_found_once(drawn: list[tuple[str, str]]) -> None:
    finder = DuplicateFinder()
    for line, (x, y) in enumerate(drawn, start=1):
        finder.add(line, pair(x, y))
    found = list(finder.findings())
    duplicates = [finding for finding in found if finding.kind == "duplicate"]
    conflicts = [finding for finding in found if finding.kind == "conflict"]
    assert len(duplicates) == len(drawn) - len(set(drawn))
    assert len(conflicts) == len(set(drawn)) - len({x for x, _ in drawn})
    for finding in found:
        (x, y), (first_x, first_y) = drawn[finding.line - 1], drawn[finding.other - 1]
        assert finding.other < finding.line
        assert x == first_x
        assert (y == first_y) == (finding.kind == "duplicate")


@pytest.mark.parametrize(
    ("example", "expected"),
    [
        (pair("a", "1"), Finding("leak", 1, 2, "same input and output")),
        (pair("a", "new"), Finding("leak", 1, 1, "same input")),
        (pair("new", "0"), Finding("leak", 1, 1, "same output")),
        (pair("b", "0"), Finding("leak", 1, 3, "same input")),
    ],
    ids=["both", "input", "output", "input of one, output of another"],
)
def test_what_stands_in_the_other_set_is_a_leak(example: Example, expected: Finding) -> None:
    assert findings([example], against=[pair("a", "0"), pair("a", "1"), pair("b", "2")]) == [
        expected
    ]


def test_a_leak_of_both_sides_is_seen_behind_an_earlier_row_with_the_same_output() -> None:
    other = [pair("else", "yes"), pair("a", "yes")]
    assert findings([pair("a", "yes")], against=other) == [
        Finding("leak", 1, 2, "same input and output")
    ]


def test_what_nearly_stands_in_the_other_set_is_a_near_leak() -> None:
    other = [pair("far from it", "pass"), pair(WORDS, BODY)]
    near = pair(f"{WORDS}!", BODY.replace("value_7", "changed"))
    (finding,) = findings([near], against=other)
    assert isinstance(finding, Finding)
    assert (finding.kind, finding.line, finding.other) == ("near leak", 1, 2)
    assert finding.detail.startswith("about 9")
    assert finding.detail.endswith("% the same")


def test_what_shares_only_its_form_is_no_near_leak() -> None:
    other = pair(WORDS.upper(), BODY.replace("value", "total").replace("compute", "measure"))
    assert findings([pair(WORDS, BODY)], against=[other]) == []


@pytest.mark.parametrize("text", ["a", "a b", "a b c", "\ud800"])
def test_short_and_odd_texts_can_be_compared(text: str) -> None:
    assert findings([pair("other", "2")], against=[pair(text, "1")]) == []
    assert len(findings([pair(text, "2")], against=[pair(text, "1")])) == 1


def test_findings_and_bad_rows_name_lines_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    good, other = '{"x": "a", "y": "1"}', '{"x": "b", "y": "2"}'
    path.write_text("\n".join([good, "", "not JSON", "", other, good, '{"x": "b", "y": "3"}']))
    tally = Tally()
    leaks = LeakFinder([(9, pair("b", "else"))])
    found = list(check(scan_numbered(path), tally, against=leaks))
    assert [(f.kind, f.line, f.other) if isinstance(f, Finding) else f.line for f in found] == [
        3,
        ("leak", 5, 9),
        ("leak", 7, 9),
        ("duplicate", 6, 1),
        ("conflict", 7, 5),
    ]
    counted = {"rows": 5, "good": 4, "bad": 1, "leak": 2, "duplicate": 1, "conflict": 1}
    assert tally.to_json() == counted


def test_a_row_of_several_lines_is_named_by_its_first(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text('x,y\n"a\nb",1\n\n"a\nb",1\n')
    (finding,) = check(scan_numbered(path), Tally())
    assert finding == Finding("duplicate", 5, 2, "same input and output")
    assert [line for line, _ in read_numbered(path)] == [2, 5]


def test_bad_rows_are_reported_as_they_are_met(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text('not JSON\n{"x": "a", "y": "1"}\n')
    tally = Tally()
    first = next(check(scan_numbered(path), tally))
    assert isinstance(first, BadRow)
    assert (tally.rows, tally.bad) == (1, 1)
