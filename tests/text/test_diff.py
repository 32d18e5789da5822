"""A diff reproduces both texts."""

from hypothesis import given
from hypothesis import strategies as st

from redraft.text.diff import Diff
from redraft.types import Candidate, Example, Prototype

texts = st.text(alphabet="ab_ =(\n)é", max_size=30)


@given(texts, texts)
def test_kept_and_removed_is_the_text_before_kept_and_added_the_text_after(
    before: str, after: str
) -> None:
    spans = Diff.between(before, after).spans
    assert "".join(span.text for span in spans if span.change != "added") == before
    assert "".join(span.text for span in spans if span.change != "removed") == after


@given(texts)
def test_equal_texts_are_kept_whole(text: str) -> None:
    assert all(span.change == "kept" for span in Diff.between(text, text).spans)


def test_unrelated_texts_are_shown_one_after_the_other() -> None:
    assert str(Diff.between("a = b(c)", "for x in y: print(x)")) == (
        "[-a = b(c)-]{+for x in y: print(x)+}"
    )


def test_long_texts_are_compared_line_by_line() -> None:
    lines = [f"value_{i} = compute(value_{i})\n" for i in range(1000)]
    changed = [*lines[:500], "new = line()\n", *lines[500:]]
    diff = Diff.between("".join(lines), "".join(changed))
    assert [span.text for span in diff.spans if span.change == "added"] == ["new = line()\n"]


def test_whole_words_are_replaced_and_shown_in_brackets() -> None:
    assert str(Diff.between("sum(tmp[:2])", "sum(items[:2])")) == "sum([-tmp-]{+items+}[:2])"


def test_a_candidate_is_compared_with_its_prototype() -> None:
    prototype = Prototype(Example({"text": "x"}, "Minion(1, 2)"), 0.5)
    diff = Candidate("Minion(1, 3)", -0.5, prototype).diff()
    assert diff.to_json() == [
        {"change": "kept", "text": "Minion(1,"},
        {"change": "removed", "text": " 2"},
        {"change": "added", "text": " 3"},
        {"change": "kept", "text": ")"},
    ]


def test_a_candidate_without_a_prototype_is_all_new() -> None:
    assert str(Candidate("new", 0.0, None).diff()) == "{+new+}"
