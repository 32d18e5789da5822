"""Functions are mined as they are written, from whatever lies in a tree of sources."""

import ast
import os
import sysconfig
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from redraft.bulk.job import Job, in_this_process
from redraft.bulk.mine import MineJob
from redraft.bulk.shards import cut_sources
from redraft.data.pairs import read_pairs, write_pairs
from redraft.data.rows import BadRow
from redraft.errors import PairsError
from redraft.mining.python_functions import (
    MAX_FILE_BYTES,
    Source,
    as_source,
    find_sources,
    mine,
    standard_library,
)
from redraft.types import Example

Mine = Callable[[str | bytes], list[Example] | BadRow]


@pytest.fixture
def mined(tmp_path: Path) -> Mine:
    """What a source text gives."""

    def mine_text(text: str | bytes) -> list[Example] | BadRow:
        path = tmp_path / "source.py"
        path.write_bytes(text if isinstance(text, bytes) else textwrap.dedent(text).encode())
        return mine(Source(path, "package", "source.py"))

    return mine_text


def only(found: list[Example] | BadRow) -> Example:
    assert isinstance(found, list)
    (example,) = found
    return example


def test_a_function_gives_docstring_name_arguments_and_body(mined: Mine) -> None:
    source = '''
        def add(a: int, *rest: int, b=1, **more) -> int:
            """Add numbers.

            All of them.
            """
            total = a + b

            return total + sum(rest)
    '''
    assert only(mined(source)) == Example(
        {
            "docstring": "Add numbers.\n\nAll of them.",
            "name": "add",
            "arguments": "a: int, *rest: int, b=1, **more",
        },
        "total = a + b\n\nreturn total + sum(rest)",
        {"file": "source.py", "line": 2, "package": "package"},
    )


def test_methods_nested_and_async_functions_come_in_the_order_of_their_lines(mined: Mine) -> None:
    found = mined('''
        class Oven:
            def bake(self):
                """Bake."""
                def turn():
                    """Turn."""
                    return 1
                return turn

            async def cool(self):
                """Cool."""
                await self.wait()

        def last():
            """Last."""
            pass
    ''')
    assert isinstance(found, list)
    assert [(e.x["name"], e.y) for e in found] == [
        ("bake", 'def turn():\n    """Turn."""\n    return 1\nreturn turn'),
        ("turn", "return 1"),
        ("cool", "await self.wait()"),
        ("last", "pass"),
    ]


def test_a_decorated_function_with_a_long_signature_stands_at_its_def(mined: Mine) -> None:
    example = only(
        mined("""
        @property
        @other(
            1,
        )
        def long(
            a,  # the first
            b=(1,
               2),
        ):
            "Doc."
            return a
    """)
    )
    assert example.x["arguments"] == "a, b=(1, 2)"
    assert example.meta["line"] == 6
    assert example.y == "return a"


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n    return 1\n",
        'def f():\n    """Only words."""\n',
        'def f():\n    """   """\n    return 1\n',
        'def f(): "doc"; return 1\n',
        'def f():\n    "doc"; return 1\n',
        "def f():\n    b'bytes'\n    return 1\n",
        "x = lambda: 1\n",
        "",
        "# a comment",
    ],
)
def test_without_a_docstring_and_a_body_there_is_nothing_to_mine(mined: Mine, source: str) -> None:
    assert mined(source) == []


def test_comments_are_kept_and_the_body_ends_with_its_last_statement(mined: Mine) -> None:
    example = only(
        mined('''
        def f():
            """Doc."""  # not this

            # why
            x = 1  # what
        # far left
            return x
            # after all
    ''')
    )
    assert example.y == "# why\nx = 1  # what\n# far left\nreturn x"


def test_a_docstring_of_several_pieces_is_left_out_of_the_body(mined: Mine) -> None:
    example = only(mined("def f():\n    ('one '\n     'two'\n    )\n    return 1\n"))
    assert example.x["docstring"] == "one two"
    assert example.y == "return 1"


def test_strings_of_several_lines_keep_what_is_left_of_the_indentation(mined: Mine) -> None:
    source = "def f():\n    'Doc.'\n    return '''\nleft\n    below\n        deeper'''\n"
    assert only(mined(source)).y == "return '''\nleft\nbelow\n    deeper'''"


def test_tabs_indent_and_form_feeds_are_dropped(mined: Mine) -> None:
    source = "def f():\n\t'Doc.'\n\x0c\n\tif a:\n\t\treturn 1\n\x0c\n\treturn 2\n"
    assert only(mined(source)).y == "if a:\n\treturn 1\n\nreturn 2"


def test_a_form_feed_before_the_indentation_is_not_part_of_it(mined: Mine) -> None:
    source = "def f():\n    'Doc.'\n\x0c    x = 1\n    return x\n"
    assert only(mined(source)).y == "x = 1\nreturn x"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_line_ends_and_a_byte_order_mark_change_nothing(mined: Mine, end: str, mark: bytes) -> None:
    source = "def f():\n    'Doc.'\n    x = 'ä'\n    return x\n".replace("\n", end)
    example = only(mined(mark + source.encode()))
    assert example.y == "x = 'ä'\nreturn x"
    assert example.meta["line"] == 1


