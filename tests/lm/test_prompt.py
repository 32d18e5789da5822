"""Prompts: the nearest example last, within the context window, by a template of the user."""

import pytest

from redraft.errors import ConfigError
from redraft.lm.prompt import TEMPLATE, PromptError, PromptTemplate
from redraft.types import Example

NEAR, FAR = Example({"text": "near"}, "NEAR"), Example({"text": "far"}, "FAR")


def test_the_nearest_example_comes_last() -> None:
    prompt = PromptTemplate.parse(TEMPLATE).prompt(
        {"text": "question"}, [NEAR, FAR], tokens=500, multiline=False
    )
    assert prompt.text == (
        "Write the output for the last input.\n\n"
        "Input: far\nOutput: FAR\n\nInput: near\nOutput: NEAR\n\nInput: question\nOutput:"
    )
    assert prompt.stop == ("\n",)


def test_a_chat_has_a_turn_for_each_example() -> None:
    prompt = PromptTemplate.parse(TEMPLATE).prompt(
        {"text": "question"}, [NEAR], tokens=500, multiline=False
    )
    assert [message["role"] for message in prompt.messages] == [
        "system",
        "user",
        "assistant",
        "user",
    ]
    assert prompt.messages[2]["content"] == "NEAR"
    assert "question" in prompt.messages[-1]["content"]


def test_the_farthest_examples_are_left_out_first() -> None:
    template = PromptTemplate.parse(TEMPLATE)
    prompt = template.prompt({"text": "question"}, [NEAR, FAR], tokens=40, multiline=False)
    assert "NEAR" in prompt.text
    assert "FAR" not in prompt.text


def test_an_input_that_does_not_fit_is_an_error_without_its_text() -> None:
    with pytest.raises(PromptError, match=r"about \d+ tokens does not fit into 40") as raised:
        PromptTemplate.parse(TEMPLATE).prompt(
            {"text": "secret " * 100}, [], tokens=40, multiline=False
        )
    assert "secret" not in str(raised.value)


def test_outputs_of_several_lines_end_before_the_next_example() -> None:
    prompt = PromptTemplate.parse(TEMPLATE).prompt({"text": "q"}, [], tokens=500, multiline=True)
    assert prompt.stop == ("\n\nInput:",)


def test_several_fields_have_their_names() -> None:
    template = PromptTemplate.parse("Q {x}\nA {y}")
    prompt = template.prompt({"name": "a", "args": "b"}, [], tokens=500, multiline=False)
    assert prompt.text == "Q name: a\nargs: b\nA"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Input: {x}", r"needs \{x\} once, and after it \{y\} once"),
        ("{y} {x}", r"needs \{x\} once, and after it \{y\} once"),
        ("{x} {x} {y}", r"needs \{x\} once"),
        ("{x} {y}", "needs a word, a mark or a line break between"),
        ("{x}\n{y}" + "z" * 30_000, "longer than 20,000 characters"),
    ],
)
def test_a_wrong_template_says_what_it_lacks(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=f"^mine.txt: {reason}"):
        PromptTemplate.parse(text, source="mine.txt")
