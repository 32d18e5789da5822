"""TypeScript, JavaScript, Java and Go: mined functions, contexts of cursors, suggestions."""

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.completion.engine import CompletionEngine
from redraft.completion.languages.base import Language
from redraft.completion.languages.go import GO
from redraft.completion.languages.java import JAVA
from redraft.completion.languages.javascript import JAVASCRIPT
from redraft.completion.languages.python.language import PYTHON
from redraft.completion.languages.registry import (
    LANGUAGES,
    is_known,
    language_named,
    language_of,
)
from redraft.completion.languages.trees.grammar import Grammar
from redraft.completion.languages.trees.language import MAX_LINE, TreeLanguage
from redraft.completion.languages.typescript import TYPESCRIPT, TYPESCRIPT_REACT
from redraft.completion.project import Project, empty_model, index_project
from redraft.data.rows import BadRow
from redraft.errors import MissingExtraError
from redraft.mining.python_functions import MAX_FILE_BYTES
from redraft.types import Example

IN_TWO_THREADS = """
import sys, threading
from redraft.completion.languages.javascript import JAVASCRIPT

sys.setswitchinterval(1e-5)

def names(text):
    return [example.x["name"] for example in JAVASCRIPT.mine(text, name="a", package="b")]

def read(word):
    expected = [f"{word}{i}" for i in range(200)]
    text = "".join(f"function {name}(a) {{\\n  return a.b\\n}}\\n" for name in expected)
    for _ in range(20):
        assert names(text) == expected
    done.append(word)

done = []
threads = [threading.Thread(target=read, args=(word,)) for word in ("first", "second")]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(done) == 2
"""

TREES = (TYPESCRIPT, TYPESCRIPT_REACT, JAVASCRIPT, JAVA, GO)

SOURCES = {
    "go": """package shop

// Add puts an item
// into the basket.
func (b *Basket) Add(item Item, count int) error {
	if count < 1 {
		return errors.New("none {")
	}
	b.items = append(b.items, item)
	return nil
}
""",
    "java": """class Basket {
    /**
     * Puts an item
     * into the basket.
     */
    @Override
    public void add(final Item item, int... count) {
        if (count.length < 1) {
            throw new IllegalArgumentException("none {");
        }
        items.add(item);
    }
}
""",
    "typescript": """/**
 * Puts an item
 * into the basket.
 */
export const add = async (item: Item, ...count: number[]): Promise<void> => {
  if (!/["{]/.test(item.name)) {
    throw new Error(`none { ${item.name + "}"}`)
  }
  items.push(item)
}
""",
}
SOURCES["javascript"] = SOURCES["typescript"].replace(": Item", "").replace(": number[]", "")
SOURCES["javascript"] = SOURCES["javascript"].replace(": Promise<void>", "")
SOURCES["typescriptreact"] = SOURCES["typescript"].replace(
    "items.push(item)", "return <p>Don't {item.name}</p>"
)


def mined(language: Language, text: str) -> list[Example]:
    found = language.mine(text, name="a", package="b")
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize("language", TREES, ids=lambda one: one.name)
def test_a_function_is_mined_with_its_comment_and_its_arguments(language: TreeLanguage) -> None:
    [example] = mined(language, SOURCES[language.name])
    assert example.x["docstring"] == (
        "Add puts an item\ninto the basket." if language is GO else "Puts an item\ninto the basket."
    )
    assert example.x["name"].lower() == "add"
    expected = ["b", "item", "count"] if language is GO else ["item", "count"]
    assert language.argument_names(example.x["arguments"]) == expected
    assert example.y.startswith("if ")
    assert example.y.splitlines()[1].strip() == example.y.splitlines()[1][len(language.indent) :]
    assert example.meta["language"] == language.family


@pytest.mark.parametrize("language", TREES, ids=lambda one: one.name)
def test_at_every_cursor_of_a_body_the_prefix_begins_what_is_mined(language: TreeLanguage) -> None:
    text = SOURCES[language.name]
    [example] = mined(language, text)
    start, end = text.index("if "), text.rindex(example.y[-10:]) + 10
    for offset in range(start, end + 1):
        for buffer in (text, text[:offset]):
            context = language.find_context(buffer, offset)
            assert context.x == example.x
            assert context.kind == "function"
            assert context.place == "body"
            assert example.y.startswith(context.prefix.rstrip(" \t"))
            assert len(context.prefix.strip()) >= len(text[start:offset].split("\n")[0].strip())


