"""The context of a cursor: its function and prefix, whether or not the code parses."""

import random
import sysconfig
import textwrap
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redraft.completion.languages.base import MAX_BLOCK_LINES, Context, offset_of
from redraft.completion.languages.python.cursor_context import find_context
from redraft.errors import ConfigError
from tests.completion.cursors import Cursor, Source, draw, expect


def at_mark(text: str) -> Context:
    """The context at the bar, which is taken out."""
    text = textwrap.dedent(text)
    offset = text.index("¦")
    return find_context(text.replace("¦", "", 1), offset)


def test_a_function_gives_the_input_and_the_body_up_to_the_cursor() -> None:
    context = at_mark('''
        class Oven:
            @timed
            async def bake(self, *cakes: Cake, heat=200) -> None:
                """Bake.

                All of them.
                """
                # why
                for cake in cakes:
                    cake.bake(¦

        def other(
    ''')
    assert context == Context(
        x={
            "docstring": "Bake.\n\nAll of them.",
            "name": "bake",
            "arguments": "self, *cakes: Cake, heat=200",
        },
        prefix="# why\nfor cake in cakes:\n    cake.bake(",
        indentation=" " * 8,
        kind="function",
        place="body",
    )


@pytest.mark.parametrize(
    ("written", "arguments"),
    [
        ("a, /, b, *, c", "a, /, b, *, c"),
        ("a=lambda x: {1: x}, *b: dict[str, int]", "a=lambda x: {1: x}, *b: dict[str, int]"),
        ("\n    a,  # the first ) one\n    b=(1,\n  2),\n", "a, b=(1, 2)"),
        ("a=')', b=\"(:\"", "a=')', b='(:'"),
        ("a = 1, b: int=-2", "a=1, b: int=-2"),
        ("a='\\ud800'", "a='\\ud800'"),
        ("", ""),
        ("a, b=, c", "a, b=, c"),
    ],
)
def test_arguments_are_as_mined_or_as_written(written: str, arguments: str) -> None:
    for before in ("def f", "async  def \\\n f", "def f[T: (int, str)]"):
        context = at_mark(f"{before}({written}) -> 'x:y':\n    return ¦")
        assert (context.x["name"], context.x["arguments"]) == ("f", arguments)
        assert context.prefix == "return "


@pytest.mark.parametrize(
    ("written", "docstring"),
    [
        ('"""Doc."""', "Doc."),
        ("'Doc.'  # not this", "Doc."),
        ('r"""A \\d."""', "A \\d."),
        ('U"Two" " parts."', "Two parts."),
        ("('one '\n     'two'\n    )", "one two"),
        ("'a' \\\n  'b'", "ab"),
        ('"""First.\n\n      Deeper.\n    Second.\n    """', "First.\n\n  Deeper.\nSecond."),
        ("'\\x41\\u00e4 \\ud800'", "Aä ?"),
        ("'\\d'", "\\d"),
        ("'Größe 🙂'", "Größe 🙂"),
        ("# before\n    'Doc.'", "Doc."),
        ("''", ""),
        ("'wrong \\x4'", "wrong \\x4"),
    ],
)
def test_a_docstring_is_cleaned_and_is_no_part_of_the_body(written: str, docstring: str) -> None:
    context = at_mark(f"def f():\n    {written}\n\n    x = 1\n    ¦")
    assert context.x["docstring"] == docstring
    assert context.prefix == "x = 1\n"


@pytest.mark.parametrize("written", ["b'no'", "f'no'", "'no' % 1", "'no'.join(x)", "('a', 'b')"])
def test_other_values_are_no_docstring(written: str) -> None:
    context = at_mark(f"def f():\n    {written}\n    x = ¦")
    assert (context.x["docstring"], context.prefix) == ("", f"{written}\nx = ")


