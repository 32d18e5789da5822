"""The prompt at a cursor, and what is inserted of a generated text."""

import time

from hypothesis import given
from hypothesis import strategies as st

from redraft.completion.lm_prompt import CursorText, cursor_prompt
from redraft.lm.fim import FAMILIES, fim_template
from redraft.lm.prompt import estimated_tokens
from redraft.types import Example

BUFFER = '''import os
from json import load


class Reader:
    def read(self, path):
        """Read a file."""
        with open(path) as file:
            '''


def example(name: str, body: str = "return 1") -> Example:
    x = {"docstring": "First line.\nSecond.", "name": name, "arguments": "a"}
    return Example(x, body, {"file": "other.py"})


def cursor(text: str = BUFFER) -> CursorText:
    return CursorText.of(text, len(text), "reader.py")


def test_the_cursor_comes_last_and_the_most_similar_function_before_it() -> None:
    prompt = cursor_prompt(cursor(), [example("near"), example("far")], tokens=500).text
    places = [prompt.index(part) for part in ("def far(a)", "def near(a)", "import os", "def read")]
    assert places == sorted(places)
    assert '"""First line."""' in prompt
    assert "Second" not in prompt
    assert prompt.endswith("    with open(path) as file:\n       ")  # a space is left to the model


def test_while_typing_the_beginning_of_the_prompt_stays() -> None:
    shown = [example("near"), example("far")]
    before = cursor_prompt(cursor(), shown, tokens=500).text
    after = cursor_prompt(cursor(BUFFER + "data = load("), shown, tokens=500).text
    assert after.startswith(before)


@given(st.integers(60, 700), st.integers(1, 400))
def test_a_prompt_keeps_to_its_tokens(tokens: int, lines: int) -> None:
    text = "def f(a):\n" + "    a += 1\n" * lines + "    return "
    prompt = cursor_prompt(cursor(text), [example("g", "a = 2\n" * 20)] * 9, tokens=tokens)
    assert estimated_tokens(prompt.text) <= tokens + 1
    assert prompt.text.endswith("return")


def test_a_very_long_function_is_cut_in_linear_time() -> None:
    text = "def f(a):\n" + "    a += 1\n" * 300_000 + "    return "
    before = cursor(text)
    assert len(before.before) > 3_000_000
    started = time.process_time()
    prompt = cursor_prompt(before, [], tokens=500)
    assert time.process_time() - started < 1  # joining all lines again after each cut: 7 s
    assert prompt.text.endswith("    a += 1\n    return")


def test_what_is_generated_is_inserted_without_the_indentation_of_the_body() -> None:
    at = cursor()
    assert at.continuation(" data = load(file)\n    return data") == (
        "    data = load(file)\nreturn data".removeprefix("    ")
    )
    assert at.continuation(" x = 1\n\n\ndef other():\n    pass") == "x = 1\n\n"  # another function
    assert at.continuation("x") is None  # not the space that was typed
    assert cursor("def f(a):\n    return ").continuation(" a") == "a"


@given(st.text("ab =\n", max_size=12), st.text("ab =\n", max_size=12))
def test_a_true_continuation_is_inserted_as_it_is(typed: str, rest: str) -> None:
    body = "a" + typed
    at = cursor("def f(a):\n    " + body.replace("\n", "\n    "))
    if at.context.prefix != body:
        return  # white space at the end of a line
    generated = (body + rest).replace("\n", "\n    ")[len(body.replace("\n", "\n    ")) :]
    if body.endswith((" ", "\n")):
        generated = " " + generated
    inserted = at.continuation(generated)
    assert inserted is not None
    assert inserted.split() == rest.split()


def test_models_that_fill_in_the_middle_see_what_follows() -> None:
    text = BUFFER + "\n        return data\n"
    at = CursorText.of(text, len(BUFFER), "reader.py")
    template = fim_template("Qwen2.5-Coder-1.5B-Q8_0")
    prompt = cursor_prompt(at, [], tokens=500, template=template).text
    assert prompt.startswith("<|fim_prefix|># file: reader.py\n")
    assert prompt.endswith("<|fim_suffix|>\n    return data\n<|fim_middle|>")
    assert fim_template("smollm2") is None


def test_every_family_has_the_text_before_and_after_once() -> None:
    for name in FAMILIES:
        template = fim_template(f"{name}:7b")
        assert template is not None
        filled = template.fill("BEFORE {after}", "AFTER {before}")
        assert filled.count("BEFORE {after}") == filled.count("AFTER {before}") == 1