def test_a_declared_encoding_is_obeyed(mined: Mine) -> None:
    source = "# -*- coding: latin-1 -*-\ndef f():\n    'Größe.'\n    return 'ä'\n"
    example = only(mined(source.encode("latin-1")))
    assert example.x["docstring"] == "Größe."
    assert example.y == "return 'ä'"


def test_characters_beyond_a_byte_do_not_shift_the_body(mined: Mine) -> None:
    example = only(mined("def f():\n    'Größe 🙂.'\n    ä = '🙂'; return ä\n"))
    assert example.y == "ä = '🙂'; return ä"


def test_half_a_character_in_a_docstring_is_replaced(mined: Mine, tmp_path: Path) -> None:
    example = only(mined("def f():\n    'Half \\ud800.'\n    return '\\ud800'\n"))
    assert example.x["docstring"] == "Half ?."
    write_pairs([example], tmp_path / "pairs.jsonl")
    assert read_pairs(tmp_path / "pairs.jsonl") == [example]


def test_doubtful_escapes_of_mined_code_warn_nobody(mined: Mine) -> None:
    assert only(mined("def f():\n    'Doc.'\n    return '\\d' is 1\n")).y == "return '\\d' is 1"


@pytest.mark.parametrize(
    ("source", "line", "reason"),
    [
        (b"x = 1\nprint 'two'\n", 2, "not Python 3: Missing parentheses in call to 'print'"),
        (b"x = 1\n\nif x\n", 3, "not Python 3: expected ':'"),
        (b"def f():\n\tx = 1\n        y = 2\n", 3, "not Python 3: inconsistent use of tabs"),
        (b"x = 1\n\n# caf\xe9\n", 1, "not utf-8"),
        (b"# caf\xe9\n", 1, "not Python 3: invalid or missing encoding declaration"),
        (b"# coding: no-such\n", 1, "not Python 3: unknown encoding"),
        (b"# coding: hex\n", 1, "not Python 3: "),
        (b"x = 1\x00\n", 1, "not Python 3: source code string cannot contain null bytes"),
        (b"x = " + b"(" * 5000 + b")" * 5000, 1, "not Python 3: too many nested parentheses"),
        (b"x = " + b"-" * 50_000 + b"1", 1, "not Python 3: "),
        (b"#" * (MAX_FILE_BYTES + 1), 1, "larger than 2,097,152 bytes"),
    ],
    ids=lambda value: value[:20].decode(errors="replace") if isinstance(value, bytes) else "",
)
def test_a_file_that_cannot_be_mined_is_reported(
    mined: Mine, source: bytes, line: int, reason: str
) -> None:
    found = mined(source)
    assert isinstance(found, BadRow)
    assert (found.file, found.line) == ("source.py", line)
    assert found.reason.startswith(reason)


@pytest.mark.parametrize("terms", [100, 400, 900, 5000])
def test_a_deep_default_is_mined_or_reported(mined: Mine, terms: int) -> None:
    found = mined(f"def f(a={'+'.join('1' * terms)}):\n    'Doc.'\n    return a\n")
    if isinstance(found, BadRow):
        assert "recursion" in found.reason
    else:
        assert only(found).y == "return a"


def test_a_file_that_vanished_is_reported(tmp_path: Path) -> None:
    found = mine(Source(tmp_path / "gone.py", "gone", "gone.py"))
    assert found == BadRow("gone.py", 1, "cannot be read: No such file or directory")


def test_the_standard_library_comes_without_its_tests() -> None:
    folders = {part for source in standard_library() for part in source.path.parts[-3:-1]}
    assert "json" in folders
    assert not folders & {"test", "tests", "idlelib"}


def library_modules() -> list[Path]:
    folder = Path(sysconfig.get_paths()["stdlib"])
    return sorted(path for path in folder.glob("*.py") if not path.name.startswith("_"))[:130]


def holds_a_string_of_several_lines(statements: list[ast.stmt]) -> bool:
    texts = ast.Constant, ast.JoinedStr
    return any(
        isinstance(node, texts) and node.end_lineno != node.lineno
        for statement in statements
        for node in ast.walk(statement)
    )


def dump(statements: list[ast.stmt]) -> list[str]:
    return [ast.dump(statement) for statement in statements]


