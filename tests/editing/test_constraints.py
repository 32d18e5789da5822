"""Syntaxes: prefixes of valid outputs are never rejected, hopeless prefixes are."""

import ast
import inspect
import json
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redraft.editing.constraints import (
    SYNTAXES,
    AnySyntax,
    JsonSyntax,
    PythonSyntax,
    find_syntax,
    named_syntax,
)
from redraft.errors import ConfigError
from redraft.text.tokenizer import Tokenizer, detokenize

PYTHON, JSON = PythonSyntax(), JsonSyntax()

PROGRAMS = [
    inspect.getsource(textwrap),
    inspect.getsource(json.encoder),
    "x = \"it's\" + 'a \"b\"'  # a comment (\ny = f'{x!r:>10}'\n",
    "def f(self, *, a=1, **b):\n    '''doc\n\n    (more\n    '''\n    return not a\n",
    "try:\n    x = [y for y in z if y not in w]\nexcept (A, B) as e:\n    raise C from e\n",
    "@a.b(c)\nasync def d():\n    async with e as f, g:\n        await h\n\n\nclass I(J): pass\n",
    "if a:\n    pass\nelif b:\n    c: int = 3\nelse:\n    del d[1:2, ...]\n",
    "x = (lambda y, /: y if y else -1)(\n    2,\n)\n\nassert x, r'\\d'\n",
]
INVALID_PREFIXES = [
    *("x = = 3", "a b", "foo(a b", "print(x))", "x = [1 2", "for x of", "class A B"),
    *("def f(self))", "else", "x..", "f(a=1, b)", "x = 'abc\ny", "  x", "if a:\npass"),
    *("def f():\n    return 3\n    else", "try:\n    x\ny", "x = 3\n    y", "a\0", "x = $"),
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_prefix_of_a_program_is_accepted_as_a_prefix(program: str) -> None:
    assert PYTHON.accepts(program)
    tokens = Tokenizer().tokenize(program)[:600]
    for end in range(len(tokens) + 1):
        assert PYTHON.begins(detokenize(tokens[:end])), detokenize(tokens[:end])[-80:]


@pytest.mark.parametrize("text", INVALID_PREFIXES)
def test_a_text_that_no_suffix_can_fix_begins_no_program(text: str) -> None:
    assert not PYTHON.begins(text)
    assert not PYTHON.accepts(text)


WORDS = "a b 1 if else def class return not in for lambda"
pieces = st.sampled_from([*WORDS.split(), *"'\"()[],:=.\n+*# ", "\n    ", "\n        "])


@settings(deadline=None, max_examples=300)
@given(st.lists(pieces, max_size=12))
def test_text_that_parses_is_accepted_and_so_are_its_prefixes(tokens: list[str]) -> None:
    text = " ".join(tokens)
    try:
        ast.parse(text)
    except SyntaxError:
        assert not PYTHON.accepts(text)
        return
    assert PYTHON.accepts(text)
    words = Tokenizer().tokenize(text)
    assert all(PYTHON.begins(detokenize(words[:end])) for end in range(len(words) + 1))


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


@settings(deadline=None)
@given(values, st.sampled_from([None, 2]), st.booleans())
def test_every_prefix_of_json_is_accepted_as_a_prefix(
    value: object, indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only, allow_nan=False)
    assert JSON.accepts(text)
    assert all(JSON.begins(text[:end]) for end in range(len(text)))


@pytest.mark.parametrize(
    "text", ['{"a" 1', "[1,,", "{1:", "[1 2", "tru ", '{"a":}', '"a\n', '"\\q', "01", "1 2", "[1,]"]
)
def test_a_text_that_no_suffix_can_fix_begins_no_json(text: str) -> None:
    assert not JSON.begins(text)
    assert not JSON.accepts(text)


def test_an_unknown_name_of_a_syntax_is_refused_with_the_valid_ones() -> None:
    assert [type(named_syntax(name)) for name in SYNTAXES] == [AnySyntax, PythonSyntax, JsonSyntax]
    for name in ("sql", "auto"):
        message = f"no syntax is called '{name}' here; choose one of: any, python, json .when fit"
        with pytest.raises(ConfigError, match=message):
            named_syntax(name)


@pytest.mark.parametrize(
    ("outputs", "name"),
    [
        (PROGRAMS, "python"),
        (['print("hello")', "f(x)", "yes"], "python"),
        (['class Card:\n    cost = 3\n    text = "x"\n'], "python"),
        (['{"a": [1, 2]}', "[]", '{"b": null}'], "json"),
        (["return x", "y = 3", "a.b(c)"], "python"),
        ([*PROGRAMS, "SELECT 1 FROM t;"], "any"),
        (["positive", "negative", "neutral"], "any"),  # parses as Python, as any word does
        (["17", "4", "2018"], "any"),
        (["a sentence that nothing parses"], "any"),
        (["", ""], "any"),
        (["f(x)"] * 99 + ["f(x"], "python"),  # 1 % of invalid outputs is tolerated
        (["f(x)"] * 98 + ["f(x"] * 2, "any"),
        (['{"a": 1}', "{'a': 1}"], "any"),
        (["10-12", "1/2", "-3"], "any"),
        (["name: web\nport: 80", "topic: sports"], "any"),
    ],
)
def test_the_syntax_of_outputs_is_detected(outputs: list[str], name: str) -> None:
    assert find_syntax(outputs) == name


def test_the_syntax_is_detected_from_a_sample_of_all_outputs() -> None:
    outputs = ["f(x)"] * 5_000
    assert find_syntax(outputs) == "python"
    outputs[4_500:] = ["what?"] * 500
    assert find_syntax(outputs) == "any"
