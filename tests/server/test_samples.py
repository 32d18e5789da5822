"""Inputs to start from stand for many others, and differ."""

from redraft.server.samples import typical_functions, typical_inputs
from redraft.types import Example


def examples(*texts: str) -> list[Example]:
    return [Example({"text": text}, "y") for text in texts]


def test_typical_inputs_stand_for_the_groups_of_the_examples() -> None:
    orders = [f"show the orders of customer {n}" for n in range(9)]
    sums = [f"sum column {n} by month" for n in range(6)]
    texts = [x["text"] for x in typical_inputs(examples("zzz", *orders, "qqq", *sums), 2)]
    assert texts[0] in orders
    assert texts[1] in sums


def test_equal_inputs_are_one_sample_and_none_is_none() -> None:
    assert typical_inputs(examples("a b", "a b", "a b")) == [{"text": "a b"}]
    assert typical_inputs([]) == []


def test_long_inputs_are_taken_only_if_all_are_long() -> None:
    long = "word " * 200
    assert typical_inputs(examples(long, long + "more", "short"), 1) == [{"text": "short"}]
    assert typical_inputs(examples(long), 1) == [{"text": long}]


def function(name: str, body: str, file: str = "a.py") -> Example:
    x = {"docstring": "", "name": name, "arguments": "self"}
    return Example(x, body, {"file": file})


def test_typical_functions_are_python_and_begin_as_another_does() -> None:
    same = 'raise ValueError("not supported")'
    alike = [function("open", same), function("close", f"{same}\nreturn 1")]
    others = [function(f"get_{n}", f"return self.field_{n}_of_the_record") for n in range(5)]
    script = [function(f"run{n}", "throw new Error(`no item`);", "a.js") for n in range(5)]
    blocks = [function("", "import json", "b.py"), function("class A", "x = 1")]
    names = {x["name"] for x in typical_functions([*blocks, *script, *others, *alike])}
    assert names == {"open", "close"}
    assert {x["name"] for x in typical_functions([*blocks, *script, *others[:1]])} == {"get_0"}
    assert typical_functions(script, 1)[0]["name"].startswith("run")
    assert typical_functions([]) == []