@pytest.mark.parametrize(
    ("text", "docstring"),
    [
        ("def f(a):¦", ""),
        ("def f(a):  # why¦", ""),
        ("def f(a, ¦b): pass", ""),
        ('def f(a):\n    """Half a sen¦tence."""', "Half a sen"),
        ('def f(a):\n    """Doc."""¦', "Doc."),
        ('def f(a):\n    """Doc."""  # why¦', "Doc."),
        ("def f(a):\n    ('one ' 'tw¦o')", "one tw"),
        ('def f(a):\n    """Cut \\¦n"""', "Cut \\"),
        ('def f(a): "Doc¦"; return 1', "Doc"),
    ],
)
def test_before_the_body_there_is_no_prefix(text: str, docstring: str) -> None:
    context = at_mark(text)
    assert (context.x["name"], context.prefix, context.x["docstring"]) == ("f", "", docstring)
    assert context.place == ("docstring" if docstring else "header")
    assert context.x["arguments"] in ("a", "a,")


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("def ¦", "", ""),
        ("def na¦me(a): pass", "na", ""),
        ("def f(a, b=[1, ¦2]):\n    pass", "f", "a, b=[1,"),
        ("class A:\n    def f(self, a: int¦", "f", "self, a: int"),
    ],
)
def test_in_a_header_all_that_is_written_is_given(text: str, name: str, arguments: str) -> None:
    context = at_mark(text)
    assert (context.x["name"], context.x["arguments"]) == (name, arguments)
    assert (context.kind, context.place) == ("function", "header")


NESTED = '''
class A:
    """Of A."""

    def outer(self):
        x = 1

        def inner():
            return x
        {}
'''


@pytest.mark.parametrize(
    ("lines", "name", "kind"),
    [
        ("    return inner(¦", "inner", "function"),
        ("return inner(¦", "outer", "function"),
        ("¦", "outer", "function"),
        ("    ¦", "inner", "function"),
        ("\n¦", "inner", "function"),
        ("\n        ¦", "outer", "function"),
        ("\n\n\n          # far ¦", "inner", "function"),
        ("\n    ¦", "class A", "class"),
        ("\n    def ¦", "", "function"),
        ("\n    x = ¦", "class A", "class"),
        ("\n\n¦", "", "module"),
        ("\n# at the edge ¦", "inner", "function"),
        ("\n\n\n# a new section ¦", "", "module"),
        ("\n¦        return 1", "outer", "function"),
        ("\nx¦ = 1", "", "module"),
        ("class B:\n            x = ¦", "outer", "function"),
    ],
)
def test_the_indentation_of_its_line_says_where_a_cursor_is(
    lines: str, name: str, kind: str
) -> None:
    context = at_mark(
        NESTED.replace("        {}", "        " + lines if lines[0] != "\n" else lines)
    )
    assert (context.x["name"], context.kind) == (name, kind)


@pytest.mark.parametrize(
    ("body", "prefix"),
    [
        ("x = '''\ndef g():\n  left\n    ¦", "x = '''\ndef g():\n  left\n"),
        ("x = (1,\n2,\n def¦", "x = (1,\n2,\n def"),
        ("x = 1 + \\\n2 + ¦", "x = 1 + \\\n2 + "),
        ("x = [  # def g():\n# (\n]\n    y = ¦", "x = [  # def g():\n# (\n]\ny = "),
        ("a; b; ¦", "a; b; "),
        ("x = 'open\n    y = ¦", "x = 'open\ny = "),
        ("x = call(\n    return ¦", "x = call(\nreturn "),
        ("x = 1)\n    return ¦", "x = 1)\nreturn "),
        ("if a:\n\n# far left\n        return {¦", "if a:\n\n# far left\n    return {"),
        ('return f"{a["b"]} ¦', 'return f"{a["b"]} '),
    ],
)
def test_lines_that_only_look_like_the_end_of_a_body_do_not_end_it(body: str, prefix: str) -> None:
    context = at_mark(f"def f():\n    {body}")
    assert (context.x["name"], context.prefix) == ("f", prefix)


def test_after_a_bracket_that_was_never_closed_the_next_function_is_found() -> None:
    assert at_mark("def f():\n    x = call(1,\n\ndef g():\n    return ¦").x["name"] == "g"
    assert at_mark("def f(a, b\n    return ¦").x["arguments"] == "a, b"
    assert at_mark("def f(a)\n    return ¦").prefix == "return "


def test_a_body_on_the_line_of_its_header_ends_with_the_line() -> None:
    assert at_mark("def f(a): return a[¦").prefix == "return a["
    assert at_mark("def f(): 'Doc.'; return ¦").x["docstring"] == "Doc."
    assert at_mark("def f(): 'Doc.'; return ¦").prefix == "return "
    assert at_mark("def f(): return a or \\\n    b¦").prefix == "return a or \\\n    b"
    assert at_mark("def f(): return 1\n    ¦").kind == "module"
    assert at_mark("def f():\n    'Doc.'; x = 1\n    y¦").prefix == "x = 1\ny"


