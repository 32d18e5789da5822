"""Identity and serialisation of examples."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.errors import PairsError
from redraft.types import MAX_META_DEPTH, Candidate, Example, as_input, input_text, meta_problem

inputs = st.dictionaries(st.text(), st.text(), min_size=1)
examples = st.builds(Example, inputs, st.text(), st.dictionaries(st.text(), st.integers()))


@given(examples)
def test_an_example_comes_back_from_its_row(example: Example) -> None:
    assert Example.from_json(example.to_json()) == example


@given(examples)
def test_notes_and_the_order_of_fields_do_not_change_the_identity(example: Example) -> None:
    turned = dict(reversed(list(example.x.items())))
    assert Example(turned, example.y, {"other": 1}).identity == example.identity


@given(examples, examples)
def test_other_texts_have_another_identity(one: Example, other: Example) -> None:
    assert (one.identity == other.identity) == ((one.x, one.y) == (other.x, other.y))


def test_half_a_character_has_an_identity() -> None:
    assert Example({"text": "\ud800"}, "y").identity != Example({"text": "\ud801"}, "y").identity


def test_plain_text_is_an_input_of_one_field() -> None:
    assert as_input("a") == {"text": "a"}
    assert as_input({"b": "a"}) == {"b": "a"}
    assert input_text({"b": "1", "a": "2"}) == "1\n2"


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth - 1):
        value = [value] if depth % 2 else {"a": value}
    return value


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (math.nan, "is nan, which JSON does not have; use null, a number or text"),
        (-math.inf, "is -inf, which JSON does not have; use null, a number or text"),
        ({"b": [1.5, math.inf]}, "is inf, which JSON does not have; use null, a number or text"),
        (10**5000, "is a number of more than 4,000 digits; write it as text"),
        (nested(MAX_META_DEPTH + 1), "is nested more than 32 deep; flatten it"),
        (nested(900), "is nested more than 32 deep; flatten it"),
        ({"b": {1: 2}}, "has a key of type int; write it as text"),
    ],
    ids=["nan", "-inf", "inside", "digits", "33 deep", "900 deep", "key"],
)
def test_meta_that_json_lacks_is_refused(value: Any, reason: str) -> None:
    with pytest.raises(PairsError) as caught:
        Example({"text": "add two"}, "y", {"a": value})
    assert str(caught.value) == f"example with x 'add two': meta 'a' {reason}"
    assert Example({"text": "x"}, "y", {"a": nested(MAX_META_DEPTH)}).meta


def test_keys_of_meta_are_text() -> None:
    with pytest.raises(PairsError, match="the keys of meta must be text, got int"):
        Example({"text": "x"}, "y", {1: 2})  # type: ignore[dict-item]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.dictionaries(st.text(), json_values))
def test_meta_that_is_accepted_is_strict_json(meta: dict[str, Any]) -> None:
    if meta_problem(meta) is None:
        assert json.loads(json.dumps(meta, allow_nan=False)) == meta
    else:
        with pytest.raises(ValueError, match="not JSON compliant"):
            json.dumps(meta, allow_nan=False)


def test_a_candidate_says_in_words_what_is_doubtful() -> None:
    sure = Candidate("f()", 0.0, None)
    assert sure.warnings == ()
    assert not {"invented", "unfamiliar"} & set(sure.to_json())
    doubtful = Candidate("f('BR', 'PL')", 0.0, None, invented=("BR", "PL"), is_familiar=False)
    assert doubtful.warnings == (
        "nothing similar in the index",
        "values from nowhere: 'BR', 'PL'",
    )
    assert doubtful.to_json()["invented"] == ["BR", "PL"]
    assert doubtful.to_json()["unfamiliar"] is True