@pytest.mark.parametrize("path", library_modules(), ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore")  # the library's own escapes, parsed again
def test_a_mined_body_is_the_code_of_its_function(path: Path) -> None:
    found = mine(Source(path, path.stem, path.name))
    assert isinstance(found, list)
    functions = {
        node.lineno: node
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    for example in found:
        body = ast.parse(example.y).body
        own = functions[example.meta["line"]].body[1:]
        assert len(body) == len(own)
        if not holds_a_string_of_several_lines(own):
            assert dump(body) == dump(own)


def test_real_code_has_many_functions() -> None:
    mined = [mine(Source(path, path.stem, path.name)) for path in library_modules()[:60]]
    assert sum(len(found) for found in mined if isinstance(found, list)) > 500


def tree(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x = 1\n")
    return folder


def test_sources_are_found_in_order_with_package_and_name(tmp_path: Path) -> None:
    tree(tmp_path, "b/inner/two.py", "b/one.py", "alone.py", "b/notes.txt", "a/__init__.py")
    (tmp_path / "folder.py").mkdir()
    assert find_sources([tmp_path]) == [
        Source(tmp_path / "a/__init__.py", "a", "a/__init__.py"),
        Source(tmp_path / "alone.py", "alone", "alone.py"),
        Source(tmp_path / "b/inner/two.py", "b", "b/inner/two.py"),
        Source(tmp_path / "b/one.py", "b", "b/one.py"),
    ]


def test_hidden_folders_environments_and_unwanted_folders_are_skipped(tmp_path: Path) -> None:
    skipped = (".git", ".hidden", "venv", ".venv", "__pycache__", "node_modules", "site-packages")
    root = tree(
        tmp_path / ".cache/venv", "a.py", "p/tests/t.py", *(f"p/{name}/s.py" for name in skipped)
    )
    assert [source.name for source in find_sources([root])] == ["a.py", "p/tests/t.py"]
    assert [source.name for source in find_sources([root], without=["tests"])] == ["a.py"]


def test_a_file_is_its_own_package(tmp_path: Path) -> None:
    path = tree(tmp_path, "venv/tool.py") / "venv/tool.py"
    assert find_sources([path]) == [Source(path, "tool", "tool.py")]


def test_a_path_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PairsError) as caught:
        find_sources([tmp_path / "none"])
    expected = f"{tmp_path / 'none'}: no such file or folder; name sources to mine"
    assert str(caught.value) == expected


UNDOCUMENTED = '''\
def first(a, *, b=1):
    # why
    if a:
        return b
    return a

def inline(): return 1

class Box:
    async def second(self):
        @property
        def inner():
            return 2
        return inner

    def documented(self):
        """Doc."""
        return 3

    def only_documented(self):
        """Doc."""
'''


def test_functions_without_a_docstring_are_mined_if_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "box.py"
    path.write_text(UNDOCUMENTED)
    source = Source(path, "box", "box.py")
    found = mine(source, documented_only=False)
    assert not isinstance(found, BadRow)
    assert [(each.x["name"], each.x["docstring"], each.y) for each in found] == [
        ("first", "", "if a:\n    return b\nreturn a"),
        ("second", "", "@property\ndef inner():\n    return 2\nreturn inner"),
        ("inner", "", "return 2"),
        ("documented", "Doc.", "return 3"),
    ]
    documented = mine(source)
    assert not isinstance(documented, BadRow)
    assert [each.x["name"] for each in documented] == ["documented"]


def test_a_function_that_was_mined_is_mined_again_from_its_source(tmp_path: Path) -> None:
    x = {"docstring": 'Say "\\d" and """this""".\n\nTwice.', "name": "say", "arguments": "a, b=1"}
    path = tmp_path / "say.py"
    path.write_text(as_source(x, "if a:\n    return b\nreturn a"))
    (found,) = mine(Source(path, "say", "say.py"))  # type: ignore[misc]
    assert (found.x, found.y) == (x, "if a:\n    return b\nreturn a")


def test_links_that_lead_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    project, secret = tmp_path / "project", tmp_path / "elsewhere"
    for folder in (project / "real", secret):
        folder.mkdir(parents=True)
        (folder / "a.py").write_text("x = 1\n")
    (project / "out.py").symlink_to(secret / "a.py")
    (project / "folder").symlink_to(secret)
    (project / "in.py").symlink_to(project / "real" / "a.py")
    (project / "loop.py").symlink_to(project / "loop.py")
    assert [source.name for source in find_sources([project])] == ["in.py", "real/a.py"]
    (tmp_path / "link").symlink_to(project)  # named by the user, unlike what is in it
    assert [source.name for source in find_sources([tmp_path / "link"])] == ["in.py", "real/a.py"]


def test_a_name_that_is_not_utf_8_is_written_with_escapes(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.py"))
    path.write_text('def f():\n    """Do."""\n    return 1\n')
    (source,) = find_sources([tmp_path])
    assert (source.path, source.name, source.package) == (path, r"caf\xe9.py", r"caf\xe9")
    (example,) = found if isinstance(found := mine(source), list) else []
    write_pairs([example], tmp_path / "pairs.jsonl")
    assert read_pairs(tmp_path / "pairs.jsonl") == [example]
    assert find_sources([path])[0].name == r"caf\xe9.py"
    inputs = cut_sources(find_sources([tmp_path]), 2)
    job = Job.begin(MineJob(), inputs, str(tmp_path / "out"))
    assert [outcome.rows for outcome in job.run(in_this_process)] == [1]