@pytest.mark.parametrize(
    ("text", "indentation"),
    [
        ("def f():\n  x = 1\n  ¦", "  "),
        ("def f():\n\tif x:\n\t\treturn ¦", "\t"),
        ("def f():\n  ¦", "  "),
        ("def f():\n  # why\n¦", "  "),
        ("def f():\n¦", "    "),
        ("class A:\n\tdef f():\n¦", "\t\t"),
        ("def f(): ¦", "    "),
        ("def f(): x¦", ""),
        ("x = ¦", ""),
        ("def f():\n\x0c    x = 1\n¦", "    "),
    ],
)
def test_the_indentation_is_what_a_further_line_needs(text: str, indentation: str) -> None:
    assert at_mark(text).indentation == indentation


def test_line_ends_byte_order_marks_and_form_feeds_are_read_as_in_mining() -> None:
    text = "def f():\n    'Doc.'\n\x0c\n\x0c    x = 'ä🙂'\n    return x"
    expected = find_context(text, len(text))
    assert expected.prefix == "x = 'ä🙂'\nreturn x"
    for end in ("\r\n", "\r"):
        changed = "\ufeff" + text.replace("\n", end)
        assert find_context(changed, len(changed)) == expected


def test_half_a_character_becomes_a_question_mark() -> None:
    context = at_mark("def f(a='\ud800'):\n    '\ud800'\n    return '\ud800¦")
    assert context.x == {"docstring": "?", "name": "f", "arguments": "a='?'"}
    assert context.prefix == "return '?"


def test_a_class_and_a_module_give_their_docstring_and_last_lines() -> None:
    body = "".join(f"x{at} = {at}\n" for at in range(200))
    module = at_mark(f"'''Of all.'''\n{body}y = ¦")
    assert module.x == {"docstring": "Of all.", "name": "", "arguments": ""}
    assert (module.kind, module.indentation) == ("module", "")
    assert module.prefix.startswith("x151 = 151\n")
    assert module.prefix.endswith("\nx199 = 199\ny = ")
    assert module.prefix.count("\n") == MAX_BLOCK_LINES - 1
    inside = at_mark("\nclass A(B):\n    'Of A.'\n    x = 1\n    y = ¦")
    assert inside.x == {"docstring": "Of A.", "name": "class A", "arguments": "B"}
    assert (inside.prefix, inside.kind) == ("x = 1\ny = ", "class")


def test_the_prefix_of_a_block_has_no_bodies_of_its_definitions() -> None:
    text = "import os\n\n\ndef f():\n    return os\n\n\nclass A:\n    x = 1\n\n\nf = ¦"
    assert at_mark(text).prefix == "import os\ndef f():\nclass A:\nf = "
    inside = at_mark("class A:\n    x = 1\n\n    @p\n    def f(self):\n        return 1\n\n    @¦")
    assert inside.prefix == "x = 1\n@p\ndef f(self):\n@"


@pytest.mark.parametrize(
    ("text", "prefix", "kind"),
    [
        ("import os\n\n\ndef ¦", "import os\ndef ", "module"),
        ("class A:\n    x = 1\n\n    def f(self, a: in¦", "x = 1\ndef f(self, a: in", "class"),
        ("def g():\n    x = 1\n    def f(¦", "x = 1\ndef f(", "function"),
    ],
)
def test_a_header_belongs_to_the_block_around_it(text: str, prefix: str, kind: str) -> None:
    block = at_mark(text).block
    assert block is not None
    assert (block.prefix, block.kind, block.place) == (prefix, kind, "body")


def test_of_a_long_module_the_last_part_is_read() -> None:
    body = "".join(f"def f{n}():\n    return {n}\n" for n in range(3_000))
    prefix = at_mark(f"{body}y = ¦").prefix
    assert prefix.count("\n") == MAX_BLOCK_LINES - 1
    assert prefix.endswith("\ndef f2999():\ny = ")


@pytest.mark.parametrize(
    "text", ["", "\n\n", "# only\n# comments", "\ufeff", "\x00", "'", '"""\\', "\\"]
)
def test_a_text_without_code_is_a_module(text: str) -> None:
    context = find_context(text, len(text))
    assert (context.kind, context.x["name"], context.x["arguments"]) == ("module", "", "")


