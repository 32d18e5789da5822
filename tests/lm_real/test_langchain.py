"""The example selector in a prompt of the real LangChain."""

import asyncio

import pytest
from langchain_core.example_selectors import BaseExampleSelector
from langchain_core.prompts import FewShotPromptTemplate, PromptTemplate

from redraft.errors import PairsError
from redraft.integrations.langchain import RedraftExampleSelector

EXAMPLES = [
    {"input": "how many users in Rome", "output": "SELECT COUNT(*) FROM users WHERE city = 'Rome'"},
    {"input": "list the orders of Lima", "output": "SELECT id FROM orders WHERE city = 'Lima'"},
    {"input": "delete old tickets", "output": "DELETE FROM tickets WHERE is_old"},
]


def test_a_prompt_has_the_nearest_example_last() -> None:
    prompt = FewShotPromptTemplate(
        example_selector=RedraftExampleSelector(EXAMPLES, k=2),
        example_prompt=PromptTemplate.from_template("Q: {input}\nA: {output}"),
        suffix="Q: {input}\nA:",
        input_variables=["input"],
    )
    text = prompt.format(input="how many users in Oslo")
    assert text.endswith(
        "Q: how many users in Rome\nA: SELECT COUNT(*) FROM users WHERE city = 'Rome'\n\n"
        "Q: how many users in Oslo\nA:"
    )
    assert text.count("A: ") == 2


def test_an_added_example_is_selected() -> None:
    selector = RedraftExampleSelector(EXAMPLES, k=1)
    assert isinstance(selector, BaseExampleSelector)
    added = {"input": "rename the city Oslo", "output": "UPDATE"}
    selector.add_example(added)
    asked = {"input": "rename the city Lima"}
    assert selector.select_examples(asked) == [added]
    assert asyncio.run(selector.aselect_examples(asked)) == [added]


def test_wrong_keys_are_named() -> None:
    with pytest.raises(PairsError, match="example 2 lacks the key 'output'"):
        RedraftExampleSelector([EXAMPLES[0], {"input": "x"}])
    with pytest.raises(PairsError, match="the input lacks 'input'; it needs input"):
        RedraftExampleSelector(EXAMPLES).select_examples({"question": "x"})
