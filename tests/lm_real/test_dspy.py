"""Demonstrations in the prompts of the real DSPy."""

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import dspy
import pytest
from dspy.utils import DummyLM
from dspy.utils.exceptions import AdapterParseError

from redraft.errors import PairsError
from redraft.integrations.dspy import RedraftDemos, RedraftFewShot

pytestmark = pytest.mark.filterwarnings("default")  # warnings of DSPy's own dependencies

PAIRS = [
    ("how many users in Rome", "SELECT COUNT(*) FROM users WHERE city = 'Rome'"),
    ("list the orders of Lima", "SELECT id FROM orders WHERE city = 'Lima'"),
    ("delete old tickets", "DELETE FROM tickets WHERE is_old"),
]
TRAINSET = [dspy.Example(question=x, sql=y).with_inputs("question") for x, y in PAIRS]
ASKED = "how many users in Oslo"


@pytest.fixture
def dummy() -> Iterator[DummyLM]:
    lm = DummyLM([{"reasoning": "count", "sql": "SELECT 1"}] * 3)
    with dspy.context(lm=lm):
        yield lm


def shown(lm: DummyLM) -> list[str]:
    """Return the questions in the last prompt, in their order."""
    text = "\n".join(str(message["content"]) for message in lm.history[-1]["messages"])
    return sorted((x for x, _ in [*PAIRS, (ASKED, "")] if x in text), key=text.rindex)


@pytest.mark.parametrize("kind", [dspy.Predict, dspy.ChainOfThought])
def test_a_prompt_has_the_nearest_demonstration_last(dummy: DummyLM, kind: type) -> None:
    program = RedraftDemos(kind("question -> sql"), TRAINSET, k=2)
    assert program(question=ASKED).sql == "SELECT 1"
    *others, nearest, asked = shown(dummy)
    assert (nearest, asked) == (PAIRS[0][0], ASKED)
    assert len(others) == 1


def test_an_optimizer_leaves_the_student_as_it_was(dummy: DummyLM) -> None:
    student = dspy.Predict("question -> sql")
    program = RedraftFewShot(k=1, method="nearest").compile(student, trainset=TRAINSET)
    program(question=ASKED)
    assert shown(dummy) == [PAIRS[0][0], ASKED]
    assert student.demos == []
    asyncio.run(program.acall(question="delete old orders"))
    assert PAIRS[2][0] in shown(dummy)


def test_a_real_model_sees_them(address: str) -> None:
    lm = dspy.LM("openai/smollm2", api_base=address, api_key="none", max_tokens=40, cache=False)
    program = RedraftDemos(dspy.Predict("question -> sql"), TRAINSET, k=1)
    adapter = dspy.ChatAdapter(use_json_adapter_fallback=False)
    # a small model may miss DSPy's format
    with dspy.context(lm=lm, adapter=adapter), contextlib.suppress(AdapterParseError):
        assert isinstance(program(question=ASKED).sql, str)
    text = "\n".join(str(message["content"]) for message in lm.history[-1]["messages"])
    assert PAIRS[0][1] in text


def test_examples_without_inputs_are_named() -> None:
    with pytest.raises(PairsError, match="example 1 does not name its inputs"):
        RedraftDemos(dspy.Predict("question -> sql"), [dspy.Example(question="x", sql="y")])
    program = RedraftDemos(dspy.Predict("question -> sql"), TRAINSET)
    with pytest.raises(PairsError, match="the input lacks 'question'; it needs question"):
        program.select(text="x")


def test_the_example_of_the_page_runs(dummy: DummyLM) -> None:
    page = Path(__file__).parents[2] / "docs" / "language_models.md"
    code = next(
        block.partition("```")[0]
        for block in page.read_text(encoding="utf-8").split("```python\n")[1:]
        if "integrations.dspy" in block
    )
    variables: dict[str, object] = {}
    exec(code, variables)
    assert dummy.history