def test_threads_read_texts_of_one_language_at_the_same_time() -> None:
    done = subprocess.run([sys.executable, "-c", IN_TWO_THREADS], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("language", TREES, ids=lambda one: one.name)
def test_outside_of_a_function_there_is_none(language: TreeLanguage) -> None:
    text = SOURCES[language.name]
    for offset in (0, text.lower().index("item"), text.index("if ") - 20, len(text)):
        context = language.find_context(text, offset)
        assert context.x == {"docstring": "", "name": "", "arguments": ""}
        assert context.kind != "function"


@pytest.mark.parametrize("language", TREES, ids=lambda one: one.name)
def test_statements_begin_in_blocks_and_not_in_brackets_or_strings(language: TreeLanguage) -> None:
    for body in ("", "a();\n", "if (a) {\n", "f(function () {\n", "a(); // don't (", "f(')')\n"):
        assert not language.is_in_brackets(body), body
    for body in ("f(", "f(a,\n", "a[", 'f("', "f({}, "):
        assert language.is_in_brackets(body), body


def test_kinds_of_functions_in_javascript() -> None:
    text = """
function plain(a) { return 1 }
function* steps(a) { yield 1 }
class A {
  method(a) { return 1 }
  field = (a) => { return 1 }
}
const arrow = a => { return 1 }
const expression = function (a) { return 1 }
exports.assigned = (a) => { return 1 }
const object = { key: (a) => { return 1 }, short(a) { return 1 } }
"""
    expected = ["plain", "steps", "method", "field", "expression", "assigned", "key", "short"]
    for language in (JAVASCRIPT, TYPESCRIPT):
        names = [example.x["name"] for example in mined(language, text)]
        assert [name for name in names if name != "arrow"] == expected


@pytest.mark.parametrize("language", TREES, ids=lambda one: one.name)
@given(text=st.text(alphabet="ab(){}[]<>=`'\"/*\\$\n \t;.,é𐐀", max_size=80), cut=st.integers(0, 80))
def test_no_text_fails(language: TreeLanguage, text: str, cut: int) -> None:
    context = language.find_context(text, min(cut, len(text)))
    assert "".join(text[:cut].split()).endswith("".join(context.prefix.split()))
    assert isinstance(language.mine(text, name="a", package="b"), list)
    assert language.is_in_brackets(text) in (True, False)


@pytest.mark.parametrize("language", TREES, ids=lambda one: one.name)
@pytest.mark.parametrize(
    "part",
    [
        "(",
        "{",
        "a<",
        "`${",
        "/",
        "(/[a",
        "f(a,\n",
        "/*",
        '"\n',
        "a => {\n",
        '<x y="a">don\'t</x>\n',
    ],
)
def test_huge_malformed_texts_are_read_in_bounded_time(language: TreeLanguage, part: str) -> None:
    text = part * (200_000 // len(part))
    start = time.process_time()
    language.find_context(text, len(text))
    language.is_in_brackets(text)
    lines = "\n".join(text[i : i + 1000] for i in range(0, len(text), 1000))
    mined = language.mine(lines, name="a", package="b")
    assert isinstance(mined, list) or "cannot be parsed" in str(mined)
    assert time.process_time() - start < 10


def test_files_that_cannot_be_read_are_named_with_the_reason() -> None:
    cases: dict[bytes, str] = {
        b"\xff\xfe": "not utf-8",
        b"\n" + b"a" * (MAX_LINE + 1): f"minified: a line of {MAX_LINE + 1:,} characters",
        b"\n" * (MAX_FILE_BYTES + 1): f"larger than {MAX_FILE_BYTES:,} bytes",
    }
    for content, reason in cases.items():
        bad = GO.mine(content, name="a.go", package="a")
        assert isinstance(bad, BadRow)
        assert reason in str(bad)


def test_without_the_extra_the_message_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tree_sitter", None)
    grammar = Grammar("tree_sitter_go", GO.grammar.query)
    language = replace(GO, grammar=grammar)
    bad = language.mine("package a", name="a.go", package="a")
    assert "pip install 'redraft[languages]'" in str(bad)
    text = SOURCES["go"]
    with pytest.raises(MissingExtraError, match=r"needs tree_sitter_go, which is not installed"):
        language.find_context(text, text.index("return"))


def test_the_language_follows_from_the_file_or_the_editor() -> None:
    for language in LANGUAGES:
        assert language_named(language.name) is language
        for suffix in language.suffixes:
            assert language_of(f"src/a{suffix.upper()}") is language
    assert language_of(None) is language_of("Makefile") is PYTHON
    assert is_known("javascriptreact", "untitled:1")
    assert not is_known("rust", "a.rs")


HANDLER = """package shop

func Get{0}(w http.ResponseWriter, r *http.Request) {{
	{1}, err := store.Find{0}(r.Context())
	if err != nil {{
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}}
	writeJSON(w, {1})
}}
"""


@pytest.fixture
def engine(tmp_path: Path) -> CompletionEngine:
    for name in ("Order", "Item", "Basket", "Bill"):
        (tmp_path / f"{name.lower()}.go").write_text(HANDLER.format(name, name.lower()))
    (tmp_path / "code.py").write_text("def get(w, r):\n    if err != nil:\n        return 1\n")
    return CompletionEngine(index_project(empty_model(), Project.read([tmp_path]))[0])


def test_go_is_completed_from_go(engine: CompletionEngine) -> None:
    text = "package shop\n\nfunc GetUser(w http.ResponseWriter, r *http.Request) {\n\t"
    text += "user, err := store.FindUser(r.Context())\n\t"
    best = engine.complete(text, len(text), 1, file="user.go")[0]
    assert best.text.startswith("if err != nil {")
    assert best.prototype is not None
    assert best.prototype.example.meta["language"] == "go"
    assert engine.complete(text, len(text), 1, language="go")[0].text == best.text


def test_languages_do_not_borrow_from_each_other(engine: CompletionEngine) -> None:
    assert {example.meta["language"] for example in engine.index_of("go").examples} == {"go"}
    assert all("language" not in example.meta for example in engine.index_of("python").examples)
    text = "def get(w, r):\n    if err != nil"
    for suggestion in engine.complete(text, len(text), file="other.py"):
        assert suggestion.prototype is None or "language" not in suggestion.prototype.example.meta
