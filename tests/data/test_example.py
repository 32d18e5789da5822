"""What makes two examples the same, and how one is written."""

from hypothesis import given
from hypothesis import strategies as st

from redraft.data.example import Example, as_input, input_text

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