PIECES = [
    *[
        "def f(",
        "async def g():",
        "class A:",
        "):",
        "\n",
        "\n    ",
        "\n\t",
        "\r\n",
        "\f",
        "\\",
        "\\\n",
    ],
    *['"', "'", '"""', "'''", "#", "(", "]", "{", ":", ";", "=", "@", "lambda x:", " ", "x", "ä🙂"],
    *[
        "return ",
        "\x00",
        "\ud800",
        "\ufeff",
        "r'",
        "f'{",
        "\\x4",
        "\\N{",
        "*",
        ",",
        "\u2028",
        "\x1c",
    ],
]


@given(st.one_of(st.lists(st.sampled_from(PIECES), max_size=60).map("".join), st.text()), st.data())
@settings(max_examples=1000, deadline=None)
def test_any_text_has_a_context_at_any_place(text: str, data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, len(text)))
    context = find_context(text, offset)
    rest = text[offset:].replace("\r", "\n").partition("\n")[0]
    assert find_context(text[:offset] + rest, offset) == context
    assert "\r" not in context.prefix
    str(context).encode()


REAL = Path(textwrap.__file__).read_text()


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_mutilated_code_has_a_context_at_any_place(data: st.DataObject) -> None:
    text = REAL
    for _ in range(data.draw(st.integers(1, 8))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 40)))
        text = text[:start] + data.draw(st.sampled_from(["", *PIECES])) + text[end:]
    find_context(text, data.draw(st.integers(0, len(text))))


@pytest.mark.parametrize(
    "piece", ["(", "'", '"""\\', "\n", " ", "def f(", "\n def f():", "('a'\n", "-"]
)
def test_time_grows_with_the_length_of_a_text_and_no_faster(piece: str) -> None:
    text = "def f():\n    " + piece * (200_000 // len(piece))
    start = time.process_time()
    find_context(text, len(text))
    assert time.process_time() - start < 2


def test_a_docstring_that_does_not_parse_takes_no_time() -> None:
    text = "def f():\n    '''" + "a \\d ' b\n" * 2000 + "\\x4'''; x\n    y"
    start = time.process_time()
    find_context(text, len(text))
    assert time.process_time() - start < 1


def real_sources(count: int) -> list[Source]:
    """Files of the standard library that parse, drawn anew only when the library changes."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    paths = sorted(path for path in folder.rglob("*.py") if "site-packages" not in path.parts)
    drawn = random.Random(0).sample(paths, min(count, len(paths)))
    return [source for path in drawn if (source := Source.read(path))]


def is_right(cursor: Cursor) -> bool:
    expected, found = expect(cursor), find_context(cursor.buffer, cursor.offset)
    actual = {**found.x, "kind": found.kind, "prefix": found.prefix}
    return all(value in (None, actual[name]) for name, value in vars(expected).items())


def test_the_context_of_nearly_every_cursor_in_real_code_is_right() -> None:
    wrong: Counter[tuple[str, str]] = Counter()
    drawn: Counter[tuple[str, str]] = Counter()
    for cursor in draw(real_sources(120), 2000, seed=0):
        drawn[cursor.cut, cursor.share] += 1
        wrong[cursor.cut, cursor.share] += not is_right(cursor)
    assert drawn.total() == 2000
    assert wrong.total() <= 4, wrong
    assert all(wrong[each] / drawn[each] <= 0.01 for each in drawn), wrong


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_line_and_a_column_are_an_offset(end: str) -> None:
    text = end.join(["ab", "", "\x0cä🙂"])
    assert offset_of(text, 1, 1) == 0
    assert offset_of(text, 1, 3) == 2
    assert text[offset_of(text, 3, 2) :] == "ä🙂"
    assert offset_of(text, 3, 4) == len(text)
    assert offset_of("", 1, 1) == 0


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        (0, 1, "line 0: the text has lines 1 to 3; name one of them"),
        (4, 1, "line 4: the text has lines 1 to 3; name one of them"),
        (1, 0, "line 1, column 0: the line has columns 1 to 3; name one of them"),
        (1, 4, "line 1, column 4: the line has columns 1 to 3; name one of them"),
        (3, 2, "line 3, column 2: the line has columns 1 to 1; name one of them"),
    ],
)
def test_a_place_outside_the_text_is_an_error(line: int, column: int, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        offset_of("ab\nc\n", line, column)
    assert str(caught.value) == message
